package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// Read-only callers and others are separate: neither can read the other's jobs and kept
// output, stop them, or displace them.
func TestJobsOfReadOnlyCallersAreApart(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	ends := make(chan protocol.JobEnd, 100)
	s.OnJobEnd(func(e protocol.JobEnd) { ends <- e })
	run := func(readOnly bool, command string) string {
		r := s.exec(protocol.ExecRequest{Command: command, ReadOnly: readOnly})
		return text(r.Stdout)
	}
	for _, readOnly := range []bool{false, true} {
		job := s.exec(protocol.ExecRequest{Command: "echo of $UID; seq 1 100000; exec sleep 1001", Background: true, ReadOnly: readOnly})
		flood := s.exec(protocol.ExecRequest{Command: "seq 1 100000", HeadTail: 6, ReadOnly: readOnly})
		if job.JobID == "" || flood.Stdout.Saved == "" {
			t.Fatalf("%+v %+v", job, flood)
		}
		pid := strings.TrimSpace(run(readOnly, "until [ $(stat -c %s "+job.JobDir+"/stdout) -gt 500000 ]; do sleep 0.02; done; cat "+job.JobDir+"/pid"))
		own := run(readOnly, fmt.Sprintf("cd %s && cat status && head -1 stdout && ls; tail -1 %s", job.JobDir, flood.Stdout.Saved))
		if !strings.HasPrefix(own, "running\nof ") || !strings.HasSuffix(own, "stderr\nstdout\n100000\n") {
			t.Errorf("read-only %v: its own: %q", readOnly, own)
		}
		for _, attack := range []string{"ls " + job.JobDir, "cat " + job.JobDir + "/stdout", "cat " + job.JobDir + "/status", "cat " + job.JobDir + "/pid", "tail -1 " + flood.Stdout.Saved, "kill -9 " + pid, "kill -9 -- -" + pid} {
			if r := s.exec(protocol.ExecRequest{Command: attack + " 2>/dev/null", ReadOnly: !readOnly}); r.ExitCode == 0 {
				t.Errorf("attack: %s by the others: %q", attack, text(r.Stdout))
			}
		}
		jobs, err := s.Jobs(context.Background())
		must(t, err)
		if last := jobs[len(jobs)-1]; last.ReadOnly != readOnly || !last.Running {
			t.Errorf("%+v", last)
		}
		must(t, s.Kill(t.Context(), job.JobID, "KILL"))
		<-ends

		for range 3 * keptJobs {
			s.exec(protocol.ExecRequest{Command: "true", Background: true, ReadOnly: !readOnly})
			<-ends
			s.exec(protocol.ExecRequest{Command: "seq 1 1000", HeadTail: 6, ReadOnly: !readOnly})
		}
		if got := run(readOnly, fmt.Sprintf("cat %s/status; tail -1 %s; ls %s %s | wc -l", job.JobDir, flood.Stdout.Saved, jobsDir, outputDir)); got != fmt.Sprintf("killed SIGKILL\n100000\n%d\n", keptJobs+keptOutputs+3) {
			t.Errorf("attack: read-only %v was pushed out: %q", readOnly, got)
		}
	}
}

// hostJobs keeps its files on the host.
func hostJobs(t *testing.T) *jobs {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.SkipOrFail(t, "files are given to the commands' groups by root alone")
	}
	js := newJobs(1 << 20)
	js.jobsDir, js.outputDir = t.TempDir(), t.TempDir()
	return js
}

// command is a running command from the view of jobs.
func (js *jobs) command(halves int) *running {
	r := &running{s: &server{jobs: js}, sh: &shell{pid: 1}, ended: make(chan struct{})}
	r.req.HeadTail = halves
	r.stdout, r.stderr = r.capture(protocol.Stdout), r.capture(protocol.Stderr)
	return r
}

// A command becomes a job just as its output outgrows what is kept in memory.
func TestJobOfACommandWhoseOutputOutgrowsItsMemory(t *testing.T) {
	js := hostJobs(t)
	r := js.command(4)
	outgrown, adding := make(chan struct{}), make(chan struct{})
	open := r.stdout.openSpool
	r.stdout.openSpool = func() *spool {
		close(outgrown)
		<-adding
		return open()
	}
	var both sync.WaitGroup
	both.Go(func() { r.stdout.write([]byte("more than eight bytes")) })
	<-outgrown
	var j *job
	both.Go(func() { j, _ = js.add(r) })
	for js.mu.TryLock() { // until add has it, which then waits for the stream
		js.mu.Unlock()
		runtime.Gosched()
	}
	close(adding)
	done := make(chan struct{})
	go func() {
		both.Wait()
		close(done)
	}()
	testenv.Receive(t, "the stream and the jobs, which may wait for each other", done)
	r.stdout.write([]byte(", and more"))
	js.finished(r)
	if b, err := os.ReadFile(filepath.Join(j.dir, "stdout")); err != nil || string(b) != "more than eight bytes, and more" {
		t.Errorf("%q %v", b, err)
	}
	if left, err := os.ReadDir(js.outputDir); err != nil || len(left) > 0 {
		t.Errorf("left among the outputs: %v %v", left, err)
	}
}

func TestJobThatCannotBeMadeLeavesNothing(t *testing.T) {
	js := hostJobs(t)
	r := js.command(4)
	r.stdout.write([]byte("more than eight bytes"))
	must(t, os.Remove(r.saved[0]))
	if j, err := js.add(r); err == nil {
		t.Fatalf("became job %s without its output", j.id)
	}
	if left, err := os.ReadDir(js.jobsDir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// Output of other commands does not prevent a command from becoming a job.
func TestNoisyCommandBecomesAJobBesideOthers(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	ends := make(chan protocol.JobEnd, 1)
	s.OnJobEnd(func(e protocol.JobEnd) { ends <- e })
	noisy, result := make(chan struct{}), make(chan protocol.ExecResult, 1)
	go func() {
		var once sync.Once
		req := protocol.ExecRequest{Command: "seq 1 1000; echo; until [ -e go ]; do sleep 0.02; done; echo last", HeadTail: 6, DetachAfter: 3 * time.Second}
		r, err := s.Exec(context.Background(), req, func(_ protocol.Stream, p []byte) {
			if strings.HasSuffix(string(p), "\n\n") {
				once.Do(func() { close(noisy) })
			}
		})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	<-noisy
	for range 2 * keptOutputs {
		s.exec(protocol.ExecRequest{Command: "seq 1 1000", HeadTail: 6})
	}
	r := <-result
	if r.End != protocol.Detached {
		t.Fatalf("did not become a job: %+v", r)
	}
	s.sh("touch go")
	<-ends
	if got, want := s.sh("cat "+r.Stdout.Saved), s.sh("seq 1 1000; echo; echo last"); got != want {
		t.Errorf("its output: %d bytes, want %d", len(got), len(want))
	}
}
