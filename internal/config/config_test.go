package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"satchel/internal/config"
	"satchel/internal/fault"
)

var update = flag.Bool("update", false, "write the generated documentation")

// setup is one way to start the program.
type setup struct {
	file string   // satchel.yaml in the data directory; empty for none
	env  []string // in addition to the data directory's variable
	args []string
}

func (s setup) load(t *testing.T) (*config.Config, string, error) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "satchel.yaml")
	if s.file != "" {
		if err := os.WriteFile(name, []byte(s.file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(fs)
	config.AddServerFlags(fs)
	if err := fs.Parse(s.args); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Source{Flags: fs, Environ: append([]string{"SATCHEL_DATA_DIR=" + dir, "HOME=/home/ann"}, s.env...), WorkDir: "/some dir"})
	return c, dir, err
}

// mistakes returns the mistakes of a setup, with a shortened name of the file.
func (s setup) mistakes(t *testing.T) []string {
	t.Helper()
	_, dir, err := s.load(t)
	if err == nil {
		return nil
	}
	var m config.Mistakes
	if fault.CodeOf(err) != fault.Invalid || !errors.As(err, &m) {
		t.Fatalf("the error is not a fault.Invalid of Mistakes: %v", err)
	}
	var out []string
	for _, x := range m {
		out = append(out, strings.Replace(x.Where, filepath.Join(dir, "satchel.yaml"), "F", 1)+": "+x.What)
	}
	if got := strings.ReplaceAll(fault.PublicOf(err), filepath.Join(dir, "satchel.yaml"), "F"); got != strings.Join(out, "\n") {
		t.Errorf("the public message is not the list of mistakes:\n%s", got)
	}
	return out
}

func TestDefaults(t *testing.T) {
	c, dir, err := setup{}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if c.File != "" || c.DataDir != dir || c.DatabaseURL() != "sqlite:"+filepath.Join(dir, "satchel.db") {
		t.Errorf("%+v", c)
	}
	if c.Server.Listen != "127.0.0.1:8080" || c.Server.Rate != 50 || c.Log.Format != "text" ||
		c.Sandbox.Memory != 512<<20 || c.Sandbox.DetachAfter != 45*time.Second || c.Space.MaxSize != 1<<30 {
		t.Errorf("%+v", c)
	}
	// Every field has a default, except those that are empty by default.
	empty := []string{"File", "Server.PublicURL", "Server.Metrics", "Server.AllowedHosts", "Server.AllowedOrigins", "Database.URL", "Tools.Prefix", "Sandbox.Rootfs",
		"Server.Domain", "Server.ACMEEmail", "Server.ACMECAFile", "Server.TrustedProxies",
		"Auth.AllowEmails", "Auth.AllowDomains", "Auth.AllowGitHubUsers", "Auth.AllowGitHubOrgs", "Auth.Mail",
		"Remotes.AllowNetworks", "Remotes.CAFile", "Remotes.SSHKey", "Remotes.SSHKnownHosts", "Library.AllowSources", "Snapshot.Repo", "Snapshot.Token", "Snapshot.Restricted", "Sources", "Search.Rerank", "Search.Expand"}
	v := reflect.ValueOf(*c)
	check := func(name string, f reflect.Value) {
		if f.IsZero() != slices.Contains(empty, name) {
			t.Errorf("%s is %v", name, f)
		}
	}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).Kind() != reflect.Struct {
			check(name, v.Field(i))
		} else {
			for j := range v.Field(i).NumField() {
				check(name+"."+v.Field(i).Type().Field(j).Name, v.Field(i).Field(j))
			}
		}
	}
}

func TestPrecedence(t *testing.T) {
	file := "server:\n  listen: 127.0.0.1:1\n  body_timeout: 1h\n  allowed_hosts: [a.example, b.example]\nsandbox: {cpus: 0.5, idle_stop: 1d, memory: 1.5GiB}\nlog:\n# level: debug\n"
	for _, tt := range []struct {
		name string
		s    setup
		want string // the value of listen
	}{
		{"default", setup{}, "127.0.0.1:8080"},
		{"file", setup{file: file}, "127.0.0.1:1"},
		{"environment beats file", setup{file: file, env: []string{"SATCHEL_SERVER_LISTEN=127.0.0.1:2"}}, "127.0.0.1:2"},
		{"an empty variable is none", setup{file: file, env: []string{"SATCHEL_SERVER_LISTEN="}}, "127.0.0.1:1"},
		{"flag beats environment", setup{file: file, env: []string{"SATCHEL_SERVER_LISTEN=127.0.0.1:2"}, args: []string{"--listen", "127.0.0.1:3"}}, "127.0.0.1:3"},
		{"flag beats file", setup{file: file, args: []string{"--listen=127.0.0.1:3"}}, "127.0.0.1:3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, dir, err := tt.s.load(t)
			if err != nil {
				t.Fatal(err)
			}
			if c.Server.Listen != tt.want {
				t.Errorf("listen is %s, want %s", c.Server.Listen, tt.want)
			}
			if tt.s.file == "" {
				return
			}
			if c.File != filepath.Join(dir, "satchel.yaml") || c.Server.BodyTimeout != time.Hour || !slices.Equal(c.Server.AllowedHosts, []string{"a.example", "b.example"}) ||
				c.Sandbox.CPUs != 0.5 || c.Sandbox.IdleStop != 24*time.Hour || c.Sandbox.Memory != 3<<29 {
				t.Errorf("the rest of the file: %+v", c)
			}
		})
	}
	c, _, err := setup{env: []string{"SATCHEL_SERVER_ALLOWED_ORIGINS=https://a.example, https://b.example:1,", "SATCHEL_SERVER_PUBLIC_URL=https://s.example/"}, args: []string{"--sandbox-processes", "100"}}.load(t)
	if err != nil || !slices.Equal(c.Server.AllowedOrigins, []string{"https://a.example", "https://b.example:1"}) || c.Server.PublicURL != "https://s.example" || c.Sandbox.Processes != 100 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    setup
		want []string
	}{
		{"everything at once, each with its place", setup{
			file: "server:\n  lisen: 127.0.0.1:1\n  body_timeout: soon\n  rate: fast\nlogs:\n  level: info\nlisten: x\nsandbox:\n  memory: 1MiB\n  max: \"3\"\n",
			env:  []string{"SATCHEL_LOG_LEVEL=loud", "SATCHEL_SANDBOX_MEMROY=1GiB", "SATCHEL_ZZZZZZZZZZ=1"},
			args: []string{"--metrics", "nine"},
		}, []string{
			"SATCHEL_SANDBOX_MEMROY: there is no such variable; did you mean SATCHEL_SANDBOX_MEMORY?",
			"SATCHEL_ZZZZZZZZZZ: there is no such variable",
			`F:2:3: there is no key "server.lisen"; did you mean server.listen?`,
			`F:3:17: server.body_timeout must be a duration such as 45s, 10m, 1h30m or 90d, not "soon"`,
			`F:4:9: server.rate must be a number, not "fast"`,
			`F:5:1: there is no key "logs"; did you mean log?`,
			`F:7:1: there is no key "listen"; did you mean server.listen?`,
			`F:10:8: sandbox.max must be a whole number, not the text "3"`,
			`SATCHEL_LOG_LEVEL: log.level must be one of debug, info, warn, error, not "loud"`,
			`flag --metrics: server.metrics: "nine" must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080`,
			"F:9:11: sandbox.memory: 1MiB is out of range: it must be from 64MiB to 1TiB",
		}},
		{"wrong YAML types", setup{file: "tools:\n  prefix: 12\n\nserver: [1]\nlog: {level: [info], format: {a: b}}\nspace:\n  max_file:\n  max_size: 10MB\nsandbox:\n  disk: 1e9\n  max: 1.5\n  processes: true\n  runtime: on\n"}, []string{
			"F:2:11: tools.prefix must be a text, not the number 12",
			"F:4:9: server must be keys and values below it, indented",
			"F:5:14: log.level must be one of debug, info, warn, error, not a list",
			"F:5:30: log.format must be one of text, json, not keys and values",
			"F:7:12: space.max_file has no value; take the line out for its default",
			`F:8:13: space.max_size must be a size such as 512KiB, 10MiB or 1GiB, not "10MB"`,
			"F:10:9: sandbox.disk must be a size such as 512KiB, 10MiB or 1GiB, not the number 1e9",
			"F:11:8: sandbox.max must be a whole number, not the number 1.5",
			"F:12:14: sandbox.processes must be a whole number, not true; quote it if you mean the text",
			`F:13:12: sandbox.runtime must be one of gvisor, none, not "on"`,
		}},
		{"lists", setup{file: "server:\n  allowed_hosts: a.example\n  allowed_origins: [https://a.example, 5]\n"}, []string{
			`F:2:18: server.allowed_hosts must be a list of texts, not "a.example"`,
			"F:3:40: server.allowed_origins must be a list of texts without commas, not the number 5",
		}},
		{"a key twice", setup{file: "log: {level: info}\nserver:\n  rate: 1\n  rate: 2\nlog: {}\n"}, []string{
			"F:4:3: server.rate is there already, in line 3",
			"F:5:1: log is there already, in line 1",
		}},
		{"Attack: aliases that multiply", setup{file: "a: &a [x]\nserver:\n  allowed_hosts: *a\n  listen: &b x:1\nlog:\n  <<: {level: info}\n  format: !!str text\n"}, []string{
			`F:1:1: there is no key "a"`,
			"F:3:18: server.allowed_hosts: anchors and aliases are not used in a configuration; write the value",
			"F:4:11: server.listen: anchors and aliases are not used in a configuration; write the value",
			"F:6:3: a key must be a plain word",
			"F:7:11: log.format: tags are not used in a configuration; write only the value",
		}},
		{"no YAML", setup{file: "server:\n\tlisten: x\n"}, []string{"F:2: it is not valid YAML: found character that cannot start any token"}},
		{"a list of keys", setup{file: "- server\n"}, []string{`F:1:1: the configuration must be keys and values, such as "server:"`}},
		{"two documents", setup{file: "log: {level: info}\n---\nlog: {level: warn}\n"}, []string{"F:2:1: a second document begins here; a configuration has only one"}},
		{"a file that is too long", setup{file: "#" + strings.Repeat("x", 1<<20)}, []string{"F: it has more than 1MiB, which no configuration needs"}},
		{"a file that is not there", setup{args: []string{"--config", "/no/such/file.yaml"}}, []string{"/no/such/file.yaml: it cannot be read: no such file or directory"}},
		{"Attack: a password that a mistake would show", setup{file: "database:\n  url: mysql://u:hunter2@h/x\n", env: nil}, []string{
			"F:2:8: database.url: it must begin with sqlite: or postgres://",
		}},
		{"a password in a list", setup{file: "database:\n  url: [hunter2]\n"}, []string{"F:2:8: database.url must be a text"}},
		{"relations", setup{file: "sandbox: {memory: 128MiB, disk: 200MiB, wall_time: 30s}\nspace: {max_file: 2GiB}\n", env: []string{"SATCHEL_SERVER_METRICS=127.0.0.1:8080"}, args: []string{"--sandbox-total-memory=100MiB"}}, []string{
			"SATCHEL_SERVER_METRICS: server.metrics (127.0.0.1:8080): it must be another address than server.listen, so that metrics stay inside (127.0.0.1:8080)",
			"F:1:19: sandbox.memory (128MiB): one sandbox may not have more than sandbox.total_memory (100MiB)",
			"F:1:33: sandbox.disk (200MiB): changed files are held in memory, so it may not be more than sandbox.memory (128MiB)",
			"F:1:52: sandbox.detach_after (45s): it may not be more than sandbox.wall_time, by which the command has ended (30s)",
			"F:2:19: space.max_file (2GiB): it may not be more than space.max_size (1GiB)",
		}},
		{"relations of remotes", setup{file: "remotes:\n  ssh_key: /k\n"}, []string{
			"F:2:12: remotes.ssh_key (/k): it needs remotes.ssh_known_hosts, without which any host could pretend to be another",
		}},
		{"relations of signing in, which show no secret", setup{file: "auth:\n  github: {client_id: a}\n  mail: {url: \"smtps://u:hunter2@h\"}\n"}, []string{
			"F:2:23: auth.github.client_id (a): it needs auth.github.client_secret",
			"F:3:15: auth.mail.url: it needs auth.mail.from",
		}},
		{"no relation of a value that is wrong by itself", setup{file: "sandbox: {disk: 2TiB}\n"}, []string{
			"F:1:17: sandbox.disk: 2TiB is out of range: it must be from 4MiB to 1TiB",
		}},
		{"variables that are no keys", setup{env: []string{"SATCHEL_TOKEN=x", "SATCHEL_URL=x", "SATCHEL_TEST_POSTGRES=x", "SATCHEL_PORT=tcp://10.0.0.1:80", "SATCHEL_PORT_80_TCP_ADDR=x", "SATCHEL_SERVICE_HOST=x", "SATCHEL_SERVICE_PORT_HTTP=80", "SATCHELS=1"}}, nil},
		{"a variable without its section", setup{env: []string{"SATCHEL_LISTEN=x", "SATCHEL_DATA=x", "SATCHEL_TOTAL_MEMORY=x"}}, []string{
			"SATCHEL_LISTEN: there is no such variable; did you mean SATCHEL_SERVER_LISTEN?",
			"SATCHEL_DATA: there is no such variable; did you mean SATCHEL_DATA_DIR?",
			"SATCHEL_TOTAL_MEMORY: there is no such variable; did you mean SATCHEL_SANDBOX_TOTAL_MEMORY?",
		}},
		{"models", setup{file: "search:\n  embeddings:\n    url: http://u:p@h/v1\n    mdel: x\n    key: [sk-secret]\n  rerank:\n    url: ftp://h\n    key: file:here\n  expand: {url: \"unix:x\", model: m}\n  embedding: {url: x}\n"}, []string{
			`F:4:5: there is no key "search.embeddings.mdel"; did you mean search.embeddings.model?`,
			"F:5:10: search.embeddings.key must be a text",
			`F:10:3: there is no key "search.embedding"; did you mean search.embeddings?`,
			"F:3:10: search.embeddings.url: it must not have a user or a password",
			"F:7:10: search.rerank.url: it must be a URL such as http://127.0.0.1:11434/v1",
			"F:8:10: search.rerank.key: after file: there must be an absolute path",
			`F:9:17: search.expand.url: "x" must be an absolute path`,
		}},
		{"models by halves", setup{file: "search:\n  embeddings: {url: http://h/v1, key: sk-secret}\n  expand: {url: https://h/v1}\n"}, []string{
			"F:2:21: search.embeddings.url (http://h/v1): it needs search.embeddings.model",
			"F:3:17: search.expand.url (https://h/v1): it needs search.expand.model",
		}},
		{"a model that is no directory", setup{env: []string{"SATCHEL_SEARCH_EMBEDDINGS_MODEL=nomic-embed-text"}}, []string{
			"SATCHEL_SEARCH_EMBEDDINGS_MODEL: search.embeddings.model (nomic-embed-text): without search.embeddings.url it must be the absolute path of a directory",
		}},
		{"a file as the data directory", setup{args: []string{"--data", os.DevNull, "--sandbox-max=x"}}, []string{
			"flag --data: " + os.DevNull + " is a file; name a directory",
		}},
		{"a port that there is none", setup{args: []string{"--listen=127.0.0.1:99999"}}, []string{
			"flag --listen: server.listen: 99999 is not a port (0-65535)",
		}},
		{"a relative data directory in the file", setup{file: "data_dir: here\n", env: nil, args: nil}, nil}, // SATCHEL_DATA_DIR overrides it
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.s.mistakes(t)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			for _, m := range got {
				if strings.Contains(m, "hunter2") {
					t.Errorf("a mistake repeats a secret: %s", m)
				}
			}
		})
	}
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		flag string
		good []string
		bad  []string
	}{
		{"listen", []string{"127.0.0.1:0", "[::1]:8080", ":80", "localhost:1", "0.0.0.0:65535"}, []string{"", "8080", "localhost", "127.0.0.1:65536", "127.0.0.1:http", "::1:80", "a b:1", "http://x:1"}},
		{"public-url", []string{"", "https://a.example", "http://localhost:8080/", "https://[::1]:1"}, []string{"a.example", "ftp://a.example", "https://", "https://u:p@a.example", "https://a.example/mcp", "https://a.example?x", "https://a.example#", "https://a.example/?", "https://a';id;'.example", "https://$(id).example"}},
		{"server-allowed-hosts", []string{"", "a", "a.example,b-c.example"}, []string{"a.example:80", "https://a.example", "a..b", "*", "-a", strings.Repeat("a", 300)}},
		{"server-allowed-origins", []string{"https://a.example", "http://localhost:3000"}, []string{"a.example", "https://a.example/", "https://a.example/x", "*", "null", "https://A.example", "https://u@a.example"}},
		{"tools-prefix", []string{"", "team_", "A-1"}, []string{"a b", "ä", "a.b", strings.Repeat("a", 33)}},
		{"server-rate", []string{"0.5", "1000"}, []string{"0", "-1", "NaN", "Inf", "1,5", ""}},
		{"server-shutdown-grace", []string{"0", "0s", "45s", "1h"}, []string{"45", "-1s", "2h", "1d", "s", "1x"}},
		{"space-max-file", []string{"65536", "64KiB", "1.5MiB", "1 MiB"}, []string{"1", "3GiB", "-1", "1mib", "1MB", "1e6", "0x100000", "1.5", "99999999999999999999TiB", "99999999TiB"}},
		{"database-url", []string{"", "sqlite:/x/y.db", "postgres://u:p@h/x", "postgresql://h/x"}, []string{"/x/y.db", "mysql://h"}},
		{"remotes-allow-networks", []string{"", "10.0.0.0/8,fd00::/8"}, []string{"10.0.0.1", "10.0.0.1/8", "x", "10.0.0.0/33"}},
		{"remotes-allow-ports", []string{"443", "443,8443"}, []string{"0", "65536", "https", "-1"}},
		{"space-screen-secrets", []string{"true", "false"}, []string{"", "yes", "1", "True"}},
		{"sandbox-max", []string{"1", "10000"}, []string{"0", "-1", "10001", "2.5"}},
		{"search-models-wait", []string{"5ms", "1500ms", "1m"}, []string{"0", "61s", "-1s", "10"}},
		{"auth-oidc-client-secret", []string{"", "x", "file:/x"}, []string{"file:", "file:x"}},
		{"sandbox-runtime", []string{"gvisor", "none"}, []string{"crun", "runc", ""}},
		{"sandbox-rootfs", []string{"", "/srv/root"}, []string{"srv/root"}},
	} {
		for _, v := range tt.good {
			if _, _, err := (setup{args: []string{"--" + tt.flag + "=" + v}}).load(t); err != nil {
				t.Errorf("--%s=%s is refused: %v", tt.flag, v, err)
			}
		}
		for _, v := range tt.bad {
			if _, _, err := (setup{args: []string{"--" + tt.flag + "=" + v}}).load(t); err == nil {
				t.Errorf("--%s=%s is taken", tt.flag, v)
			}
		}
	}
}

func TestWhereTheFileIs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, level string) string {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("log:\n  level: "+level+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	system, data := write("etc/satchel.yaml", "error"), write("data/satchel.yaml", "warn")
	env, flagged := write("env.yaml", "debug"), write("flag.yaml", "info")
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"the system's", []string{"SATCHEL_DATA_DIR=" + filepath.Join(dir, "none")}, nil, system},
		{"the data directory's", []string{"SATCHEL_DATA_DIR=" + filepath.Dir(data)}, nil, data},
		{"of --data", []string{"SATCHEL_DATA_DIR=" + filepath.Join(dir, "none")}, []string{"--data", filepath.Dir(data)}, data},
		{"a relative --data", nil, []string{"--data", "data"}, data},
		{"the environment's", []string{"SATCHEL_DATA_DIR=" + filepath.Dir(data), "SATCHEL_CONFIG=" + env}, nil, env},
		{"the flag's", []string{"SATCHEL_DATA_DIR=" + filepath.Dir(data), "SATCHEL_CONFIG=" + env}, []string{"--config", flagged}, flagged},
		{"of $XDG_DATA_HOME", []string{"XDG_DATA_HOME=" + dir}, nil, system},
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		config.AddFlags(fs)
		if err := fs.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{Flags: fs, Environ: append(tt.env, "HOME=/home/ann"), SystemFile: system, WorkDir: dir})
		if err != nil || c.File != tt.want {
			t.Errorf("%s: read %v, %v; want %s", tt.name, c, err, tt.want)
		}
	}
}

func TestDataDir(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"SATCHEL_DATA_DIR": "/a", "XDG_DATA_HOME": "/b", "HOME": "/c"}, "/a"},
		{map[string]string{"XDG_DATA_HOME": "/b", "HOME": "/c"}, "/b/satchel"},
		{map[string]string{"XDG_DATA_HOME": "relative", "HOME": "/c"}, "/c/.local/share/satchel"},
		{map[string]string{"SATCHEL_DATA_DIR": "", "HOME": "/c"}, "/c/.local/share/satchel"},
		{map[string]string{}, ""},
	} {
		got, err := config.DataDir(func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok })
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%v: got %q, %v; want %q", tt.env, got, err, tt.want)
		}
	}
}

func TestDurationsAndSizesSurvive(t *testing.T) {
	for _, s := range []string{"45s", "10m", "1h30m", "90d", "1h", "1.5s", "0s"} {
		d, err := config.ParseDuration(s)
		if err != nil || config.FormatDuration(d) != s {
			t.Errorf("%s: %v, %v", s, config.FormatDuration(d), err)
		}
	}
	if d, err := config.ParseDuration("1d12h"); err != nil || d != 36*time.Hour {
		t.Errorf("1d12h: %v, %v", d, err)
	}
	for _, s := range []string{"", "d", "-1d", "1d-1h", "1.5d", "1dd", "1d1d", "999999999999d", "106751d99h", "+1h", "1d+1h"} {
		if d, err := config.ParseDuration(s); err == nil {
			t.Errorf("%q is taken for %v", s, d)
		}
	}
	for _, s := range []string{"1B", "512KiB", "10MiB", "1GiB", "1TiB", "1025B"} {
		n, err := config.ParseSize(s)
		if err != nil || config.FormatSize(n) != s {
			t.Errorf("%s: %v, %v", s, config.FormatSize(n), err)
		}
	}
}

// The reference and the example agree with the table.
func TestDocumentation(t *testing.T) {
	for name, want := range map[string]string{"configuration.md": config.Document(), "satchel.example.yaml": config.SampleFile()} {
		p := filepath.Join("..", "..", "docs", name)
		if *update {
			if err := os.WriteFile(p, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("docs/%s is out of date; run: go test ./internal/config -update", name)
		}
	}
}

// The example is a valid configuration with the defaults, as it is and with every key
// uncommented.
func TestExampleSaysTheDefaults(t *testing.T) {
	want, _, err := setup{}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(config.SampleFile()) {
		if rest, ok := strings.CutPrefix(line, "#"); ok && !strings.HasPrefix(strings.TrimSpace(rest), "#") && !strings.HasPrefix(rest, " ") || strings.HasPrefix(line, "#  ") {
			line = rest
		}
		lines = append(lines, line)
	}
	for _, file := range []string{config.SampleFile(), strings.Join(lines, "")} {
		got, _, err := setup{file: file}.load(t)
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		got.File, got.DataDir = "", want.DataDir
		for _, l := range []*[]string{
			&got.Server.AllowedHosts, &got.Server.AllowedOrigins, &got.Server.TrustedProxies, &got.Remotes.AllowNetworks,
			&got.Auth.AllowEmails, &got.Auth.AllowDomains, &got.Auth.AllowGitHubUsers, &got.Auth.AllowGitHubOrgs,
			&got.Auth.Issuer.Audience, &got.Auth.Issuer.AskScopes, &got.Auth.Issuer.DefaultScopes, &got.Auth.Issuer.RequireClaims,
		} {
			if len(*l) == 0 {
				*l = nil
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if n := strings.Count(strings.Join(lines, ""), " listen:"); n != 1 {
		t.Error("the second configuration is not what it should be")
	}
}

func TestSecretsInFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) config.Secret {
		p := filepath.Join(dir, "secret")
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Secret("file:" + p)
	}
	for _, s := range []config.Secret{"hunter2", file("hunter2\n")} {
		if got, err := s.Read("k"); got != "hunter2" || err != nil {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	if got, err := config.Secret("").Read("k"); got != "" || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	for name, content := range map[string]string{"empty": "\n", "two lines": "hunter2\nb\n", "too long": strings.Repeat("k", 5000)} {
		if _, err := file(content).Read("k"); fault.CodeOf(err) != fault.Invalid || strings.Contains(fault.PublicOf(err), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := config.Secret("file:" + filepath.Join(dir, "none")).Read("k"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no file: %v", err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(config.SampleFile()))
	for _, s := range []string{"server:\n  listen: x\n", "a: &a [*a]", "? [a]\n: b", "server: {? {a: b} : c}", "---\n---\n", "\xff\xfe", "data_dir: [", "<<: *x", "server: !!binary aGk=", "log: {level: \"\\0\"}"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	name := filepath.Join(dir, "satchel.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{Environ: []string{"SATCHEL_DATA_DIR=" + dir}})
		if (c == nil) == (err == nil) {
			t.Fatal("neither a configuration nor an error, or both")
		}
		if err != nil && (fault.CodeOf(err) != fault.Invalid || fault.PublicOf(err) == "") {
			t.Fatalf("an error that says nothing: %v", err)
		}
	})
}
