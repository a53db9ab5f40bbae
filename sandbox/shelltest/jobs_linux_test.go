package shelltest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// A job that begins with untilReleased continues when the command release has been
// committed: so its later writes are in no other commit.
const (
	release       = "echo go > release.md"
	untilReleased = "until git show HEAD:release.md >/dev/null 2>&1; do sleep 0.02; done; "
)

// background starts a command as a job.
func (s *shell) background(t *testing.T, command string) sandbox.Result {
	t.Helper()
	q := s.request(command)
	q.Background, q.Comment = true, "From a job"
	r := s.ask(t, q)
	if r.End != protocol.Detached || r.JobID == "" || r.JobDir != "/run/satchel/jobs/"+r.JobID {
		t.Fatalf("%+v", r)
	}
	return r
}

// settled waits inside until a job has ended and returns its status.
func (s *shell) settled(t *testing.T, dir string) string {
	t.Helper()
	return strings.TrimSpace(s.print(t, "cd "+dir+"; while grep -qx running status; do sleep 0.02; done; cat status"))
}

// committed waits outside, with no command whose commit it could share, until
// head has a file.
func (s *shell) committed(t *testing.T, path space.Path) {
	t.Helper()
	testenv.WaitFor(t, "the commit of "+string(path), func() bool {
		head, err := s.store.Head(t.Context(), s.space)
		if err != nil {
			t.Fatal(err)
		}
		files, err := s.store.Files(t.Context(), s.space, head, "")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(files, func(f space.Entry) bool { return f.Path == path })
	})
}

// awaitNews runs commands until an answer reports a job's end. The first answer after its
// changes were committed does so, and only this one.
func (s *shell) awaitNews(t *testing.T, news string) (note string) {
	t.Helper()
	testenv.WaitFor(t, "an answer that tells "+news, func() bool {
		s.run(t, ":")
		s.mu.Lock()
		notes := slices.Clone(s.notes)
		s.mu.Unlock()
		for i, n := range notes {
			if strings.HasPrefix(n, news) {
				for _, again := range notes[i+1:] {
					if again == n {
						t.Errorf("told twice: %s", n)
					}
				}
				note = n
				return true
			}
		}
		return false
	})
	return note
}

// TestJobs does what a model does with a long command: start it, list the jobs, follow its
// output, do other things, stop it, and get its end.
func TestJobs(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"readme.md": "hello\n"}, nil)

	counting := s.background(t, "for ((i = 1; ; i++)); do echo line $i; echo err $i >&2; sleep 0.05; done")
	writing := s.background(t, untilReleased+"echo from a job > job.md; echo done")

	// Listed, with what they are.
	list := s.print(t, "cd /run/satchel/jobs; for j in *; do echo \"$j $(cat $j/status): $(cat $j/command)\"; done")
	if l := lines(list); len(l) != 2 || !strings.HasPrefix(l[0], "1 running: for ((i") || !strings.HasPrefix(l[1], "2 running: until git") {
		t.Errorf("the list is %q", list)
	}
	// Followed, from where an earlier answer ended, over several answers.
	if got := s.print(t, "cd "+counting.JobDir+"; until [ $(wc -l < stdout) -ge 3 ]; do sleep 0.02; done; head -n3 stdout"); got != "line 1\nline 2\nline 3\n" {
		t.Errorf("the output begins %q", got)
	}
	if got := s.print(t, "cd "+counting.JobDir+"; timeout 20 tail -n +4 -f stdout | head -n3; head -n2 stderr"); got != "line 4\nline 5\nline 6\nerr 1\nerr 2\n" {
		t.Errorf("it goes on %q", got)
	}
	if got := s.print(t, "ps -o comm= -p $(cat "+counting.JobDir+"/pid); ps -o sid= -p $(cat "+counting.JobDir+"/pid) | tr -d ' ' | cmp - "+counting.JobDir+"/pid && echo leads"); got != "bash\nleads\n" {
		t.Errorf("its process is %q", got)
	}

	// Stopped, by the words of the answer's note.
	s.print(t, "kill -- -$(cat "+counting.JobDir+"/pid)")
	if got := s.settled(t, counting.JobDir); got != "killed SIGTERM" {
		t.Errorf("its status is %q", got)
	}
	if n := s.awaitNews(t, "Job 1 "); !strings.Contains(n, "ended by SIGTERM") {
		t.Errorf("told %q", n)
	}
	if got := s.print(t, "ls "+counting.JobDir+"; pgrep -f 'line $i' | wc -l; cat "+writing.JobDir+"/status"); got != "command\nstatus\nstderr\nstdout\n0\nrunning\n" {
		t.Errorf("afterwards there is %q", got)
	}

	// What a job writes is committed at its end, under its own comment.
	s.run(t, release)
	s.committed(t, "job.md")
	if got := s.settled(t, writing.JobDir); got != "exited 0" {
		t.Errorf("its status is %q", got)
	}
	if n := s.awaitNews(t, "Job 2 "); !strings.Contains(n, "exit code 0") || !strings.Contains(n, "committed as ") {
		t.Errorf("told %q", n)
	}
	if got := s.print(t, "git log -1 --format=%s; git show HEAD:job.md; cat "+writing.JobDir+"/stdout"); got != "From a job\nfrom a job\ndone\n" {
		t.Errorf("head is %q", got)
	}
}

// TestJobsEnd: however a job ends, its status says so exactly.
func TestJobsEnd(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil, func(o *sandbox.Options) { o.Grace = 200 * time.Millisecond })
	for command, want := range map[string]string{
		"exit 3":                                "exited 3",
		"nosuchcommand":                         "exited 127",
		"kill -9 $$":                            "killed SIGKILL",
		"kill -SEGV $$":                         "killed SIGSEGV",
		"trap 'exit 0' TERM; kill $$; sleep 99": "exited 0",
		"sleep 99":                              "killed SIGTERM (timed out)",
		"trap '' TERM; sleep 99; sleep 99":      "killed SIGKILL (timed out)",
	} {
		t.Run(command, func(t *testing.T) {
			q := s.request(command)
			q.Background = true
			if strings.Contains(want, "timed out") {
				q.WallTime = 5 * time.Second
			}
			if got := s.settled(t, s.ask(t, q).JobDir); got != want {
				t.Errorf("its status is %q, want %q", got, want)
			}
		})
	}
}

// TestSlowCommandBecomesAJob: the answer comes while it runs, and later answers
// can read on.
func TestSlowCommandBecomesAJob(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil, func(o *sandbox.Options) { o.DetachAfter = 5 * time.Second })
	r := s.run(t, "echo begun; "+untilReleased+"echo late > late.md; echo ended")
	if r.End != protocol.Detached || r.Stdout.Text != "begun\n" {
		t.Fatalf("%+v", r)
	}
	if got := s.print(t, "cat "+r.JobDir+"/stdout; "+release); got != "begun\n" {
		t.Errorf("so far it printed %q", got)
	}
	s.committed(t, "late.md")
	if n := s.awaitNews(t, "Job 1 "); !strings.Contains(n, "committed as ") {
		t.Errorf("told %q", n)
	}
	if got := s.print(t, "cat "+r.JobDir+"/{stdout,status} late.md"); got != "begun\nended\nexited 0\nlate\n" {
		t.Errorf("in the end there is %q", got)
	}
}
