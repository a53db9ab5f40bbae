package crun_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"satchel/sandbox/agent"
	"satchel/sandbox/crun"
	"satchel/sandbox/sandboxtest"
)

// No user of the host is anyone inside, and no two sandboxes share one.
func TestAttackHostUsers(t *testing.T) {
	r := newRuntime(t, standIn()...)
	first := map[string]bool{}
	for range 2 {
		s, id := start(t, r)
		for _, file := range []string{"uid_map", "gid_map"} {
			for line := range strings.Lines(ask(t, s, "cat /proc/1/"+file)) {
				var inside, host, n int
				fmt.Sscan(line, &inside, &host, &n)
				if host < 0x70000000 {
					t.Errorf("%s maps %d to the host's %d", file, inside, host)
				}
				if inside == 0 && file == "uid_map" {
					if first[line] {
						t.Errorf("two sandboxes have the users %s", line)
					}
					first[line] = true
				}
			}
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", sandboxtest.InitOf("", id)))
		if err != nil || strings.Contains(string(b), "\nUid:\t0\t") {
			t.Errorf("process 1 is root on the host: %v", err)
		}
	}
}

// Each of these is where attacks on a kernel begin, or takes what the machine has
// one of for all. The agent's own filter is
// not on: process 1 tries them, with all its rights.
func TestAttackKernelCalls(t *testing.T) {
	s, _ := start(t, newRuntime(t, standIn()...))
	const script = `
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
calls = {"ptrace":101,"kexec_load":246,"init_module":175,"add_key":248,"request_key":249,"keyctl":250,"perf_event_open":298,
 "open_by_handle_at":304,"finit_module":313,"bpf":321,"userfaultfd":323,"umount2":166,"pivot_root":155,"io_uring_setup":425,"open_tree":428,"move_mount":429,"fsopen":430,
 "mount_setattr":442,"clone3":435,"process_vm_readv":310,"pidfd_getfd":438,"setns":308,"swapon":167,"reboot":169,"acct":163,"iopl":172,"io_setup":206}
for name, nr in calls.items():
    ctypes.set_errno(0)
    libc.syscall(nr, 0, 0, 0, 0, 0)
    print(name, ctypes.get_errno())
for family in (38, 40, 17, 16, 21, 44): # ALG, VSOCK, PACKET, NETLINK (other than routes), RDS, XDP
    ctypes.set_errno(0)
    fd = libc.socket(family, 3 if family in (16, 17) else 2, 12)
    print("socket", family, ctypes.get_errno() if fd < 0 else "made")
`
	if strings.HasPrefix(ask(t, s, "uname -m"), "aarch64") {
		t.Skip("the script's numbers are x86-64's")
	}
	out := ask(t, s, "printf %s '"+strings.ReplaceAll(strings.ReplaceAll(script, "\n", `\n`), `"`, `\"`)+"' | sed 's/\\\\n/\\n/g; s/\\\\\"/\"/g' | python3 -")
	lines := strings.Split(out, "\n")
	if len(lines) != 33 {
		t.Fatalf("got %q", out)
	}
	for _, line := range lines {
		if !strings.HasSuffix(line, " 38") { // ENOSYS: the filter's word, not the kernel's
			t.Errorf("%s", line)
		}
	}
}

// What a mount of the host's was given, process 1 cannot take off it.
func TestAttackRemount(t *testing.T) {
	s, _ := start(t, newRuntime(t, standIn()...))
	for _, at := range []string{"/", "/usr", "/.satchel/lower", "/.satchel/agent", "/etc/ld.so.cache"} {
		for _, options := range []string{"remount,bind,rw", "remount,bind,ro,dev", "remount,bind,ro,suid"} {
			if got := ask(t, s, "mount -o "+options+" "+at+" 2>&1 && echo remounted"); strings.HasSuffix(got, "remounted") {
				t.Errorf("%s was remounted %s", at, options)
			}
		}
	}
	if got := ask(t, s, "touch /.satchel/lower/x /usr/x /x 2>&1 | grep -c 'Read-only'"); got != "3" {
		t.Errorf("%s of 3 places are read-only", got)
	}
}

// What tells of the machine is empty, and what could touch it is closed.
func TestAttackProcAndSys(t *testing.T) {
	c := connect(t, newRuntime(t))
	for _, command := range []string{
		"cat /proc/cmdline", "head -c 1 /proc/kcore", "cat /proc/kallsyms", "cat /proc/modules", "cat /proc/keys",
		"cat /proc/interrupts", "cat /proc/partitions", "ls /sys", "ls /proc/scsi /proc/driver 2>/dev/null | grep -v :",
	} {
		if out, _ := sh(t, c, command+" 2>/dev/null | wc -c"); out != "0" {
			t.Errorf("%s: %s bytes", command, out)
		}
	}
	for _, command := range []string{
		"echo h > /proc/sysrq-trigger", "echo x > /proc/sys/kernel/core_pattern", "echo 1 > /proc/sys/kernel/panic", "mount -t proc proc /mnt", "mount -t sysfs s /sys",
		"mount -t cgroup2 c /mnt", "mount -t debugfs d /mnt", "mount /dev/vda /mnt", "umount /proc/cmdline",
	} {
		if out, code := sh(t, c, command); code == 0 {
			t.Errorf("%s: %q", command, out)
		}
	}
	if out, _ := sh(t, c, "ls -l /dev | awk '/^[bc]/ { print $NF }' | sort -u | tr '\\n' ' '"); out != "full null random tty urandom zero" {
		t.Errorf("there are devices %q", out)
	}
}

// Commands have none of what the agent has.
func TestAttackCommandReachesForTheAgent(t *testing.T) {
	c := connect(t, newRuntime(t))
	for _, command := range []string{
		"kill -9 1", "echo x > /proc/1/fd/1", "cat /proc/1/environ", "ls /.satchel", "cat /.satchel/lower/docs/note.md",
		"unshare -Urm true", "mount -t tmpfs none /tmp", "umount /space", "/.satchel/agent agent", "chmod 777 /.satchel", "touch /etc/x", "dmesg -c", "chroot / true",
		"cat /proc/1/mem", "ls /proc/1/root", "setfattr -n trusted.overlay.opaque -v y docs", "setfattr -n user.overlay.opaque -v y docs",
	} {
		if out, code := sh(t, c, command); code == 0 {
			t.Errorf("%s: exit 0, %q", command, out)
		}
	}
	out, _ := sh(t, c, "grep -E 'Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|^Seccomp:' /proc/self/status | tr '\\n' ' '")
	zero := "\t0000000000000000 "
	if want := "CapPrm:" + zero + "CapEff:" + zero + "CapBnd:" + zero + "CapAmb:" + zero + "NoNewPrivs:\t1 Seccomp:\t2"; out != want {
		t.Errorf("a command has %q", out)
	}
	if out, _ := sh(t, c, "id -u; id -g"); out != "1000\n1000" {
		t.Errorf("a command runs as %q", out)
	}
}

// A directory that takes another's place hides it, which the overlay of a user
// namespace can mark in one way only.
func TestReplacedDirectoryIsTold(t *testing.T) {
	c := connect(t, newRuntime(t))
	if out, code := sh(t, c, "rm -r docs && mkdir docs && echo new > docs/other.md && ls docs"); code != 0 || out != "other.md" {
		t.Fatalf("%d, %q", code, out)
	}
	b, err := c.Collect(t.Context(), agent.CollectLimits{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(b.Entries, func(e agent.Entry) bool { return e.Path == "docs" })
	if i < 0 || !b.Entries[i].Opaque {
		t.Errorf("the host is told %+v", b.Entries)
	}
}

func TestDiagnose(t *testing.T) {
	r := newRuntime(t)
	for _, f := range r.Diagnose(t.Context()) {
		if !f.OK || f.Detail == "" {
			t.Errorf("%+v", f)
		}
	}
	if r.Name() != crun.Name {
		t.Errorf("it is called %s", r.Name())
	}
}
