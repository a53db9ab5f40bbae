package host

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"
	"time"

	"satchel/internal/testenv"
)

// held starts a program, waits for its first line, and holds it.
func held(t *testing.T, name string, args ...string) *Process {
	t.Helper()
	testenv.NeedProgram(t, name)
	cmd := exec.Command(name, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p, err := OpenProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestProcessEnds(t *testing.T) {
	for _, c := range []struct {
		script string
		kill   bool
		want   string
	}{
		{"echo; exit 0", false, "exited with status 0"},
		{"echo; exit 7", false, "exited with status 7"},
		{"echo; kill -TERM $$", false, "killed by SIGTERM"},
		{"trap '' TERM; echo; while :; do sleep 60; done", true, "killed by SIGKILL"},
	} {
		p := held(t, "bash", "-c", c.script)
		if c.kill {
			if p.Ended() {
				t.Errorf("%s: it has ended already", c.script)
			}
			p.Kill()
		}
		p.Wait()
		if got := p.Status(); got != c.want || !p.Ended() {
			t.Errorf("%s: %s, want %s", c.script, got, c.want)
		}
		p.Kill() // of what has ended: nothing happens
	}
}

// A process whose first thread alone has ended looks like a zombie, and works
// on: it has not ended, and a kill reaches the rest of it.
func TestProcessWithoutItsFirstThread(t *testing.T) {
	p := held(t, "python3", "-c", `
import ctypes, threading, time
main = threading.main_thread().native_id
def work():
    while True:
        with open("/proc/self/task/%d/stat" % main) as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                break
        time.sleep(0.01)
    print("alone", flush=True)
    time.sleep(600)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
`)
	if p.Ended() || p.WaitUntil(time.Now()) {
		t.Fatal("it is taken for one that has ended")
	}
	p.Kill()
	p.Wait()
	if got := p.Status(); !strings.Contains(got, "SIGKILL") {
		t.Errorf("it ended: %s", got)
	}
}

func TestNoProcessIsHeldByAWrongNumber(t *testing.T) {
	for _, pid := range []int{-1, 0, 1 << 30} {
		if p, err := OpenProcess(pid); err == nil {
			p.Close()
			t.Errorf("process %d is held", pid)
		}
	}
}
