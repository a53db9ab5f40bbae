package config

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// key is one row of the table: everything there is to know of one key.
type key struct {
	path   string // "server.listen"
	doc    string // one line, a sentence
	flag   string // without dashes
	form   string // what a value looks like, for mistakes
	kind   string // what a value looks like, in the reference
	tags   []string
	def    string // as text; shown where the default is computed
	secret bool   // its value is never shown
	// set parses and stores a value; the error, if any, is shown without it.
	set func(c *Config, text string) error
	// check returns what is wrong with the value that is set; "" for nothing.
	check func(c *Config) string
	text  func(c *Config) string
}

// env is the key's variable: SATCHEL_SERVER_MAX_BODY for server.max_body.
func (k *key) env() string {
	return "SATCHEL_" + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// section is the path without its last word; "" at the top.
func (k *key) section() string { return parent(k.path) }

func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

// row makes a key of a field of Config, its default and its checks.
func row[T any](path, doc string, c codec[T], def T, field func(*Config) *T, checks ...func(T) string) key {
	k := key{
		path: path, doc: doc, form: c.form, kind: c.name, tags: c.tags, def: c.format(def),
		flag: strings.NewReplacer(".", "-", "_", "-").Replace(path),
		set: func(cfg *Config, text string) error {
			v, err := c.parse(text)
			if err == nil {
				*field(cfg) = v
			}
			return err
		},
		text: func(cfg *Config) string { return c.format(*field(cfg)) },
		check: func(cfg *Config) string {
			for _, check := range checks {
				if why := check(*field(cfg)); why != "" {
					return why
				}
			}
			return ""
		},
	}
	return k
}

// named gives a key a shorter flag than its path.
func (k key) named(flag string) key { k.flag = flag; return k }

func (k key) secretly() key { k.secret = true; return k }

func (k key) shown(def string) key { k.def = def; return k }

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40
)

// keys returns the table, in the order of the reference.
func keys() []key {
	return slices.Concat(serverKeys(), authKeys(), webKeys(), workKeys())
}

func serverKeys() []key {
	return []key{
		row("data_dir", "Where everything is kept: spaces, the database, the index.", str, "",
			func(c *Config) *string { return &c.DataDir }, absolute).named("data").shown("$XDG_DATA_HOME/satchel, else ~/.local/share/satchel"),

		row("server.listen", "Address and port to serve MCP on.", str, "127.0.0.1:8080",
			func(c *Config) *string { return &c.Server.Listen }, required, address).named("listen"),
		row("server.public_url", "URL under which clients reach the server, if that is not its address.", str, "",
			func(c *Config) *string { return &c.Server.PublicURL }, publicURL).named("public-url"),
		row("server.metrics", "Address and port to serve Prometheus metrics on, without authentication, under an address, localhost or an allowed host; empty for none.", str, "",
			func(c *Config) *string { return &c.Server.Metrics }, address).named("metrics"),
		row("server.allowed_hosts", "Host names under which requests are taken, besides loopback and public_url's.", list, nil,
			func(c *Config) *[]string { return &c.Server.AllowedHosts }, eachOf(host)),
		row("server.allowed_origins", "Web origins whose pages may call the server, besides its own.", list, nil,
			func(c *Config) *[]string { return &c.Server.AllowedOrigins }, eachOf(origin)),
		row("server.max_body", "Largest request that is read.", size, 4*mib,
			func(c *Config) *int64 { return &c.Server.MaxBody }, sizes(64*kib, gib)),
		row("server.body_timeout", "How long the body of a request may take to arrive. The server refuses a later one and closes its connection.", duration, 30*time.Second,
			func(c *Config) *time.Duration { return &c.Server.BodyTimeout }, durations(time.Second, time.Hour)),
		row("server.rate", "Requests per second that one user may make in the long run.", decimal, 50,
			func(c *Config) *float64 { return &c.Server.Rate }, numbers(0.01, 100_000)),
		row("server.burst", "Requests that one user may make at once above the rate.", integer, 200,
			func(c *Config) *int { return &c.Server.Burst }, numbers(1, 100_000)),
		row("server.max_concurrent", "Calls of one user that run at the same time.", integer, 64,
			func(c *Config) *int { return &c.Server.MaxConcurrent }, numbers(1, 10_000)),
		row("server.shutdown_grace", "How long the whole end of the server may take; running commands have sandbox.grace of it before they are ended, and what they changed is saved.", duration, 20*time.Second,
			func(c *Config) *time.Duration { return &c.Server.ShutdownGrace }, durations(0, time.Hour)),

		row("server.domain", "Name under which the whole internet reaches the server: it gets a certificate for it by ACME, and serves https.", str, "",
			func(c *Config) *string { return &c.Server.Domain }, domain).named("domain"),
		row("server.https_listen", "Address and port for https, where server.domain is set.", str, ":443",
			func(c *Config) *string { return &c.Server.HTTPSListen }, required, address),
		row("server.http_listen", "Address and port that answers ACME's challenges and sends browsers to https, where server.domain is set; empty for none, which challenges over https alone.", str, ":80",
			func(c *Config) *string { return &c.Server.HTTPListen }, address),
		row("server.acme_url", "Directory of the authority that certificates come from.", str, "https://acme-v02.api.letsencrypt.org/directory",
			func(c *Config) *string { return &c.Server.ACMEURL }, required, endpointURL),
		row("server.acme_email", "Address that the authority may write to about certificates.", str, "",
			func(c *Config) *string { return &c.Server.ACMEEmail }, mailbox),
		row("server.acme_ca_file", "File of further authorities (PEM) whose certificate the directory may have.", str, "",
			func(c *Config) *string { return &c.Server.ACMECAFile }, absolute),
		row("server.trusted_proxies", "Networks of reverse proxies whose X-Forwarded-For says where a request comes from. Forwarded headers of others are ignored, and none says under which URL the server is reached: that is public_url.", list, nil,
			func(c *Config) *[]string { return &c.Server.TrustedProxies }, eachOf(network)),

		row("database.url", "sqlite:PATH, or postgres://user:password@host/name for several servers. Give a password in the file or the variable: other users can see flags.", str, "",
			func(c *Config) *string { return &c.Database.URL }, databaseURL).secretly().shown("sqlite:satchel.db in data_dir"),

		row("log.level", "The least severity that is logged.", enum("debug", "info", "warn", "error"), "info",
			func(c *Config) *string { return &c.Log.Level }),
		row("log.format", "How log lines are written to standard error.", enum("text", "json"), "text",
			func(c *Config) *string { return &c.Log.Format }),
	}
}

func workKeys() []key {
	return []key{
		row("tools.prefix", "Put before the names of all tools, where a client mixes up those of several servers.", str, "",
			func(c *Config) *string { return &c.Tools.Prefix }, toolPrefix),
		row("tools.chatgpt", "Whether clients are offered search and fetch in ChatGPT's form: those that are ChatGPT, all, or none.", enum("auto", "always", "never"), "auto",
			func(c *Config) *string { return &c.Tools.ChatGPT }),

		row("sandbox.runtime", "What bash runs in; none switches bash off.", enum("gvisor", "none"), "gvisor",
			func(c *Config) *string { return &c.Sandbox.Runtime }),
		row("sandbox.rootfs", "Root file system whose programs the sandboxes use; empty for the host's /usr.", str, "",
			func(c *Config) *string { return &c.Sandbox.Rootfs }, absolute),
		row("sandbox.platform", "How gVisor intercepts system calls.", enum("systrap", "kvm", "ptrace"), "systrap",
			func(c *Config) *string { return &c.Sandbox.Platform }),
		row("sandbox.max", "Sandboxes that are up at the same time.", integer, 32,
			func(c *Config) *int { return &c.Sandbox.Max }, numbers(1, 10_000)),
		row("sandbox.total_memory", "Memory of all sandboxes together, above which idle ones are stopped.", size, 4*gib,
			func(c *Config) *int64 { return &c.Sandbox.TotalMemory }, sizes(64*mib, 64*tib)),
		row("sandbox.free_memory", "Memory of the machine, or of the cgroup that the server is in, that must stay available for a sandbox to start.", size, 64*mib,
			func(c *Config) *int64 { return &c.Sandbox.FreeMemory }, sizes(mib, 64*tib)),
		row("sandbox.memory", "Memory of one sandbox, the files it changes and its /tmp included.", size, 512*mib,
			func(c *Config) *int64 { return &c.Sandbox.Memory }, sizes(64*mib, tib)),
		row("sandbox.process_memory", "Address space of one process in a sandbox; 0 for as much as the sandbox has. Some language runtimes reserve far more than they use.", size, 0,
			func(c *Config) *int64 { return &c.Sandbox.ProcessMemory }, sizes(0, tib)),
		row("sandbox.processes", "Processes and threads of all commands in one sandbox.", integer, 256,
			func(c *Config) *int { return &c.Sandbox.Processes }, numbers(8, 1_000_000)),
		row("sandbox.cpus", "Processors that one sandbox may keep busy.", decimal, 2,
			func(c *Config) *float64 { return &c.Sandbox.CPUs }, numbers(0.05, 1024)),
		row("sandbox.disk", "Changed files that one sandbox holds, in its memory.", size, 256*mib,
			func(c *Config) *int64 { return &c.Sandbox.Disk }, sizes(mib, tib)),
		row("sandbox.inodes", "Changed files that one sandbox holds, by count.", integer8, 100_000,
			func(c *Config) *int64 { return &c.Sandbox.Inodes }, numbers[int64](100, 100_000_000)),
		row("sandbox.tmp", "Size of /tmp in one sandbox, in its memory.", size, 64*mib,
			func(c *Config) *int64 { return &c.Sandbox.Tmp }, sizes(mib, tib)),
		row("sandbox.open_files", "Files that one process in a sandbox holds open.", integer, 1024,
			func(c *Config) *int { return &c.Sandbox.OpenFiles }, numbers(64, 1_000_000)),
		row("sandbox.file_size", "Largest file that a command can write.", size, 128*mib,
			func(c *Config) *int64 { return &c.Sandbox.FileSize }, sizes(mib, tib)),
		row("sandbox.idle_stop", "How long a sandbox stays up without a command.", duration, 10*time.Minute,
			func(c *Config) *time.Duration { return &c.Sandbox.IdleStop }, durations(100*time.Millisecond, 30*day)),
		row("sandbox.wall_time", "How long one command or background job may run.", duration, 10*time.Minute,
			func(c *Config) *time.Duration { return &c.Sandbox.WallTime }, durations(time.Second, 30*day)),
		row("sandbox.detach_after", "When a command that still runs is answered and goes on as a background job.", duration, 45*time.Second,
			func(c *Config) *time.Duration { return &c.Sandbox.DetachAfter }, durations(time.Second, 30*day)),
		row("sandbox.grace", "How long a command has between being asked to end and being killed.", duration, 5*time.Second,
			func(c *Config) *time.Duration { return &c.Sandbox.Grace }, durations(0, 10*time.Minute)),
		row("sandbox.answer_time", "How long a sandbox in use may give no sign of life before it is ended.", duration, 20*time.Second,
			func(c *Config) *time.Duration { return &c.Sandbox.AnswerTime }, durations(time.Second, 10*time.Minute)),
		row("sandbox.reap_every", "How often what no sandbox owns is looked for and removed.", duration, time.Minute,
			func(c *Config) *time.Duration { return &c.Sandbox.ReapEvery }, durations(time.Second, day)),
		row("sandbox.output_chars", "Characters of a command's output that its caller is given.", integer, 30_000,
			func(c *Config) *int { return &c.Sandbox.OutputChars }, numbers(1000, 1_000_000)),

		row("space.max_file", "Largest file in a space.", size, 10*mib,
			func(c *Config) *int64 { return &c.Space.MaxFile }, sizes(kib, 2*gib)),
		row("space.max_change", "Largest change that becomes one commit.", size, 100*mib,
			func(c *Config) *int64 { return &c.Space.MaxChange }, sizes(kib, 16*gib)),
		row("space.max_size", "Size of all files of a space.", size, gib,
			func(c *Config) *int64 { return &c.Space.MaxSize }, sizes(kib, tib)),

		row("space.max_files", "Files of a space.", integer, 200_000,
			func(c *Config) *int { return &c.Space.MaxFiles }, numbers(10, 10_000_000)),
		row("space.max_history", "Size of a space with its whole history, packed.", size, 4*gib,
			func(c *Config) *int64 { return &c.Space.MaxHistory }, sizes(mib, 64*tib)),
		row("space.tidy_after", "How long nothing is committed to a space before what its commits left on disk is consolidated.", duration, 2*time.Minute,
			func(c *Config) *time.Duration { return &c.Space.TidyAfter }, durations(time.Second, 30*day)),
		row("space.revert_time", "Longest time to find out what files become when changes are undone.", duration, 20*time.Second,
			func(c *Config) *time.Duration { return &c.Space.RevertTime }, durations(time.Second, time.Hour)),
		row("space.screen_secrets", "Whether to look for keys in files. A file with what looks like a key is not committed to a space with a remote, which would refuse every later push; without a remote it is committed with a warning.", boolean, true,
			func(c *Config) *bool { return &c.Space.ScreenSecrets }),

		row("remotes.workers", "Remotes that are spoken with at the same time.", integer, 4,
			func(c *Config) *int { return &c.Remotes.Workers }, numbers(1, 1000)),
		row("remotes.check_every", "How often a remote is looked at, at most, while its space is used.", duration, 5*time.Second,
			func(c *Config) *time.Duration { return &c.Remotes.CheckEvery }, durations(100*time.Millisecond, day)),
		row("remotes.poll_every", "How often a remote is looked at whose space was used lately.", duration, 5*time.Minute,
			func(c *Config) *time.Duration { return &c.Remotes.PollEvery }, durations(time.Second, 30*day)),
		row("remotes.retry_min", "Wait before the second try of what failed; each further one waits up to twice as long.", duration, time.Second,
			func(c *Config) *time.Duration { return &c.Remotes.RetryMin }, durations(time.Millisecond, day)),
		row("remotes.retry_max", "Longest wait between tries of what may mend itself.", duration, 15*time.Minute,
			func(c *Config) *time.Duration { return &c.Remotes.RetryMax }, durations(time.Millisecond, 30*day)),
		row("remotes.retry_refused", "Wait between tries of what somebody must mend, such as a withdrawn access.", duration, time.Hour,
			func(c *Config) *time.Duration { return &c.Remotes.RetryRefused }, durations(time.Millisecond, 30*day)),
		row("remotes.timeout", "How long one transfer may take.", duration, time.Hour,
			func(c *Config) *time.Duration { return &c.Remotes.Timeout }, durations(time.Second, day)),
		row("remotes.stall_timeout", "How long a transfer may tell nothing of its progress.", duration, 5*time.Minute,
			func(c *Config) *time.Duration { return &c.Remotes.StallTimeout }, durations(time.Second, day)),
		row("remotes.long_after", "From when on a transfer gives its place among the workers to others, and goes on beside them.", duration, 30*time.Second,
			func(c *Config) *time.Duration { return &c.Remotes.LongAfter }, durations(100*time.Millisecond, day)),
		row("remotes.git_memory", "Memory of one process of git.", size, gib,
			func(c *Config) *int64 { return &c.Remotes.GitMemory }, sizes(64*mib, tib)),
		row("remotes.allow_networks", "Networks, such as 10.1.0.0/16, in which remotes may be although they are private.", list, nil,
			func(c *Config) *[]string { return &c.Remotes.AllowNetworks }, eachOf(network)),
		row("remotes.allow_ports", "Ports that remotes may have; 443 is one of them only where it is named.", list, []string{"443"},
			func(c *Config) *[]string { return &c.Remotes.AllowPorts }, eachOf(port)),
		row("remotes.ca_file", "File of further authorities (PEM) whose certificates remotes may have.", str, "",
			func(c *Config) *string { return &c.Remotes.CAFile }, absolute),
		row("remotes.ssh_key", "Private key for remotes that are reached by ssh; without one none is.", str, "",
			func(c *Config) *string { return &c.Remotes.SSHKey }, absolute),
		row("remotes.ssh_known_hosts", "File of the hosts that may be reached by ssh, as ssh writes it.", str, "",
			func(c *Config) *string { return &c.Remotes.SSHKnownHosts }, absolute),

		row("held.max_size", "Size of all files of one person that could not be committed and are kept between sandboxes.", size, 64*mib,
			func(c *Config) *int64 { return &c.Held.MaxSize }, sizes(kib, 64*gib)),
		row("held.max_files", "How many such files are kept.", integer, 1000,
			func(c *Config) *int { return &c.Held.MaxFiles }, numbers(1, 1_000_000)),
		row("held.max_file", "Largest such file. The limit is never more than a sixteenth of sandbox.memory or than space.max_change, and never less than space.max_file.", size, 32*mib,
			func(c *Config) *int64 { return &c.Held.MaxFile }, sizes(kib, 2*gib)),

		row("search.max_tokens", "Tokens that one search answers with, where the caller does not say.", integer, 5000,
			func(c *Config) *int { return &c.Search.MaxTokens }, numbers(100, 100_000)),
		row("search.limit", "Results that one search answers with, where the caller does not say.", integer, 10,
			func(c *Config) *int { return &c.Search.Limit }, numbers(1, 50)),
		row("search.wait", "How long searches wait for an index, counted from when it fell behind its space. Later searches do not wait, and say by how much the index is behind.", duration, 2*time.Second,
			func(c *Config) *time.Duration { return &c.Search.Wait }, durations(0, time.Minute)),
		row("search.max_time", "When a search is given up; queries that are made to be slow come near to it.", duration, 10*time.Second,
			func(c *Config) *time.Duration { return &c.Search.MaxTime }, durations(100*time.Millisecond, 10*time.Minute)),
		row("search.max_concurrent", "Searches of one user that run at the same time; more wait for them.", integer, 4,
			func(c *Config) *int { return &c.Search.MaxConcurrent }, numbers(1, 1000)),
		row("search.max_waiting", "Searches of one user that wait for others of theirs; more are refused.", integer, 64,
			func(c *Config) *int { return &c.Search.MaxWaiting }, numbers(0, 10_000)),
		row("search.cache_size", "Memory in which the index keeps what searches read of it, of all spaces together; each space whose index is open takes up to as much besides.", size, 8*mib,
			func(c *Config) *int64 { return &c.Search.CacheSize }, sizes(mib, 16*gib)),
		row("search.models_wait", "How long one search waits for all the models below that it asks, together.", duration, 1500*time.Millisecond,
			func(c *Config) *time.Duration { return &c.Search.ModelsWait }, durations(time.Millisecond, time.Minute)),

		row("search.embeddings.url", "URL of an endpoint in OpenAI's form, such as http://127.0.0.1:11434/v1, or unix:/path of a socket; empty for none.", str, "",
			func(c *Config) *string { return &c.Search.Embeddings.URL }, endpointURL),
		row("search.embeddings.model", "What the endpoint calls the model; without a URL, the directory of an ONNX model, which satchel-embed runs on this machine.", str, "",
			func(c *Config) *string { return &c.Search.Embeddings.Model }),
		row("search.embeddings.key", "Key that the endpoint asks for. Give it in the file or the variable: other users can see flags.", str, "",
			func(c *Config) *string { return &c.Search.Embeddings.Key }).secretly(),
		row("search.embeddings.key_file", "File that holds the key.", str, "",
			func(c *Config) *string { return &c.Search.Embeddings.KeyFile }, absolute),
		row("search.embeddings.dimensions", "Length that vectors are asked to have; 0 for the model's own.", integer, 0,
			func(c *Config) *int { return &c.Search.Embeddings.Dimensions }, numbers(0, 16384)),
		row("search.embeddings.query_prefix", "Put before a query, where the model wants it, such as \"search_query: \".", str, "",
			func(c *Config) *string { return &c.Search.Embeddings.QueryPrefix }, short),
		row("search.embeddings.document_prefix", "Put before a passage, where the model wants it, such as \"search_document: \".", str, "",
			func(c *Config) *string { return &c.Search.Embeddings.DocumentPrefix }, short),
		row("search.embeddings.encoding", "How vectors are asked for; base64 is a quarter of the bytes, and not known to every endpoint.", enum("float", "base64"), "float",
			func(c *Config) *string { return &c.Search.Embeddings.Encoding }),
		row("search.embeddings.max_chars", "Characters of a passage that are embedded; the model must take as many.", integer, 6000,
			func(c *Config) *int { return &c.Search.Embeddings.MaxChars }, numbers(100, 1_000_000)),
		row("search.embeddings.batch", "Passages in one request.", integer, 64,
			func(c *Config) *int { return &c.Search.Embeddings.Batch }, numbers(1, 2048)),
		row("search.embeddings.batch_tokens", "Tokens in one request, by estimate.", integer, 16_000,
			func(c *Config) *int { return &c.Search.Embeddings.BatchTokens }, numbers(100, 1_000_000)),
		row("search.embeddings.parallel", "Requests for passages of one collection that are under way at once.", integer, 2,
			func(c *Config) *int { return &c.Search.Embeddings.Parallel }, numbers(1, 64)),
		row("search.embeddings.requests_per_minute", "Requests that the endpoint allows; 0 for no limit.", integer, 0,
			func(c *Config) *int { return &c.Search.Embeddings.RequestsPerMinute }, numbers(0, 1_000_000)),
		row("search.embeddings.tokens_per_minute", "Tokens that the endpoint allows, by estimate; 0 for no limit.", integer, 0,
			func(c *Config) *int { return &c.Search.Embeddings.TokensPerMinute }, numbers(0, 1_000_000_000)),
		row("search.embeddings.timeout", "How long one request for passages may take.", duration, time.Minute,
			func(c *Config) *time.Duration { return &c.Search.Embeddings.Timeout }, durations(time.Second, time.Hour)),
		row("search.embeddings.query_wait", "How long a search waits for its query's vector before it goes by words alone.", duration, 300*time.Millisecond,
			func(c *Config) *time.Duration { return &c.Search.Embeddings.QueryWait }, durations(time.Millisecond, time.Minute)),
		row("search.embeddings.weight", "Share of the meaning in a page's score, beside its words: 0 to 1.", decimal, 0.5,
			func(c *Config) *float64 { return &c.Search.Embeddings.Weight }, numbers(0.01, 1)),
		row("search.embeddings.cache_size", "Size of the cache of what was embedded, on disk.", size, gib,
			func(c *Config) *int64 { return &c.Search.Embeddings.CacheSize }, sizes(mib, tib)),

		row("search.rerank.url", "URL of an endpoint in Cohere's or Jina's form, to which /rerank is added; empty for none.", str, "",
			func(c *Config) *string { return &c.Search.Rerank.URL }, endpointURL),
		row("search.rerank.model", "What the endpoint calls the model; empty where it has but one.", str, "",
			func(c *Config) *string { return &c.Search.Rerank.Model }),
		row("search.rerank.key", "Key that the endpoint asks for. Give it in the file or the variable: other users can see flags.", str, "",
			func(c *Config) *string { return &c.Search.Rerank.Key }).secretly(),
		row("search.rerank.key_file", "File that holds the key.", str, "",
			func(c *Config) *string { return &c.Search.Rerank.KeyFile }, absolute),
		row("search.rerank.count", "Results that are judged.", integer, 30,
			func(c *Config) *int { return &c.Search.Rerank.Count }, numbers(2, 200)),
		row("search.rerank.max_chars", "Characters of a result that are judged.", integer, 2000,
			func(c *Config) *int { return &c.Search.Rerank.MaxChars }, numbers(100, 100_000)),
		row("search.rerank.wait", "How long a search waits for the judgments before it goes without.", duration, 1500*time.Millisecond,
			func(c *Config) *time.Duration { return &c.Search.Rerank.Wait }, durations(time.Millisecond, time.Minute)),
		row("search.rerank.weight", "Share of the judgment in the order of what is judged: 0 to 1.", decimal, 0.7,
			func(c *Config) *float64 { return &c.Search.Rerank.Weight }, numbers(0.01, 1)),

		row("search.expand.url", "URL of a chat endpoint in OpenAI's form, which is asked for other words of a query; empty for none.", str, "",
			func(c *Config) *string { return &c.Search.Expand.URL }, endpointURL),
		row("search.expand.model", "What the endpoint calls the model.", str, "",
			func(c *Config) *string { return &c.Search.Expand.Model }),
		row("search.expand.key", "Key that the endpoint asks for. Give it in the file or the variable: other users can see flags.", str, "",
			func(c *Config) *string { return &c.Search.Expand.Key }).secretly(),
		row("search.expand.key_file", "File that holds the key.", str, "",
			func(c *Config) *string { return &c.Search.Expand.KeyFile }, absolute),
		row("search.expand.wait", "How long a search waits for the words before it goes without.", duration, 1500*time.Millisecond,
			func(c *Config) *time.Duration { return &c.Search.Expand.Wait }, durations(time.Millisecond, time.Minute)),
	}
}

// sections says what each section is about, for the reference.
var sections = []struct{ name, doc string }{
	{"", ""},
	{"server", "How clients reach the server, and how much one of them may ask."},
	{"database", "Where users, keys and other rows are kept. Spaces are always git repositories in `data_dir`."},
	{"log", "What the server says about its work."},
	{"auth", "Who may use the server, and what clients are given. See docs/auth.md."},
	{"auth.issuer", "Another issuer's access tokens, in place of the built-in authorization server. Off without a URL. docs/auth.md has the settings for Supabase, Auth0, Keycloak and Entra."},
	{"auth.oidc", "Signing in with an OpenID provider. Off without a URL."},
	{"auth.github", "Signing in with GitHub. Off without a client id."},
	{"auth.mail", "Signing in by a mailed link. Off without a URL."},
	{"web", "What the pages do by themselves, and how much one act on them may."},
	{"api", "How much the REST API may be asked. See docs/api.md."},
	{"github", "Repositories at GitHub that people connect by the GitHub App; which GitHub it is says `auth.github.url`. See docs/github.md."},
	{"library", "What people publish of their spaces."},
	{"tools", "How the tools present themselves to clients."},
	{"sandbox", "Where `bash` runs, and within what limits."},
	{"space", "What a space may hold."},
	{"remotes", "How spaces are kept in step with repositories elsewhere."},
	{"held", "What becomes of files that cannot be committed."},
	{"search", "How much a search answers."},
	{"search.embeddings", "A model of what texts mean, so that pages are found that say it in other words. Off where neither a URL nor a model is named."},
	{"search.rerank", "A model that judges the best results once more. Off without a URL."},
	{"search.expand", "A model that knows other words for what is asked. Off without a URL."},
}

// AddFlags adds --data and --config, which every command takes.
func AddFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "configuration `FILE` (default satchel.yaml in the data directory, else /etc/satchel/satchel.yaml)")
	addKeys(fs, func(k *key) bool { return k.path == "data_dir" })
}

// AddServerFlags adds a flag for every other key, which `serve` takes.
func AddServerFlags(fs *pflag.FlagSet) {
	addKeys(fs, func(k *key) bool { return k.path != "data_dir" })
}

func addKeys(fs *pflag.FlagSet, want func(*key) bool) {
	for _, k := range keys() {
		if !want(&k) {
			continue
		}
		usage := strings.TrimSuffix(k.doc, ".")
		if strings.HasPrefix(k.form, "one of ") {
			usage += ": " + k.form
		}
		if k.def != "" {
			usage += " (default " + k.def + ")"
		}
		// All flags are texts here, so that Load judges them as it does the rest.
		f := fs.VarPF(new(textFlag), k.flag, "", strings.ReplaceAll(usage, "`", "'"))
		f.DefValue = ""
	}
}

// textFlag is a flag that keeps what it is given.
type textFlag string

func (t *textFlag) String() string     { return string(*t) }
func (t *textFlag) Set(s string) error { *t = textFlag(s); return nil }
func (t *textFlag) Type() string       { return "value" }
