package sandboxtest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// commandChecks are about one command: how it ends and what the caller sees.
var commandChecks = []check{
	{name: "exit codes, signals and both outputs are exact", real: true, run: func(e *exercise) {
		for _, c := range []struct {
			command, stdout, stderr, signal string
			code                            int
		}{
			{command: "true"},
			{command: "exit 3", code: 3},
			{command: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
			{command: "kill -9 $$", code: 137, signal: "SIGKILL"},
			{command: "kill -TERM $$", code: 143, signal: "SIGTERM"},
			{command: "cat", stdout: ""}, // standard input is empty, so cat ends at once
			{command: "cat readme.md link", stdout: "hello\nhello\n"},
			{command: "sh bin/tool", stdout: "tool\n"},
			{command: "bin/tool", stdout: "tool\n"},
			{command: "echo 'echo made' > made; chmod +x made; ./made; rm made", stdout: "made\n"},
		} {
			r := e.exec(c.command)
			if r.End != protocol.Exited || r.ExitCode != c.code || r.Signal != c.signal || r.Stdout.Text != c.stdout || r.Stderr.Text != c.stderr {
				e.Errorf("%s: end %d, code %d, signal %q, stdout %q, stderr %q", c.command, r.End, r.ExitCode, r.Signal, r.Stdout.Text, r.Stderr.Text)
			}
			if len(r.Commits) != 0 {
				e.Errorf("%s: a commit without a change: %+v", c.command, r.Commits)
			}
		}
	}},
	{name: "bad requests change nothing", run: func(e *exercise) {
		for name, r := range map[string]sandbox.Request{
			"empty":    e.request(" \n"),
			"NUL":      e.request("echo \x00"),
			"too long": e.request(strings.Repeat("a", sandbox.MaxCommand+1)),
			"no user":  {Space: e.space, Command: "true"},
			"no space": {User: e.user, Space: "s_unknown", Command: "true"},
		} {
			_, err := e.Pool.Exec(e.ctx, r)
			if c := fault.CodeOf(err); c == "" || c == fault.Internal {
				e.Errorf("%s: %v", name, err)
			}
		}
		if n := len(e.Runtime.Started()); n != 0 {
			e.Errorf("%d sandboxes were started", n)
		}
	}},
	{name: "output is cut in the middle and cleaned", run: func(e *exercise) {
		r := e.exec(`echo first; for i in {1..20000}; do echo "line $i"; done; echo last`)
		if n := utf8.RuneCountInString(r.Stdout.Text); n > 30_000 || n < 20_000 {
			e.Errorf("%d characters", n)
		}
		if !strings.HasPrefix(r.Stdout.Text, "first\n") || !strings.HasSuffix(r.Stdout.Text, "last\n") || r.Stdout.Cut == 0 || r.Stdout.Saved == "" {
			e.Errorf("cut %d, saved %q, text %.40q…", r.Stdout.Cut, r.Stdout.Saved, r.Stdout.Text)
		}
		r = e.exec(`printf '\033[31mred\033[0m \033]0;title\007done\r\n\377\000x'`)
		if want := "red done\n\ufffdx"; r.Stdout.Text != want {
			e.Errorf("%q, want %q", r.Stdout.Text, want)
		}
	}},
	{name: "a command is ended at its time limit with all it started", real: true, options: func(o *sandbox.Options) {
		o.WallTime, o.DetachAfter, o.Grace = 5*time.Second, -1, 100*time.Millisecond
	}, run: func(e *exercise) {
		r := e.exec(`echo kept > kept; (trap '' TERM; sleep 300) & trap '' TERM; sleep 300; sleep 300`)
		if r.End != protocol.TimedOut || r.ExitCode == 0 {
			e.Errorf("end %d, code %d", r.End, r.ExitCode)
		}
		e.wantNote(r, "time limit")
		e.wantFile("kept", &Entry{Content: "kept\n"})
		if r := e.sh("echo next"); r.Stdout.Text != "next\n" {
			e.Errorf("the next command: %+v", r)
		}
	}},
	{name: "a cancelled command ends and what it did is committed", run: func(e *exercise) {
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		r := e.request("echo kept > kept; echo started; sleep 300")
		r.OnProgress = func(p sandbox.Progress) {
			if p.Line == "started" {
				cancel()
			}
		}
		res, err := e.Pool.Exec(ctx, r)
		if err != nil || res.End != protocol.Canceled {
			e.Errorf("end %d, error %v", res.End, err)
		}
		e.wantFile("kept", &Entry{Content: "kept\n"})
	}},
	{name: "a read-only command changes nothing", real: true, run: func(e *exercise) {
		before := e.Store.Tree(e.space)
		r := e.request("cat readme.md; echo x > new; echo x > readme.md; rm -f docs/a.md; mv bin bin2; true")
		r.ReadOnly = true
		if res := e.do(r); res.Stdout.Text != "hello\n" || len(res.Commits) != 0 {
			e.Errorf("%+v", res)
		}
		if res := e.sh("cat docs/a.md; ls"); res.Stdout.Text != "a\nbin\ndeep\ndocs\nlink\nreadme.md\n" {
			e.Errorf("the space inside: %q", res.Stdout.Text)
		}
		e.wantTree(before)
	}},
	{name: "a long command continues as a job and is committed at its end", options: func(o *sandbox.Options) {
		o.DetachAfter = 5 * time.Second
	}, run: func(e *exercise) {
		r := e.request("echo one > one; echo out; sleep 300")
		r.Comment, r.Client = "The job's own comment", "the job's client"
		res := e.do(r)
		if res.End != protocol.Detached || res.JobID == "" || res.JobDir == "" || res.Stdout.Text != "out\n" {
			e.Fatalf("%+v", res)
		}
		e.wantNote(res, res.JobID)
		jobs, err := e.Pool.Jobs(e.ctx, e.jobOwner(false))
		if err != nil || len(jobs) != 1 || !jobs[0].Running || jobs[0].ID != res.JobID {
			e.Fatalf("jobs %+v, %v", jobs, err)
		}
		if err := e.Pool.KillJob(e.ctx, e.jobOwner(false), res.JobID, "SIGTERM"); err != nil {
			e.Fatal(err)
		}
		e.Store.Wait(e.ctx, e.space, func(t Tree) bool { return t["one"].Content == "one\n" })
		log := e.Store.Log(e.space)
		if c := log[len(log)-1]; c.Message != r.Comment || c.Client != r.Client {
			e.Errorf("the job's commit: %+v", c)
		}
		if err := e.Pool.KillJob(e.ctx, e.jobOwner(false), "none", "SIGTERM"); fault.CodeOf(err) != fault.NotFound {
			e.Errorf("killing no job: %v", err)
		}
	}},
	{name: "a read-only caller knows and stops its own jobs alone", run: func(e *exercise) {
		var ids [2]string
		for i, readOnly := range []bool{false, true} {
			r := e.request("sleep 300")
			r.Background, r.ReadOnly = true, readOnly
			ids[i] = e.do(r).JobID
		}
		for _, c := range []struct {
			readOnly bool
			want     []string
		}{{false, ids[:]}, {true, ids[1:]}} {
			jobs, err := e.Pool.Jobs(e.ctx, e.jobOwner(c.readOnly))
			var got []string
			for _, j := range jobs {
				got = append(got, j.ID)
			}
			slices.Sort(got)
			if err != nil || !slices.Equal(got, c.want) {
				e.Errorf("read-only %v: jobs %q, want %q, %v", c.readOnly, got, c.want, err)
			}
		}
		if err := e.Pool.KillJob(e.ctx, e.jobOwner(true), ids[0], "SIGKILL"); fault.CodeOf(err) != fault.NotFound {
			e.Errorf("a read-only caller stops the job of one who can write: %v", err)
		}
		for _, c := range []struct {
			readOnly bool
			id       string
		}{{true, ids[1]}, {false, ids[0]}} {
			if err := e.Pool.KillJob(e.ctx, e.jobOwner(c.readOnly), c.id, "SIGKILL"); err != nil {
				e.Errorf("read-only %v: its own job cannot be stopped: %v", c.readOnly, err)
			}
		}
	}},
	{name: "a background command answers at once and its end is reported later", run: func(e *exercise) {
		r := e.request("until [ -e go ]; do sleep 0.02; done; echo two > two; exit 4")
		r.Background = true
		res := e.do(r)
		if res.End != protocol.Detached || res.JobID == "" {
			e.Fatalf("%+v", res)
		}
		for res = e.sh("touch go"); len(res.Notes) == 0; {
			res = e.sh("sleep 0.05")
		}
		e.wantNote(res, "exit code 4")
		e.wantFile("two", &Entry{Content: "two\n"})
	}},
	{name: "progress has the phases and the newest line", run: func(e *exercise) {
		var phases []sandbox.Phase
		lines := map[string]bool{}
		r := e.request("echo one; sleep 0.4; printf '\\033[1mtwo\\033[0m'; until [ -e go ]; do sleep 0.02; done; echo x > f")
		seen := make(chan struct{})
		told := sync.OnceFunc(func() { close(seen) })
		r.OnProgress = func(p sandbox.Progress) {
			if strings.HasSuffix(p.Line, "two") {
				told()
			}
			if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
				phases = append(phases, p.Phase)
			}
			lines[p.Line] = true
		}
		done := e.start(r)
		select {
		case <-seen:
		case <-e.ctx.Done():
			e.Fatal("the newest line was never told")
		}
		e.sh("touch go")
		if o := e.wait(done); o.err != nil {
			e.Fatal(o.err)
		}
		// A short phase may be missing, except PhaseRunning.
		order := []sandbox.Phase{sandbox.PhaseQueued, sandbox.PhaseStarting, sandbox.PhaseRunning, sandbox.PhaseSaving}
		inOrder := slices.IsSortedFunc(phases, func(a, b sandbox.Phase) int {
			return slices.Index(order, a) - slices.Index(order, b)
		})
		if !inOrder || !slices.Contains(phases, sandbox.PhaseRunning) {
			e.Errorf("phases %q", phases)
		}
		if !lines["two"] && !lines["onetwo"] {
			e.Errorf("lines %v", lines)
		}
	}},
}
