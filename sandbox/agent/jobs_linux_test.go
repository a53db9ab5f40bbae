package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// What read-only callers run is apart from what others run: neither can read
// the other's jobs and kept output, stop them, or push them out.
func TestJobsOfReadOnlyCallersAreApart(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	ends := make(chan JobEnd, 100)
	s.OnJobEnd(func(e JobEnd) { ends <- e })
	run := func(readOnly bool, command string) string {
		r := s.exec(ExecRequest{Command: command, ReadOnly: readOnly})
		return text(r.Stdout)
	}
	for _, readOnly := range []bool{false, true} {
		job := s.exec(ExecRequest{Command: "echo of $UID; seq 1 100000; exec sleep 1001", Background: true, ReadOnly: readOnly})
		flood := s.exec(ExecRequest{Command: "seq 1 100000", HeadTail: 6, ReadOnly: readOnly})
		if job.JobID == "" || flood.Stdout.Saved == "" {
			t.Fatalf("%+v %+v", job, flood)
		}
		pid := strings.TrimSpace(run(readOnly, "until [ $(stat -c %s "+job.JobDir+"/stdout) -gt 500000 ]; do sleep 0.02; done; cat "+job.JobDir+"/pid"))
		own := run(readOnly, fmt.Sprintf("cd %s && cat status && head -1 stdout && ls; tail -1 %s", job.JobDir, flood.Stdout.Saved))
		if !strings.HasPrefix(own, "running\nof ") || !strings.HasSuffix(own, "stderr\nstdout\n100000\n") {
			t.Errorf("read-only %v: its own: %q", readOnly, own)
		}
		for _, attack := range []string{"ls " + job.JobDir, "cat " + job.JobDir + "/stdout", "cat " + job.JobDir + "/status", "cat " + job.JobDir + "/pid", "tail -1 " + flood.Stdout.Saved, "kill -9 " + pid, "kill -9 -- -" + pid} {
			if r := s.exec(ExecRequest{Command: attack + " 2>/dev/null", ReadOnly: !readOnly}); r.ExitCode == 0 {
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
			s.exec(ExecRequest{Command: "true", Background: true, ReadOnly: !readOnly})
			<-ends
			s.exec(ExecRequest{Command: "seq 1 1000", HeadTail: 6, ReadOnly: !readOnly})
		}
		if got := run(readOnly, fmt.Sprintf("cat %s/status; tail -1 %s; ls %s %s | wc -l", job.JobDir, flood.Stdout.Saved, jobsDir, outputDir)); got != fmt.Sprintf("killed SIGKILL\n100000\n%d\n", keptJobs+keptOutputs+3) {
			t.Errorf("attack: read-only %v was pushed out: %q", readOnly, got)
		}
	}
}
