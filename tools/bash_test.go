package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/tools"
)

func someCommit(files int) space.Commit {
	c := space.Commit{
		ID: "0123456789abcdef0123456789abcdef01234567", Message: "Note the deploy steps\n\nMore of it.", Changed: true,
	}
	for i := range files {
		c.Files = append(c.Files, space.FileChange{
			Path: space.Path("knowledge/" + string(rune('a'+i%26)) + ".md"), Status: []space.FileStatus{space.Added, space.Modified, space.Deleted}[i%3], New: space.BlobID(fmt.Sprintf("%040x", i)),
		})
	}
	return c
}

// TestBashAnswers snapshots what a model reads for each outcome of a command, and the
// machine-readable part.
func TestBashAnswers(t *testing.T) {
	local := service.PushState{State: "local"}
	tests := []struct {
		name    string
		result  sandbox.Result
		detail  string
		push    service.PushState
		isError bool
	}{
		{name: "output", result: sandbox.Result{End: service.Exited, Stdout: sandbox.Output{Text: "hello\n"}, Duration: 12 * time.Millisecond}},
		{name: "no-output", result: sandbox.Result{End: service.Exited, Duration: 3 * time.Millisecond}},
		{name: "no-match", result: sandbox.Result{End: service.Exited, ExitCode: 1, Duration: 40 * time.Millisecond}},
		{name: "both-streams", result: sandbox.Result{End: service.Exited, ExitCode: 2, Stdout: sandbox.Output{Text: "out"}, Stderr: sandbox.Output{Text: "err\n"}, Duration: 1500 * time.Millisecond}},
		{name: "signal", result: sandbox.Result{End: service.Exited, ExitCode: 137, Signal: "SIGKILL", Stderr: sandbox.Output{Text: "Killed\n"}, Duration: time.Second}},
		{name: "cut", result: sandbox.Result{End: service.Exited, Stdout: sandbox.Output{Text: "first\n[… 1234567 bytes cut here; more of it is in /run/satchel/output/7/stdout …]\nlast\n", Cut: 1234567, Saved: "/run/satchel/output/7/stdout"}, Duration: 61 * time.Second}},
		{name: "limits", result: sandbox.Result{End: service.Exited, ExitCode: 1, Stderr: sandbox.Output{Text: "cp: error writing 'b': No space left on device\n"}, Duration: 2 * time.Second,
			Limits: []sandbox.Limit{"sandbox.disk", "sandbox.inodes"},
			Notes: []string{"The sandbox is full: the changed files in it can have 256 MB (the server's operator can raise sandbox.disk).",
				"The sandbox is full: it can have 100000 changed files (the server's operator can raise sandbox.disk)."}}},
		{name: "timed-out", result: sandbox.Result{End: service.TimedOut, Stdout: sandbox.Output{Text: "so far\n"}, Duration: 10 * time.Minute, Limits: []sandbox.Limit{"sandbox.wall_time"},
			Notes: []string{"The command was ended after 10m0s, the time limit (the server's operator can raise sandbox.wall_time)."}}, isError: true},
		{name: "out-of-memory", result: sandbox.Result{End: service.OutOfMemory, Duration: 2 * time.Second, Limits: []sandbox.Limit{"sandbox.memory"}}, detail: "The sandbox ran out of memory (512 MB). The command's changes are lost.", isError: true},
		{name: "out-of-memory-plain", result: sandbox.Result{End: service.OutOfMemory, Duration: 2 * time.Second}, isError: true},
		{name: "lost", result: sandbox.Result{End: service.Lost, Duration: 2 * time.Second}, isError: true},
		{name: "stopped", result: sandbox.Result{End: service.Stopped, Commits: []space.Commit{someCommit(1)}, Duration: 2 * time.Second}, push: local, isError: true},
		{name: "conflict-without-commit", result: sandbox.Result{End: service.Exited, Conflicts: []space.Conflict{{Path: "b.md"}}, Duration: 30 * time.Millisecond}},
		{name: "job", result: sandbox.Result{End: service.Detached, JobID: "3", JobDir: "/run/satchel/jobs/3", Stdout: sandbox.Output{Text: "working\n"}, Duration: 45 * time.Second, Notes: []string{"The command continues as job 3; its output is in /run/satchel/jobs/3. Its changes are committed when it ends."}}},
		{name: "not-saved", result: sandbox.Result{End: service.Exited, Stdout: sandbox.Output{Text: "written\n"}, Commits: []space.Commit{someCommit(1)}, Duration: 30 * time.Millisecond,
			NotSaved: fault.New(fault.Unavailable, "The sandbox ended. The command's changes are lost.")}, push: local, isError: true},
		{name: "commit", result: sandbox.Result{End: service.Exited, Commits: []space.Commit{someCommit(3)}, Duration: 30 * time.Millisecond}, push: local},
		{name: "many-files", result: sandbox.Result{End: service.Exited, Commits: []space.Commit{someCommit(26)}, Duration: 30 * time.Millisecond}, push: service.PushState{State: "queued"}},
		{name: "push-failed", result: sandbox.Result{End: service.Exited, Commits: []space.Commit{someCommit(1)},
			Duration: 30 * time.Millisecond}, push: service.PushState{State: "failed", Detail: "the repository is gone; connect it again on the web page"}},
		{name: "troubles", result: func() sandbox.Result {
			c := someCommit(1)
			c.Rejected = []space.Rejection{{Path: "bad\x1b[2J\nname\xff", Why: "it has a control character (U+001B)"}}
			c.Conflicts = []space.Conflict{{Path: "a.md", Kept: "a.conflict-0123456789.md"}, {Path: "b.md"}}
			return sandbox.Result{End: service.Exited, Commits: []space.Commit{c}, Duration: 30 * time.Millisecond,
				Restarted: true, Conflicts: c.Conflicts[1:],
				Pending: []space.Rejection{c.Rejected[0], {Path: "big.iso", Why: "it has 2.0 GB, and 10.0 MB are allowed"}},
				Notes:   []string{"This is a new sandbox, because the last one was idle: background processes and /tmp of before are gone.", "The sandbox is nearly full: 240 of 256 MB are used."}}
		}(), push: local},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tools.BashResult(false, "x", "bash", service.CommandResult{Result: tt.result, Detail: tt.detail, Push: tt.push})
			if r.IsError != tt.isError {
				t.Errorf("IsError is %v", r.IsError)
			}
			if r.Structured != nil || len(r.Content) != 1 {
				t.Error("bash answers one plain text")
			}
			meta, err := json.MarshalIndent(r.Meta, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "bash/"+tt.name+".txt", textOf(r)+"\n----\n"+string(meta)+"\n")
		})
	}
}

// TestBashSaysWhatWorksInstead where a command could not write.
func TestBashSaysWhatWorksInstead(t *testing.T) {
	tests := []struct {
		name, tool, command, stderr string
		c                           tools.Caller
		want                        string // "!" before what must not be there
	}{
		{"read-only file system", "bash_readonly", "touch x", "touch: cannot touch 'x': Read-only file system\n", editor(), "[nothing can be saved here; use bash]"},
		{"no right to write", "bash_readonly", "mkdir x", "mkdir: cannot create directory 'x': Permission denied\n", editor(), "[nothing can be saved here; use bash]"},
		{"a redirection", "bash_readonly", "echo > x", "bash: line 1: x: Permission denied\n", editor(), "[nothing can be saved here; use bash]"},
		{"a caller who cannot write", "bash_readonly", "touch x", "touch: cannot touch 'x': Read-only file system\n", reader(), "[nothing can be saved here: this connection is read-only]"},
		{"a file that cannot be read", "bash_readonly", "cat x", "cat: x: Permission denied\n", editor(), "!saved"},
		{"a directory that cannot be listed", "bash_readonly", "ls x", "ls: cannot open directory 'x': Permission denied\n", editor(), "!saved"},
		{"a script that cannot be run", "bash_readonly", "./x", "bash: line 1: ./x: Permission denied\n", editor(), "!saved"},
		{"git", "bash", "git revert HEAD", "fatal: Unable to create '/space/.git/index.lock': Read-only file system\n", editor(), "git show COMMIT:path > path"},
		{"git, where the server is not root", "bash", "git stash", "fatal: Unable to create '/space/.git/index.lock': Permission denied\n", editor(), "git show COMMIT:path > path"},
		{"git notes", "bash", "git notes add -m x", "error: insufficient permission for adding an object to repository database .git/objects\nfatal: unable to write note object\n", editor(), "git show COMMIT:path > path"},
		{"git, of a caller who can only read", "bash_readonly", "git add x", "fatal: Unable to create '/space/.git/index.lock': Read-only file system\n", editor(), "[nothing can be saved here; use bash]"},
		{"a shell with a path", "bash_readonly", "echo > x", "/bin/bash: line 1: x: Permission denied\n", editor(), "[nothing can be saved here; use bash]"},
		{"another error", "bash", "false", "no\n", editor(), "!git show"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil, nil)
			b.run.result = protocol.ExecResult{ExitCode: 1, Stderr: protocol.Output{Head: []byte(tt.stderr)}}
			args, _ := json.Marshal(map[string]string{"command": tt.command})
			check(t, b.callAs(t, tt.c, tt.tool, string(args)), false, tt.want)
		})
	}
}

func TestBashPassesOn(t *testing.T) {
	b := newBench(t, nil, nil)
	b.run.hold = make(chan struct{})
	step := sync.OnceFunc(func() { close(b.run.hold) })
	_, err := b.Call(t.Context(), editor(), "bash", json.RawMessage(`{"command":" echo 'a\nb' ","background":true}`), func(float64, float64, string) { step() })
	if err != nil {
		t.Fatal(err)
	}
	if r := b.run.last; r.Command != " echo 'a\nb' " || !r.Background || r.ReadOnly {
		t.Errorf("ran %+v", r)
	}
	b.callAs(t, reader(), "bash_readonly", `{"command":"ls"}`)
	if r := b.run.last; r.Command != "ls" || r.Background || !r.ReadOnly {
		t.Errorf("ran %+v", r)
	}
}

// TestComments: a comment becomes a commit's message, and can forge nothing in
// it.
func TestComments(t *testing.T) {
	long := strings.Repeat("many words ", 20)
	tests := []struct{ name, comment, want string }{
		{"none", "", ""},
		{"plain", "Note the deploy steps", "Note the deploy steps"},
		{"blanks", "  a \t b  ", "a b"},
		{"attack: forged trailers", "Fix\n\nSatchel-Client: someone-else\nSatchel-Tool: web", "Fix Satchel-Client: someone-else Satchel-Tool: web"},
		{"attack: terminal sequences", "a\x1b[2Jb\x00c", "a[2Jbc"},
		{"attack: text that runs backwards", "a\u202eb", "ab"},
		{"attack: other line ends", "a\u2028b\u0085c\vd", "a b c d"},
		{"long", long, "many words many words many words many words many words many words many…\n\n" + strings.TrimSpace(long)},
		{"one long word", strings.Repeat("é", 100), strings.Repeat("é", 71) + "…\n\n" + strings.Repeat("é", 100)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tools.CommitMessage(tt.comment); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestBashWithoutSandbox(t *testing.T) {
	b := newBench(t, nil, func(o *tools.Options) {
		o.Service, o.Prefix = withoutCommands(o), "my_"
	})
	for _, name := range []string{"my_bash", "my_bash_readonly"} {
		check(t, b.call(t, name, `{"command":"ls"}`), true, "switches bash off (sandbox.runtime: none). Nothing was run. my_search and my_read still work.")
	}
	if s := b.ServerInstructions(); !strings.Contains(s, "my_bash and my_bash_readonly fail") || strings.Contains(s, "save it with") || len(s) >= 2048 {
		t.Errorf("a client is told: %s", s)
	}
	for _, l := range b.List(t.Context(), editor()) {
		if strings.HasPrefix(l.Name, "my_bash") && !strings.HasPrefix(l.Description, "Do not call this: commands are switched off") {
			t.Errorf("%s is described as: %s", l.Name, l.Description)
		}
	}
	// Bad arguments are reported first, because they are wrong on every server.
	check(t, b.call(t, "my_bash", `{}`), true, `"command" is missing`)
}

// TestBadArguments: each is answered with what was wrong, and changes nothing.
func TestBadArguments(t *testing.T) {
	tests := []struct {
		tool, args string
		want       string
	}{
		{"bash", ``, `The argument "command" is missing: give it a string, for example "grep -rn deploy knowledge".`},
		{"bash", `null`, `"command" is missing`},
		{"bash", `{}`, `"command" is missing`},
		{"bash", `{"command":null}`, `"command" is missing`},
		{"bash", `{"command":""}`, `"command" is empty`},
		{"bash", `{"command":"  \n"}`, `"command" is empty`},
		{"bash", `{"command":5}`, `"command" must be a string, not the number 5.`},
		{"bash", `{"command":["ls"]}`, `must be a string, not a list.`},
		{"bash", `{"command":{"a":1}}`, `must be a string, not an object.`},
		{"bash", `{"command":true}`, `must be a string, not true.`},
		{"bash", `{"command":"ls","background":"yes"}`, `"background" must be true or false, not the string "yes".`},
		{"bash", `{"command":"ls","background":1}`, `must be true or false, not the number 1.`},
		{"bash", `{"command":"ls","comment":[]}`, `"comment" must be a string, not a list.`},
		{"bash", `{"cmd":"ls"}`, `"command" is missing`},
		{"bash", `{"comand":"ls"}`, `The argument "comand" is unknown. Did you mean "command"?`},
		{"bash", `{"comand":"ls","command":"ls"}`, `The argument "comand" is unknown. This tool takes command, comment, background.`},
		{"bash", `{"command":"ls","commant":"x"}`, `Did you mean "comment"?`},
		{"bash", `{"command":"ls","timeout":5}`, `The argument "timeout" is unknown. This tool takes command, comment, background.`},
		{"bash", `{"command":"ls","command":"rm"}`, `"command" is given twice`},
		{"bash", `{"command":"a\u0000b"}`, `NUL`},
		{"bash", `{"command":"` + strings.Repeat("x", 100_001) + `"}`, `100,001 bytes, and 100,000 are allowed`},
		{"bash_readonly", `{"command":"ls","comment":"x"}`, `The argument "comment" is for bash alone: bash_readonly changes nothing that a commit could describe. Leave it out.`},
		{"bash", `[]`, `must be one JSON object with the names command, comment, background`},
		{"bash", `"ls"`, `must be one JSON object`},
		{"bash", `{"command":"ls"`, `not valid JSON`},
		{"bash", `{"command":"ls"} {}`, `There is text after`},
		{"bash", `{"command":}`, `not valid JSON`},
		{"bash", "{\"command\":\"\xff\"}", `not valid UTF-8`},
		{"bash", `{"command":"` + strings.Repeat("x", 1<<20) + `"}`, `are allowed`},
		{"instructions", `{"topic":"x"}`, `The argument "topic" is unknown: this tool takes none.`},
		{"search", `{}`, `"query" is missing: give it a string, for example "deploy checklist".`},
		{"search", `{"q":"x"}`, `"query" is missing`},
		{"search", `{"query":"x","limit":0}`, `"limit" must be at least 1, not 0.`},
		{"search", `{"query":"x","limit":-3}`, `at least 1`},
		{"search", `{"query":"x","limit":1.5}`, `must be a whole number, not the number 1.5.`},
		{"search", `{"query":"x","limit":"5"}`, `must be a whole number, not the string "5".`},
		{"search", `{"query":"x","limit":1e999}`, `must be a whole number`},
		{"search", `{"query":"x","since":"2026-02-30"}`, `must be a date`},
		{"search", `{"query":"x","sorce":"y"}`, `Did you mean "source"?`},
		{"read", `{}`, `"paths" is missing: give it a list of strings, for example ["knowledge/notes.md"].`},
		{"read", `{"path":"a.md"}`, `Did you mean "paths"?`},
		{"read", `{"paths":"a.md"}`, `"paths" must be a list of strings, for example ["knowledge/notes.md"], not the string "a.md".`},
		{"read", `{"paths":[]}`, `"paths" is an empty list`},
		{"read", `{"paths":[1]}`, `"paths[0]" must be a string, not the number 1.`},
		{"read", `{"paths":["a",null]}`, `"paths[1]" must be a string, not null.`},
		{"read", `{"paths":["a"],"max_tokens":{}}`, `"max_tokens" must be a whole number, not an object.`},
		{"read", `{"paths":[` + strings.Repeat(`"a",`, 50) + `"a"]}`, `51 entries, and 50 are allowed`},
		{"fetch", `{"id":7}`, `"id" must be a string, not the number 7.`},
		{"fetch", `{}`, `"id" is missing`},
	}
	b := newBench(t, map[string]string{"a": "a\n"}, nil)
	for _, tt := range tests {
		t.Run(tt.tool+" "+tt.args[:min(len(tt.args), 40)], func(t *testing.T) {
			r := b.call(t, tt.tool, tt.args)
			check(t, r, true, tt.want)
			if len(textOf(r)) > 1000 {
				t.Errorf("the error has %d bytes", len(textOf(r)))
			}
			if r.Meta["error"] != string(fault.Invalid) {
				t.Errorf("told as %v", r.Meta["error"])
			}
		})
	}
	if b.run.runs != 0 {
		t.Error("a command ran")
	}
	t.Run("all at once", func(t *testing.T) {
		check(t, b.call(t, "search", `{"limit":0,"sorce":"x","since":"2026-99"}`), true, `"query" is missing`, `at least 1`, `"source"`, `must be a date`)
	})
	t.Run("null is as good as nothing", func(t *testing.T) {
		check(t, b.call(t, "bash", `{"command":"ls","comment":null,"background":null}`), false)
		check(t, b.call(t, "instructions", `null`), false)
	})
}
