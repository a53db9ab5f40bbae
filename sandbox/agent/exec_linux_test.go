package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/sandbox/protocol"
)

func TestExecSeveralAtOnce(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r, err := s.Exec(t.Context(), protocol.ExecRequest{Command: fmt.Sprintf("echo %d; sleep 0.1; echo err%d >&2; exit %d", i, i, i), HeadTail: 100}, nil)
			if err != nil || r.ExitCode != i || text(r.Stdout) != fmt.Sprintf("%d\n", i) || text(r.Stderr) != fmt.Sprintf("err%d\n", i) {
				t.Errorf("%d: %+v %v", i, r, err)
			}
		})
	}
	wg.Wait()
}

func TestTimeoutEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	r := s.exec(protocol.ExecRequest{Command: "setsid sleep 1001 & (setsid sh -c 'trap \"\" TERM; sleep 1002; sleep 1003' &) ; sleep 1004", WallTime: 300 * time.Millisecond, Grace: 200 * time.Millisecond})
	if r.End != protocol.TimedOut {
		t.Errorf("%+v", r)
	}
	noSleepers(t, s)
}

// noSleepers checks that no sleep is left, but for shells that wait.
func noSleepers(t *testing.T, s *sandbox) {
	t.Helper()
	if out := s.sh("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"); strings.Contains(out, "sleep 10") {
		t.Errorf("left behind: %s", out)
	}
}

func TestTimeoutGivesGrace(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	var r protocol.ExecResult
	for limit := time.Second; len(r.Stdout.Head) == 0; limit *= 2 { // until the command has begun before it
		r = s.exec(protocol.ExecRequest{Command: "trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.02; done", WallTime: limit, Grace: time.Hour})
	}
	if r.End != protocol.TimedOut || r.ExitCode != 9 || text(r.Stdout) != "ready\nsaved\n" {
		t.Errorf("%+v %q %q", r, text(r.Stdout), text(r.Stderr))
	}
}

func TestCancelEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Exec(ctx, protocol.ExecRequest{Command: "setsid sleep 1001 & echo started; sleep 1002", HeadTail: 100, Grace: time.Second}, func(protocol.Stream, []byte) { cancel() })
	if err != nil || r.End != protocol.Canceled || text(r.Stdout) != "started\n" || r.Signal != "SIGTERM" {
		t.Errorf("%+v %v", r, err)
	}
	noSleepers(t, s)
}

func TestLeftoversEndWithTheirCommand(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	for name, command := range map[string]string{
		"background":       "sleep 1001 & sleep 1002 & :",
		"setsid daemon":    "setsid -f sleep 1001; setsid -f setsid -f sleep 1002; sleep 0.2",
		"holds the output": "sleep 1001 & sleep 1002 2>&1 &",
		"ignores signals":  "(trap '' TERM HUP INT; setsid sleep 1001; sleep 1002) & sleep 0.1",
		"stopped":          "setsid sh -c 'kill -STOP $$; sleep 1001' & setsid sleep 1002 & sleep 0.1",
	} {
		start := time.Now()
		r := s.exec(protocol.ExecRequest{Command: command})
		if r.End != protocol.Exited || r.ExitCode != 0 || r.Leftover == 0 {
			t.Errorf("%s: %+v", name, r)
		}
		t.Logf("%s: %d in %v", name, r.Leftover, time.Since(start))
		noSleepers(t, s)
	}
}

func TestClosedOutputIsNotTheEnd(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	r := s.exec(protocol.ExecRequest{Command: "echo a; exec >&- 2>&-; sleep 0.2; exit 6"})
	if r.End != protocol.Exited || r.ExitCode != 6 || text(r.Stdout) != "a\n" {
		t.Errorf("%+v", r)
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	ends := make(chan protocol.JobEnd, 10)
	s.OnJobEnd(func(e protocol.JobEnd) { ends <- e })
	t.Run("detached after a while", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "echo first; until [ -e go ]; do sleep 0.05; done; echo last; echo bad >&2; exit 3", DetachAfter: 5 * time.Second})
		if r.End != protocol.Detached || text(r.Stdout) != "first\n" || r.JobDir != protocol.RunDir+"/jobs/"+r.JobID {
			t.Fatalf("%+v", r)
		}
		if got := s.sh("cat " + r.JobDir + "/status " + r.JobDir + "/stdout; touch go"); got != "running\nfirst\n" {
			t.Errorf("running: %q", got)
		}
		if e := <-ends; e.ID != r.JobID || e.ExitCode != 3 || e.Signal != "" {
			t.Errorf("%+v", e)
		}
		if got := s.sh("cd " + r.JobDir + "; cat status stdout stderr"); got != "exited 3\nfirst\nlast\nbad\n" {
			t.Errorf("ended: %q", got)
		}
	})
	t.Run("killed from outside", func(t *testing.T) {
		began := time.Now()
		r := s.exec(protocol.ExecRequest{Command: "setsid sleep 1001 & sleep 1002", Background: true})
		if r.End != protocol.Detached || r.JobID == "" {
			t.Fatalf("%+v", r)
		}
		jobs, err := s.Jobs(t.Context())
		must(t, err)
		last := jobs[len(jobs)-1]
		if last.ID != r.JobID || !last.Running || !strings.HasPrefix(last.Command, "setsid") || last.Started.Before(began.Add(-time.Hour)) {
			t.Errorf("%+v", last)
		}
		must(t, s.Kill(t.Context(), r.JobID, "TERM"))
		if e := <-ends; e.ID != r.JobID || e.Signal != "SIGTERM" || e.ExitCode != 143 {
			t.Errorf("%+v", e)
		}
		noSleepers(t, s)
		if err := s.Kill(t.Context(), r.JobID, "TERM"); err == nil {
			t.Error("killing an ended job succeeded")
		}
		if err := s.Kill(t.Context(), r.JobID, "NOSUCH"); err == nil {
			t.Error("an unknown signal was sent")
		}
	})
	t.Run("killed from inside", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "echo $$; exec sleep 1001", Background: true})
		s.sh("until [ -s " + r.JobDir + "/stdout ]; do sleep 0.02; done; kill -KILL $(cat " + r.JobDir + "/stdout)")
		if e := <-ends; e.ID != r.JobID || e.Signal != "SIGKILL" {
			t.Errorf("%+v", e)
		}
		if got := s.sh("cat " + r.JobDir + "/status"); got != "killed SIGKILL\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("stopped by a later command", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "setsid sleep 1001 & sleep 1002 & echo up; sleep 1003; sleep 1004", Background: true})
		s.sh("until [ -s " + r.JobDir + "/stdout ]; do sleep 0.02; done; kill -- -$(cat " + r.JobDir + "/pid)")
		if e := <-ends; e.ID != r.JobID || e.Signal != "SIGTERM" {
			t.Errorf("%+v", e)
		}
		noSleepers(t, s)
		// The number may be another's soon, so nobody may find it any more.
		if got := s.sh("ls " + r.JobDir); got != "command\nstatus\nstderr\nstdout\n" {
			t.Errorf("left of the job: %q", got)
		}
	})
	t.Run("timed out", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "sleep 1001", Background: true, WallTime: 200 * time.Millisecond})
		if e := <-ends; e.ID != r.JobID || !e.TimedOut {
			t.Errorf("%+v", e)
		}
	})
	t.Run("bounded output", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo end", Background: true})
		<-ends
		got := s.sh("cd " + r.JobDir + "; stat -c %s stdout; head -c 6 stdout; tail -c 4 stdout; grep -ao '\\[... [0-9]* bytes left out ...\\]' stdout")
		if want := "begin\nend\n[... 1951434 bytes left out ...]\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%q", got)
		}
	})
	t.Run("commands cannot write to its files", func(t *testing.T) {
		for _, c := range []string{"touch", "rm -rf", "chmod 777"} {
			for _, p := range []string{"jobs/1/status", "jobs/1/stdout", "jobs", "output", "x"} {
				if r := s.exec(protocol.ExecRequest{Command: c + " " + protocol.RunDir + "/" + p}); r.ExitCode == 0 {
					t.Errorf("%s %s succeeded", c, p)
				}
			}
		}
	})
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	job := s.exec(protocol.ExecRequest{Command: "trap 'echo saved > saved; exit' TERM; echo ready; while :; do sleep 0.02; done", Background: true})
	s.sh("until [ -s " + job.JobDir + "/stdout ]; do sleep 0.02; done")
	running := make(chan protocol.ExecResult)
	ready := make(chan struct{})
	go func() {
		r, _ := s.Exec(context.Background(), protocol.ExecRequest{Command: "trap '' TERM; echo x; while :; do sleep 0.1; done", HeadTail: 10}, func(protocol.Stream, []byte) { close(ready) })
		running <- r
	}()
	<-ready
	start := time.Now()
	must(t, s.Shutdown(t.Context(), 10*time.Second))
	if r := <-running; r.End != protocol.Shutdown || r.Signal != "SIGKILL" {
		t.Errorf("%+v", r)
	}
	t.Logf("shut down in %v", time.Since(start))
	if _, err := s.Exec(t.Context(), protocol.ExecRequest{Command: "true"}, nil); err == nil {
		t.Error("a command ran after the shutdown")
	}
	if n, ok := s.collect()["saved"]; !ok || string(n.Content) != "saved\n" {
		t.Errorf("the job %s had no grace: %+v", job.JobID, n)
	}
	must(t, s.Shutdown(t.Context(), 0))
}

func TestOutput(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	t.Run("fits", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "printf 1234567890", HeadTail: 5})
		if string(r.Stdout.Head) != "12345" || string(r.Stdout.Tail) != "67890" || r.Stdout.Dropped != 0 || r.Stdout.Saved != "" {
			t.Errorf("%+v", r.Stdout)
		}
	})
	t.Run("the middle is dropped and saved", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "seq 1 100000; echo short >&2", HeadTail: 6})
		if string(r.Stdout.Head) != "1\n2\n3\n" || string(r.Stdout.Tail) != "00000\n" || r.Stdout.Dropped != 588895-12 || text(r.Stderr) != "short\n" || r.Stderr.Saved != "" {
			t.Errorf("%+v", r)
		}
		if got := s.sh("seq 1 100000 | cmp - " + r.Stdout.Saved + " && echo same"); got != "same\n" {
			t.Errorf("saved: %q", got)
		}
	})
	t.Run("more than is saved", func(t *testing.T) {
		r := s.exec(protocol.ExecRequest{Command: "seq 1 1000000", HeadTail: 6})
		if r.Stdout.Dropped != 6888896-12 {
			t.Errorf("%+v", r.Stdout)
		}
		got := s.sh("f=" + r.Stdout.Saved + "; seq 1 1000000 > /tmp/all; cmp -n 524288 $f /tmp/all && tail -c 524288 $f > /tmp/a && tail -c 524288 /tmp/all | cmp - /tmp/a && stat -c %s $f; rm /tmp/all")
		if !strings.HasPrefix(got, "1048") {
			t.Errorf("saved: %q", got)
		}
	})
	t.Run("is sent as it comes", func(t *testing.T) {
		// The command continues when its output has arrived.
		var live strings.Builder
		steps := make(chan string, 4)
		go func() {
			for step := range steps {
				if _, err := s.Exec(t.Context(), protocol.ExecRequest{Command: "touch step" + step}, nil); err != nil {
					t.Error(err)
				}
			}
		}()
		r, err := s.Exec(t.Context(), protocol.ExecRequest{Command: "for i in 1 2 3; do echo $i; until [ -e step$i ]; do sleep 0.02; done; done; echo e >&2", HeadTail: 100}, func(from protocol.Stream, p []byte) {
			fmt.Fprintf(&live, "%d:%s;", from, p)
			if from == protocol.Stdout {
				steps <- strings.TrimSpace(string(p))
			}
		})
		close(steps)
		must(t, err)
		if live.String() != "1:1\n;1:2\n;1:3\n;2:e\n;" || text(r.Stdout) != "1\n2\n3\n" {
			t.Errorf("%q", live.String())
		}
	})
	t.Run("a flood leaves room for others", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		flooding, done := make(chan struct{}), make(chan protocol.ExecResult)
		var once sync.Once
		go func() {
			r, _ := s.Exec(ctx, protocol.ExecRequest{Command: "yes", HeadTail: 1000, Grace: time.Second}, func(protocol.Stream, []byte) { once.Do(func() { close(flooding) }) })
			done <- r
		}()
		<-flooding
		start := time.Now()
		for range 10 {
			s.sh("true")
			_, err := s.Jobs(t.Context())
			must(t, err)
		}
		t.Logf("ten commands beside a flood: %v", time.Since(start))
		cancel()
		r := <-done
		if r.End != protocol.Canceled || len(r.Stdout.Head) != 1000 || len(r.Stdout.Tail) != 1000 || r.Stdout.Dropped == 0 {
			t.Errorf("%d %d %d", r.End, len(r.Stdout.Head), r.Stdout.Dropped)
		}
		t.Logf("flooded %d MB", r.Stdout.Dropped>>20)
	})
	t.Run("old outputs make room", func(t *testing.T) {
		for range 2 * keptOutputs {
			s.exec(protocol.ExecRequest{Command: "seq 1 100000", HeadTail: 6})
		}
		if got := s.sh("ls " + outputDir + " | wc -l"); got != fmt.Sprintln(keptOutputs) {
			t.Errorf("%q", got)
		}
	})
	if _, err := os.Stat(protocol.RunDir); err == nil {
		t.Error("the host has the sandbox's directory")
	}
}
