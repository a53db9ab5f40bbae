package agent

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// attackersCalls is what must be refused on every architecture.
const attackersCalls = "acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init fanotify_mark finit_module " +
	"fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup kcmp kexec_file_load kexec_load keyctl " +
	"lookup_dcookie memfd_secret migrate_pages mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at " +
	"open_tree open_tree_attr perf_event_open pidfd_getfd pivot_root process_madvise process_mrelease process_vm_readv process_vm_writev " +
	"ptrace quotactl quotactl_fd reboot request_key setdomainname sethostname setns settimeofday swapoff swapon syslog umount2 unshare " +
	"userfaultfd vhangup"

// evaluate runs the filter as a kernel would (seccomp(2), classic BPF).
func evaluate(t *testing.T, filter []unix.SockFilter, arch, nr uint32, arg0 uint64) uint32 {
	t.Helper()
	var data [64]byte
	binary.LittleEndian.PutUint32(data[0:], nr)
	binary.LittleEndian.PutUint32(data[4:], arch)
	binary.LittleEndian.PutUint64(data[16:], arg0)
	a, steps := uint32(0), 0
	for pc := 0; pc < len(filter); pc++ {
		if steps++; steps > 20 {
			t.Errorf("call %d takes more than 20 instructions", nr)
			return 0
		}
		f := filter[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(f.Jt)
			} else {
				pc += int(f.Jf)
			}
		}
		switch f.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[f.K:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == f.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= f.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&f.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return f.K
		default:
			t.Fatalf("instruction %d has the code %#x", pc, f.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

// Every call number there is, and what becomes of it: what the table says, and
// nothing else.
func TestSeccompFilter(t *testing.T) {
	filter := seccompFilter()
	for i, f := range filter {
		if i+1+int(max(f.Jt, f.Jf)) > len(filter) {
			t.Fatalf("instruction %d jumps out", i)
		}
	}
	want := map[uint32]uint32{unix.SYS_CLONE3: errno(unix.ENOSYS)}
	for _, c := range refusedCalls {
		if _, twice := want[c.nr]; twice || c.name == "" || c.why == "" {
			t.Errorf("%s is there twice, or without a reason", c.name)
		}
		want[c.nr] = errno(unix.EPERM)
	}
	names := make([]string, 0, len(refusedCalls))
	for _, c := range refusedCalls[:len(refusedCalls)-len(archRefusedCalls)] {
		names = append(names, c.name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != attackersCalls {
		t.Errorf("the table has\n%s\nwant\n%s", got, attackersCalls)
	}
	for nr := range uint32(2000) {
		allow := uint32(seccompRetAllow)
		if r, ok := want[nr]; ok {
			allow = r
		}
		if got := evaluate(t, filter, seccompAuditArch, nr, 0); got != allow && nr != unix.SYS_SOCKET { // 0 is no family
			t.Errorf("call %d: %#x, want %#x", nr, got, allow)
		}
	}
	for _, c := range []struct {
		name string
		nr   uint32
		arg  uint64
		want uint32
	}{
		{"fork", unix.SYS_CLONE, uint64(unix.SIGCHLD), seccompRetAllow},
		{"a thread", unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_SETTLS, seccompRetAllow},
		{"attack: a user namespace", unix.SYS_CLONE, unix.CLONE_NEWUSER | uint64(unix.SIGCHLD), errno(unix.EPERM)},
		{"attack: with garbage above", unix.SYS_CLONE, 1<<40 | unix.CLONE_NEWNS, errno(unix.EPERM)},
		{"own limits", unix.SYS_PRLIMIT64, 0, seccompRetAllow},
		{"attack: another's limits", unix.SYS_PRLIMIT64, 7, errno(unix.EPERM)},
		{"the personality", unix.SYS_PERSONALITY, 0xffffffff, seccompRetAllow},
		{"attack: no randomisation", unix.SYS_PERSONALITY, 0x0040000, errno(unix.EPERM)},
		{"attack: data that executes", unix.SYS_PERSONALITY, 0x0400000, errno(unix.EPERM)},
		{"a local socket", unix.SYS_SOCKET, unix.AF_UNIX, seccompRetAllow},
		{"an IPv6 socket", unix.SYS_SOCKET, unix.AF_INET6, seccompRetAllow},
		{"attack: a socket to the machine's own host", unix.SYS_SOCKET, unix.AF_VSOCK, errno(unix.EAFNOSUPPORT)},
		{"attack: the kernel's ciphers", unix.SYS_SOCKET, unix.AF_ALG, errno(unix.EAFNOSUPPORT)},
		{"attack: raw frames", unix.SYS_SOCKET, unix.AF_PACKET, errno(unix.EAFNOSUPPORT)},
		{"attack: rings of frames", unix.SYS_SOCKET, unix.AF_XDP, errno(unix.EAFNOSUPPORT)},
	} {
		if got := evaluate(t, filter, seccompAuditArch, c.nr, c.arg); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	for name, arch := range map[string]uint32{"i386": unix.AUDIT_ARCH_I386, "arm": unix.AUDIT_ARCH_ARM, "amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "none": 0} {
		if arch == seccompAuditArch {
			continue
		}
		if got := evaluate(t, filter, arch, unix.SYS_GETPID, 0); got != seccompRetKill {
			t.Errorf("attack: a call of %s: %#x", name, got)
		}
	}
	if foreignCalls != 0 {
		for _, nr := range []uint32{0, unix.SYS_GETPID, 512, 547} {
			if got := evaluate(t, filter, seccompAuditArch, foreignCalls|nr, 0); got != seccompRetKill {
				t.Errorf("attack: call %d as x32: %#x", nr, got)
			}
		}
	}
}

// seccompCalls is a program that makes every call that is refused, with
// arguments for which a kernel would mostly say something else, and what it
// prints.
func seccompCalls() (script, want string) {
	var w, p strings.Builder
	w.WriteString("import ctypes,os\nc=ctypes.CDLL(None,use_errno=True)\n" +
		"def call(*a):\n ctypes.set_errno(0); r=c.syscall(*a)\n if r==0 and a[0]==" + fmt.Sprint(unix.SYS_CLONE) + ": os._exit(0)\n return 0 if r>=0 else ctypes.get_errno()\n")
	try := func(e unix.Errno, name string, args ...int) {
		fmt.Fprintf(&w, "print('%s',call(%s))\n", name, strings.Join(strings.Fields(strings.Trim(fmt.Sprintln(args), "[]\n")), ","))
		fmt.Fprintf(&p, "%s %d\n", name, int(e))
	}
	for _, c := range refusedCalls {
		try(unix.EPERM, c.name, int(c.nr), 0, 0, 0, 0, 0)
	}
	for i, ns := range []int{unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET} {
		try(unix.EPERM, fmt.Sprint("clone", i), unix.SYS_CLONE, ns|int(unix.SIGCHLD), 0, 0, 0, 0)
	}
	try(0, "plainclone", unix.SYS_CLONE, int(unix.SIGCHLD), 0, 0, 0, 0)
	try(unix.ENOSYS, "clone3", unix.SYS_CLONE3, 0, 0)
	try(unix.EPERM, "prlimit", unix.SYS_PRLIMIT64, 1, unix.RLIMIT_CPU, 0, 0)
	try(unix.EPERM, "personality", unix.SYS_PERSONALITY, 0x0040000)
	for _, f := range []int{unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG, unix.AF_XDP, unix.AF_KEY, unix.AF_TIPC, unix.AF_BLUETOOTH} {
		try(unix.EAFNOSUPPORT, fmt.Sprint("family", f), unix.SYS_SOCKET, f, unix.SOCK_RAW, 0)
	}
	return w.String(), p.String()
}

// seccompWorks makes the calls that shells and their programs live on; each
// part names itself.
const seccompWorks = `
import ctypes,os,sys
c=ctypes.CDLL(None,use_errno=True)
def part(name):
    def run(f):
        try: f(); print(name, "ok")
        except BaseException as e: print(name, repr(e))
    return run
@part("fork and wait")
def _():
    p=os.fork()
    if p==0: os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(p,0)[1])==7
@part("vfork and exec")
def _():
    import subprocess; assert subprocess.check_output(["/bin/echo","x"])==b"x\n"
    assert os.waitpid(os.posix_spawn("/bin/true",["true"],{}),0)[1]==0
@part("threads and futexes")
def _():
    import threading
    n=[0]; l=threading.Lock(); e=threading.Event()
    def f():
        e.wait()
        with l: n[0]+=1
    ts=[threading.Thread(target=f) for _ in range(8)]
    [t.start() for t in ts]; e.set(); [t.join() for t in ts]
    assert n[0]==8
@part("pipes, poll, select and epoll")
def _():
    import select
    r,w=os.pipe2(os.O_CLOEXEC); e=select.epoll(); e.register(r,select.EPOLLIN); os.write(w,b"x")
    assert e.poll(5) and select.select([r],[],[],5)[0]; p=select.poll(); p.register(r); assert p.poll(5000)
@part("local sockets")
def _():
    import socket,array
    a,b=socket.socketpair(); a.sendmsg([b"x"],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array("i",[1]))])
    m,anc,_,_=b.recvmsg(1,socket.CMSG_SPACE(4)); assert m==b"x" and len(anc)==1
    s=socket.socket(socket.AF_UNIX); s.bind("/tmp/seccomp.sock"); os.unlink("/tmp/seccomp.sock")
@part("sockets of the loopback")
def _():
    import socket
    l=socket.create_server(("127.0.0.1",0)); k=socket.create_connection(l.getsockname()); l.accept()[0].send(b"x"); assert k.recv(1)==b"x"
@part("inotify")
def _():
    fd=c.inotify_init1(0); assert fd>=0 and c.inotify_add_watch(fd,b"/tmp",0x100)>=0; open("/tmp/seccomp.file","w"); assert os.read(fd,4096); os.unlink("/tmp/seccomp.file")
@part("memfd, shared mappings, sparse files")
def _():
    import mmap
    fd=os.memfd_create("x"); os.ftruncate(fd,4096); m=mmap.mmap(fd,4096); m[0:1]=b"y"; assert os.pread(fd,1,0)==b"y"; os.posix_fallocate(fd,0,8192)
@part("eventfd, timerfd, signalfd")
def _():
    fd=c.eventfd(1,0); assert os.read(fd,8)[0]==1; assert c.timerfd_create(1,0)>=0; assert c.signalfd(-1,(ctypes.c_ulong*16)(),0)>=0
@part("signals, groups and sessions")
def _():
    import signal
    got=[]; signal.signal(signal.SIGUSR1,lambda *a: got.append(1)); os.kill(os.getpid(),signal.SIGUSR1); assert got
    p=os.fork()
    if p==0: os.setsid(); os._exit(0 if os.getpgid(0)==os.getpid() else 1)
    assert os.waitpid(p,0)[1]==0; signal.setitimer(signal.ITIMER_REAL,0)
@part("own limits and priorities")
def _():
    import resource
    s,h=resource.getrlimit(resource.RLIMIT_CORE); resource.setrlimit(resource.RLIMIT_CORE,(0,h)); resource.prlimit(0,resource.RLIMIT_CORE); os.nice(1); os.sched_getaffinity(0)
@part("locks, sendfile, copy_file_range, xattrs")
def _():
    import fcntl
    f=open("/tmp/seccomp.lock","w+b"); fcntl.flock(f,fcntl.LOCK_EX); fcntl.lockf(f,fcntl.LOCK_EX); f.write(b"abc"); f.flush()
    g=open("/tmp/seccomp.copy","wb"); assert os.sendfile(g.fileno(),f.fileno(),0,3)==3; os.unlink("/tmp/seccomp.lock"); os.unlink("/tmp/seccomp.copy")
@part("links, renames, modes, times, FIFOs")
def _():
    os.makedirs("/tmp/seccomp.d/x"); open("/tmp/seccomp.d/a","w").write("1"); os.link("/tmp/seccomp.d/a","/tmp/seccomp.d/b"); os.symlink("a","/tmp/seccomp.d/l"); os.rename("/tmp/seccomp.d/b","/tmp/seccomp.d/c")
    os.chmod("/tmp/seccomp.d/a",0o755); os.utime("/tmp/seccomp.d/a",(1,1)); os.mkfifo("/tmp/seccomp.d/f"); os.statvfs("/tmp"); import shutil; shutil.rmtree("/tmp/seccomp.d")
@part("clocks, randomness, names")
def _():
    import time; time.clock_gettime(time.CLOCK_MONOTONIC); time.sleep(0.001); assert len(os.getrandom(8))==8; os.uname(); c.personality(0xffffffff); c.prctl(15,b"x",0,0,0)
@part("processes of Python's own")
def _():
    import multiprocessing as mp
    q=mp.get_context("fork").Queue(); p=mp.get_context("fork").Process(target=q.put,args=(5,)); p.start(); assert q.get(timeout=20)==5; p.join()
`

func checkWorks(t *testing.T, out string) {
	t.Helper()
	parts := strings.Count(seccompWorks, "\n@part(")
	if strings.Count(out, " ok\n") != parts || parts < 10 {
		t.Errorf("%d parts ran:\n%s", parts, out)
	}
}

// foreignCall makes getpid by its x32 number, call32 by the 32-bit entry of the
// processor: mov $20,%eax; int $0x80; ret.
const (
	foreignCall = "import ctypes; print(ctypes.CDLL(None).syscall(0x40000000|39))"
	call32      = `import ctypes,mmap
m=mmap.mmap(-1,4096,prot=7); m.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())`
)

// The same filter on the kernel of this machine, which has all the calls that
// the filter names.
func TestSeccompOnTheHost(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.SkipOrFail(t, "restricting a thread takes root")
	}
	run := func(script string, restrict func() error) (string, *os.ProcessState) {
		t.Helper()
		cmd := exec.Command("/usr/bin/python3", "-c", script)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, "/tmp"
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: protocol.CommandUID, Gid: protocol.CommandUID}}
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			if err := restrict(); err != nil {
				done <- err
				return
			}
			done <- cmd.Run()
		}()
		if err := <-done; err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return out.String(), cmd.ProcessState
	}
	python := func(script string) (string, *os.ProcessState) { return run(script, restrictThread) }
	script, want := seccompCalls()
	if got, _ := python(script); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	got, _ := python(seccompWorks)
	checkWorks(t, got)
	if foreignCalls == 0 {
		return
	}
	for name, script := range map[string]string{"of the x32 kind": foreignCall, "by the 32-bit entry": call32} {
		out, state := python(script)
		if w := state.Sys().(syscall.WaitStatus); !w.Signaled() || w.Signal() != syscall.SIGSYS {
			// Some hypervisors have no 32-bit entry. The processor then refuses the call
			// with and without the filter.
			_, free := run(script, func() error { return nil })
			if f := free.Sys().(syscall.WaitStatus); w.Signaled() && f.Signaled() && w.Signal() == syscall.SIGSEGV && f.Signal() == syscall.SIGSEGV {
				t.Logf("this machine has no calls %s", name)
				continue
			}
			t.Errorf("attack: a call %s: %v %s", name, state, out)
		}
	}
}
