package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"satchel/internal/testenv"
)

var update = flag.Bool("update", false, "write the golden files of testdata/script anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"satchel": func() { os.Exit(run()) }})
}

// TestScripts runs what an operator types. Each script has a home directory of
// its own, and the data directory is $DATA. Sandboxes are off, but where a
// script switches them on.
func TestScripts(t *testing.T) {
	for _, name := range []string{"git", "bash"} {
		testenv.NeedProgram(t, name)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			for k, v := range map[string]string{
				"HOME": home, "USERPROFILE": home,
				"DATA":                    filepath.Join(home, ".local", "share", "satchel"),
				"SATCHEL_SANDBOX_RUNTIME": "none",
				"SATCHEL_LISTEN":          "",
				"BIN":                     filepath.SplitList(e.Getenv("PATH"))[0], // satchel alone
				"GIT_CONFIG_NOSYSTEM":     "1", "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
				"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org",
			} {
				e.Setenv(k, v)
			}
			e.Values[servers{}] = map[string]*server{}
			// Its example of a hook is run.
			guide, err := os.ReadFile("../../docs/search.md")
			if err != nil {
				return err
			}
			return errors.Join(os.Mkdir(home, 0o755), os.WriteFile(filepath.Join(e.WorkDir, "search.md"), guide, 0o644))
		},
		Condition: func(cond string) (bool, error) {
			if cond == "modes" {
				return runtime.GOOS != "windows", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"end": cmdEnd, "shape": cmdShape, "field": cmdField, "mode": cmdMode,
			"status": cmdStatus, "tool": cmdTool, "normalise": cmdNormalise, "nowhere": cmdNowhere,
			"serve": func(ts *testscript.TestScript, neg bool, args []string) { cmdServe(t, ts, neg, args) },
			"flip":  cmdFlip, "flipobject": cmdFlipObject, "refused": cmdRefused,
			"remote": func(ts *testscript.TestScript, neg bool, args []string) { cmdRemote(t, ts, neg, args) },
		},
	})
}

// servers is the key of a script's running servers, by name.
type servers struct{}

type server struct {
	cmd            *exec.Cmd
	stdout, stderr *bytes.Buffer
	ended          chan error
}

// cmdServe starts `satchel serve ARGS…` on a free port under a NAME, and waits
// for the whole greeting. It sets $NAME_url; the output is in NAME.out then.
func cmdServe(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME ARG…")
	}
	name := args[0]
	args = append([]string{"serve", "--listen", "127.0.0.1:0"}, args[1:]...)
	path, err := exec.LookPath(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "satchel"))
	ts.Check(err)
	s := &server{cmd: exec.CommandContext(testenv.Context(t), path, args...), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, ended: make(chan error, 1)}
	for _, k := range []string{"HOME", "USERPROFILE", "PATH", "TMPDIR", "SATCHEL_SANDBOX_RUNTIME", "SATCHEL_DATABASE_URL", "SATCHEL_LOG_LEVEL", "SystemRoot"} {
		s.cmd.Env = append(s.cmd.Env, k+"="+ts.Getenv(k))
	}
	s.cmd.Dir, s.cmd.Stderr = ts.Getenv("WORK"), s.stderr
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() { _ = s.cmd.Process.Kill(); <-s.ended })

	greeted := make(chan struct{})
	go func() {
		// The last line of the greeting is an empty one after how to stop, or with
		// --json the only one.
		lines, before := bufio.NewReader(out), ""
		for done := false; ; {
			line, err := lines.ReadString('\n')
			s.stdout.WriteString(line)
			if !done && (line == "\n" && strings.HasPrefix(before, "  Stop ") || strings.HasPrefix(line, `{"url"`)) {
				done = true
				close(greeted)
			}
			before = line
			if err != nil {
				break
			}
		}
		s.ended <- s.cmd.Wait()
		close(s.ended)
	}()
	select {
	case <-greeted:
	case err := <-s.ended:
		ts.Fatalf("serve ended (%v): %s", err, s.stderr)
	}
	text := s.stdout.String()
	url := strings.Replace(regexp.MustCompile(`http://(localhost|127\.0\.0\.1):\d+/mcp`).FindString(text), "localhost", "127.0.0.1", 1)
	ts.Setenv(name+"_url", url)
	ts.Setenv(name+"_base", strings.TrimSuffix(url, "/mcp"))
	ts.Setenv(name+"_port", regexp.MustCompile(`:(\d+)/`).FindStringSubmatch(url)[1])
	ts.Check(os.WriteFile(ts.MkAbs(name+".out"), []byte(text), 0o600))
	ts.Value(servers{}).(map[string]*server)[name] = s
}

// cmdEnd ends a server: `end NAME` in order, which must exit with 0, or
// `end NAME kill`. Its log is in NAME.log then.
func cmdEnd(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(servers{}).(map[string]*server)[args[0]]
	if len(args) == 2 {
		ts.Check(s.cmd.Process.Kill())
		<-s.ended
	} else {
		ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
		if err := <-s.ended; err != nil {
			ts.Fatalf("SIGTERM: %v\n%s", err, s.stderr)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".log"), s.stderr.Bytes(), 0o600))
}

// decodeOne reads exactly one JSON value from a file (or stdout).
func decodeOne(ts *testscript.TestScript, file string) any {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%s is not JSON: %v\n%s", file, err, ts.ReadFile(file))
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		ts.Fatalf("%s has more than one JSON value:\n%s", file, ts.ReadFile(file))
	}
	return v
}

// cmdShape asserts that a file has one JSON value, an object with exactly these
// keys or a list of such: `shape stdout id,name [COUNT]`.
func cmdShape(ts *testscript.TestScript, neg bool, args []string) {
	v := decodeOne(ts, args[0])
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	if len(args) == 3 && fmt.Sprint(len(list)) != args[2] {
		ts.Fatalf("%d values instead of %s", len(list), args[2])
	}
	want := strings.Split(args[1], ",")
	slices.Sort(want)
	for _, v := range list {
		var got []string
		o, _ := v.(map[string]any)
		for k := range o {
			got = append(got, k)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			ts.Fatalf("keys %v instead of %v", got, want)
		}
	}
}

// cmdField sets a variable from a JSON value: `field VAR stdout KEY`; of a list
// its first value's.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	v := decodeOne(ts, args[1])
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	o, _ := v.(map[string]any)
	if o[args[2]] == nil {
		ts.Fatalf("no %s in %v", args[2], v)
	}
	ts.Setenv(args[0], fmt.Sprint(o[args[2]]))
}

// cmdMode asserts a file's permissions: `mode 0600 FILE`.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%#o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s", args[1], got)
	}
}

// cmdStatus asserts the status of a GET: `status 200 URL`; the body is in
// body.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	res, err := http.Get(args[1])
	ts.Check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o600))
	if fmt.Sprint(res.StatusCode) != args[0] {
		ts.Fatalf("GET %s: %s", args[1], res.Status)
	}
}

// cmdTool calls a tool over MCP: `tool URL KEY NAME JSON`. What it answers is in
// answer; with ! the call must be refused.
func cmdTool(ts *testscript.TestScript, neg bool, args []string) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, args[2], args[3])
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, args[0], strings.NewReader(body))
	ts.Check(err)
	for k, v := range map[string]string{
		"Authorization": "Bearer " + strings.TrimSpace(args[1]), "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": args[2],
	} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("answer"), answer, 0o600))
	if failed := res.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"isError":true`)); failed != neg {
		ts.Fatalf("%s: %s", res.Status, answer)
	}
}

// cmdNormalise puts words for what differs between runs into a file: ports,
// keys and directories.
func cmdNormalise(ts *testscript.TestScript, neg bool, args []string) {
	text := ts.ReadFile(args[0])
	text = regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`).ReplaceAllString(text, "$1:PORT")
	text = regexp.MustCompile(`satchel_[\w-]{32,}`).ReplaceAllString(text, "KEY")
	text = strings.ReplaceAll(text, filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "satchel"), "/bin/satchel")
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "/tmp/test")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// cmdNowhere asserts that no file below a directory has a text: `nowhere DIR
// TEXT`.
func cmdNowhere(ts *testscript.TestScript, neg bool, args []string) {
	found := false
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(strings.TrimSpace(args[1]))) {
			found = true
			if !neg {
				ts.Fatalf("%s has it", path)
			}
		}
		return err
	}))
	if neg && !found {
		ts.Fatalf("no file has it")
	}
}
