package attacks_test

import (
	"strings"
	"testing"
)

// processTable prints every process but the one that prints and process 1, by its command
// line; a shell that waits for its command does not belong to a command.
const processTable = `for p in /proc/[0-9]*; do
	[ ${p#/proc/} = 1 ] || [ ${p#/proc/} = $$ ] || [ ${p#/proc/} = $BASHPID ] && continue
	c=$(tr '\0' ' ' < $p/cmdline) 2>/dev/null
	case $c in *'read -r -u 4;'*) ;; *) [ -e $p/status ] && echo "$(grep -E '^(Name|State|Threads)' $p/status | tr '\n\t' '  ')$c";; esac
done 2>/dev/null`

// survivors are ways to outlive a command. Each is started and has said so when
// its command ends.
var survivors = []struct{ name, script string }{
	{"background", `(touch ready; exec sleep 1000) & until [ -e ready ]; do :; done`},
	{"nohup", `(trap '' HUP TERM INT; touch ready; while :; do sleep 1; done) & until [ -e ready ]; do :; done`},
	{"setsid", `setsid bash -c 'touch ready; exec sleep 1000' </dev/null >/dev/null 2>&1 & until [ -e ready ]; do :; done`},
	{"double fork", `python3 -c '
import os,time
if os.fork()==0:
    os.setsid()
    if os.fork()==0:
        os.closerange(0,64); open("ready","w"); time.sleep(1000)
    os._exit(0)'; until [ -e ready ]; do :; done`},
	{"stopped", `(trap '' HUP; touch ready; kill -STOP $BASHPID; sleep 1000) & until [ -e ready ]; do :; done`},
	{"time bomb", `(touch ready; sleep 30; echo boom > /space/bomb) >/dev/null 2>&1 & disown; until [ -e ready ]; do :; done`},
	{"timer", `python3 -c '
import signal,os,time
signal.signal(signal.SIGALRM, lambda *a: open("/space/bomb","w").write("boom"))
if os.fork()==0:
    os.setsid(); signal.setitimer(signal.ITIMER_REAL,30,1); open("ready","w")
    while True: signal.pause()'; until [ -e ready ]; do :; done`},
	{"named as process 1", `bash -c 'exec -a "/.satchel/agent agent" setsid bash -c "touch ready; exec -a \"read -r -u 5;\" sleep 1000"' & until [ -e ready ]; do :; done`},
	// The first thread ends and the process looks like a zombie.
	{"thread without its leader", `python3 -c '
import threading,time,ctypes,os
os.setsid()
def work():
    while "Z" not in open("/proc/%d/stat" % os.getpid()).read().rsplit(")",1)[1][:3]: time.sleep(.01)
    open("ready","w"); time.sleep(1000)
threading.Thread(target=work,daemon=True).start()
ctypes.CDLL(None).syscall(60,0)' >/dev/null 2>&1 & until [ -e ready ]; do :; done`},
}

// TestAttackOutliveTheCommand: whatever a command leaves running ends with it,
// whether it left its session, its parents or its first thread, and is counted
// in the answer.
func TestAttackOutliveTheCommand(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	for _, s := range survivors {
		r := a.sh("rm -f ready; " + s.script)
		if r.ExitCode != 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "left running were ended") {
			t.Errorf("%s: exit code %d, %s, notes %q", s.name, r.ExitCode, r.Stderr.Text, r.Notes)
		}
		if left := a.out(processTable); left != "" {
			t.Errorf("%s: still runs:\n%s", s.name, left)
		}
	}
	for _, p := range a.files() {
		if p == "bomb" {
			t.Error("a time bomb went off")
		}
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		w := newWeakling(t)
		for _, s := range survivors {
			w.sh(1000, "rm -f ready; "+s.script)
			if left := w.sh(1000, processTable); left == "" {
				t.Errorf("%s: the test does not see what runs on", s.name)
			}
			w.sh(1000, "kill -9 -1")
		}
	})
}
