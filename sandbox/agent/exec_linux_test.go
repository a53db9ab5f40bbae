package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/sandbox/protocol"
)

func TestExecTellsTheEndExactly(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	for _, c := range []struct {
		command string
		code    int
		signal  string
		stdout  string
	}{
		{"true", 0, "", ""},
		{"false", 1, "", ""},
		{"exit 7", 7, "", ""},
		{"exit 300", 44, "", ""},
		{"kill -9 $$", 137, "SIGKILL", ""},
		{"kill -TERM $$", 143, "SIGTERM", ""},
		{"sh -c 'kill -9 $$'; exit $?", 137, "", ""},
		{"nosuchcommand 2>/dev/null", 127, "", ""},
		{"/etc 2>/dev/null", 126, "", ""},
		{"( ", 2, "", ""},
		{"", 0, "", ""},
		{"set -e; false; echo no", 1, "", ""},
		{"trap 'echo bye' EXIT; exit 3", 3, "", "bye\n"},
		{"cat; echo $?", 0, "", "0\n"}, // standard input is empty
		{"echo $0 $# $- \"[$*]\"", 0, "", "bash 0 hBc []\n"},
		{"x=1; export y=2; cd /tmp; umask", 0, "", "0022\n"},
		{"echo \"[$x$y]\"; pwd", 0, "", "[]\n/space\n"}, // nothing carries over
		{"printf '%s' \"a'b\\\"c\" $'\\xff'", 0, "", "a'b\"c\xff"},
		{"cat <<'E'\n$x `y` \\\nE\n", 0, "", "$x `y` \\\n"},
		{"echo $LINENO\necho $LINENO", 0, "", "1\n2\n"},
		{"echo \xfe\xff", 0, "", "\xfe\xff\n"},
		{"locale charmap; echo $TERM; echo ~", 0, "", "UTF-8\ndumb\n/tmp/home\n"},
		{"touch ~/x /tmp/y && echo ok", 0, "", "ok\n"},
		{"ls /proc/self/fd | wc -l", 0, "", "4\n"}, // 0, 1, 2 and ls's own
		{"ps -o sid= -p $$ 2>/dev/null | tr -d ' ' | grep -qx $$ || echo other; ulimit -c", 0, "", "0\n"},
	} {
		r := s.exec(protocol.ExecRequest{Command: c.command})
		if r.End != protocol.Exited || r.ExitCode != c.code || r.Signal != c.signal || text(r.Stdout) != c.stdout {
			t.Errorf("%q: end %d, exit %d %q, stdout %q, stderr %q; want %d %q %q",
				c.command, r.End, r.ExitCode, r.Signal, text(r.Stdout), text(r.Stderr), c.code, c.signal, c.stdout)
		}
	}
}

// The shell was started before it got its command; nobody may notice.
func TestExecIsWhatBashDoes(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	dir := t.TempDir()
	for _, command := range []string{
		`for i in 1 2 3; do echo $((i*i)); done | paste -sd+ | tee /dev/stderr`,
		`a=(x "y z" w); printf '<%s>' "${a[@]}"; echo ${#a[@]}`,
		`f() { local v=$1; echo "$v" >&2; return 4; }; f q || echo $?`,
		`echo one; echo two >&2; (exit 5); echo $?`,
		`case "$BASH_EXECUTION_STRING" in case*) echo yes;; esac`,
		"cat <<-E | sort -r\n\tb\n\ta\n\tE\necho \"line $LINENO\"",
		`nosuch1; echo $?`,
		"true\nnosuch2\necho $?",
		`set -u; echo "${unset_variable}"; echo not reached`,
		`printf 'a\0b' | od -c | head -1`,
		`shopt -s nullglob; echo *.none; x='*'; echo "$x"`,
		`echo {a..e}{1,2}; echo ${PWD##*/} | wc -l`,
		`read x; echo "$? [$x]"`,
		`declare -p MAPFILE REPLY 2>&1`,
		`[ $SECONDS -lt 2 ] && echo fresh`,
		`eval 'echo $((1+1))'; ! true; echo $?`,
		`exec 3>&1; echo via3 >&3`,
		`kill -l 9; type cd`,
	} {
		host := exec.Command("bash", "-c", command)
		host.Dir, host.Env = dir, []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
		var stdout, stderr bytes.Buffer
		host.Stdout, host.Stderr = &stdout, &stderr
		host.Run()
		r := s.exec(protocol.ExecRequest{Command: command})
		if text(r.Stdout) != stdout.String() || text(r.Stderr) != stderr.String() || r.ExitCode != host.ProcessState.ExitCode() {
			t.Errorf("%s\ninside %d %q %q\noutside %d %q %q", command, r.ExitCode, text(r.Stdout), text(r.Stderr),
				host.ProcessState.ExitCode(), stdout.String(), stderr.String())
		}
	}
}

func TestExecLeaksNothingOfTheAgent(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{boot: func() protocol.Boot { b := testBoot(); b.Env = []string{"HOME=/tmp/other", "X=1"}; return b }()})
	out := s.sh("env; cat /proc/self/environ /proc/1/environ 2>&1 | tr '\\0' '\\n'")
	if strings.Contains(out, "SECRET") {
		t.Errorf("the agent's environment: %s", out)
	}
	if !strings.Contains(out, "HOME=/tmp/other\n") || !strings.Contains(out, "X=1\n") || strings.Contains(out, "HOME=/tmp/home") {
		t.Errorf("the given environment is not there: %s", out)
	}
}

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

// A command of the same user may kill or stop the shell that waits for the
// next one; the next one does not notice.
func TestWaitingShellsAreReplaced(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	for _, sig := range []string{"KILL", "STOP", "TERM"} {
		s.exec(protocol.ExecRequest{Command: "kill -" + sig + " -1"})
		if out := s.sh("echo alive"); out != "alive\n" {
			t.Errorf("after %s: %q", sig, out)
		}
	}
}

func TestForkBombThenTheNextCommandWorks(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	r := s.exec(protocol.ExecRequest{Command: `b() { b | b & }; b; sleep 0.5; while :; do :; done`, WallTime: 2 * time.Second, Grace: 100 * time.Millisecond})
	if r.End != protocol.TimedOut {
		t.Errorf("%+v", r.End)
	}
	if out := s.sh("/bin/echo alive"); out != "alive\n" {
		t.Errorf("after: %q", out)
	}
}

func TestResourceLimits(t *testing.T) {
	t.Parallel()
	b := testBoot()
	b.Processes, b.OpenFiles, b.FileSize = 20, 64, 1<<20
	s := startSandbox(t, sandboxOption{boot: b})
	for name, command := range map[string]string{
		"processes":  `for i in $(seq 40); do sleep 100 & done 2>&1 | grep -q 'unavailable'`,
		"open files": `for i in $(seq 10 100); do eval "exec $i</dev/null" || exit 0; done 2>/dev/null; exit 1`,
		"file size":  `trap '' XFSZ; ! head -c 2000000 /dev/zero > big 2>/dev/null && [ $(stat -c %s big) = 1048576 ]`,
		"raising":    `! ulimit -u 100 2>/dev/null && ! ulimit -f unlimited 2>/dev/null`,
	} {
		if r := s.exec(protocol.ExecRequest{Command: command}); r.ExitCode != 0 {
			t.Errorf("%s: %d %s %s", name, r.ExitCode, text(r.Stdout), text(r.Stderr))
		}
	}
}

func TestReadOnlyCannotWrite(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{seed: map[string]string{"a.txt": "hello"}})
	s.sh("echo mine > b.txt; echo tmp > /tmp/t")
	ro := func(command string) protocol.ExecResult {
		return s.exec(protocol.ExecRequest{Command: command, ReadOnly: true})
	}
	if r := ro("cat a.txt b.txt; id -u; cat .git/HEAD; ls /tmp; touch /tmp/mine ~/x && echo tmp"); text(r.Stdout) != "hellomine\n1001\nref: refs/heads/main\nhome\ntmp\n" {
		t.Errorf("reading: %q %q", text(r.Stdout), text(r.Stderr))
	}
	for _, command := range []string{
		"echo x > a.txt", "echo x >> b.txt", "touch new", "mkdir d", "rm a.txt", "mv a.txt c", "ln -s a l", "ln a.txt h", "chmod 600 a.txt",
		"truncate -s 0 a.txt", "mkfifo f", "setfattr -n user.x -v y a.txt", "python3 -c 'open(\"a.txt\",\"w\")'", "git -C /space init",
		"unshare -Urm touch /space/x", "unshare -rm sh -c 'mount -o remount,rw /space; touch /space/x'", "echo x > /proc/self/cwd/y", "echo x > /proc/1/root/space/y",
	} {
		if r := ro(command); r.ExitCode == 0 {
			t.Errorf("%s: succeeded", command)
		}
	}
	// Neither sees the other's processes as its own to end.
	if r := ro("kill -9 -1; for p in /proc/[0-9]*; do [ \"$(stat -c %u $p)\" = 1000 ] && kill -9 ${p#/proc/} && echo killed; done 2>/dev/null; :"); strings.Contains(text(r.Stdout), "killed") {
		t.Errorf("killed a command of the writing user")
	}
	if got := s.sh("cat a.txt b.txt /tmp/t; ls"); got != "hellomine\ntmp\na.txt\nb.txt\n" {
		t.Errorf("afterwards: %q", got)
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
