package agent

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"satchel/sandbox/protocol"
)

// firstMark is where the group ids that mark the processes of commands begin. Every command gets a
// supplementary group of its own: its processes inherit it, can never leave it without CAP_SETGID,
// and show it in /proc/<pid>/status, so none can escape with setsid or by outliving its parent.
const firstMark = 1 << 20

// shell is a restricted bash that waits for its command or runs it. Starting a process in
// gVisor takes milliseconds, which a command does not wait for if its shell was started
// before.
type shell struct {
	pid      int
	mark     uint32
	readOnly bool
	uid      uint32
	exited   <-chan unix.WaitStatus
	stdout   *os.File
	stderr   *os.File
	text     int // memfd that gets the command
	wake     int // pipe whose closing lets the shell read the command
	closed   bool
}

// run passes the command to the shell and wakes it.
func (s *shell) run(command string) error {
	defer unix.Close(s.wake)
	for _, f := range []*os.File{s.stdout, s.stderr} {
		// The command's user must own the pipes to open /dev/stdout and /dev/stderr. The owner
		// changes only now, so that no earlier command of the same user could write to them.
		if err := f.Chown(int(s.uid), int(s.uid)); err != nil {
			return fmt.Errorf("handing over the output: %w", err)
		}
	}
	for b := []byte(command); len(b) > 0; {
		n, err := unix.Pwrite(s.text, b, int64(len(command)-len(b)))
		if err != nil {
			return fmt.Errorf("handing over the command: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// began reports whether the shell has read its command: both sides of the memfd share one
// offset.
func (s *shell) began() bool {
	at, err := unix.Seek(s.text, 0, io.SeekCurrent)
	return err != nil || at > 0
}

// close closes the agent's descriptors of the shell. ran reports whether run was called, which
// closes wake. Further calls of close do nothing.
func (s *shell) close(ran bool) {
	if s.closed {
		return
	}
	s.closed = true
	if !ran {
		unix.Close(s.wake)
	}
	unix.Close(s.text)
	s.stdout.Close()
	s.stderr.Close()
}

// endOutput makes the readers of the output read what is available, and then end.
func (s *shell) endOutput() {
	for _, f := range []*os.File{s.stdout, s.stderr} {
		_ = f.SetReadDeadline(time.Unix(1, 0)) // fails only if the pipe is closed
	}
}

// spawner starts shells on a thread of its own. The shells inherit the restrictions of
// the thread. The thread of read-only shells is in a mount namespace of its own.
type spawner struct {
	reaper   *reaper
	readOnly bool
	env      []string
	script   string
	work     chan func()
}

func newSpawner(b protocol.Boot, r *reaper, readOnly bool) (*spawner, error) {
	s := &spawner{reaper: r, readOnly: readOnly, env: environment(b.Env, readOnly), script: shellScript(b), work: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		ready <- s.prepareThread(b)
		for f := range s.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		close(s.work)
		return nil, err
	}
	return s, nil
}

func (s *spawner) uid() uint32 {
	if s.readOnly {
		return protocol.ReadOnlyUID
	}
	return protocol.CommandUID
}

func (s *spawner) prepareThread(b protocol.Boot) error {
	if s.readOnly {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
			return fmt.Errorf("making a mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making mounts private: %w", err)
		}
		const ro = unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
		if err := unix.Mount("", protocol.SpaceDir, "", ro, ""); err != nil {
			return fmt.Errorf("making the space read-only: %w", err)
		}
		if err := mountTmp(b, protocol.ReadOnlyUID); err != nil {
			return err
		}
		// The working directory still refers to the writable mount.
		if err := unix.Chdir(protocol.SpaceDir); err != nil {
			return err
		}
	}
	return restrictThread()
}

// spawn starts a shell under a mark that no other shell has.
func (s *spawner) spawn(mark uint32) (*shell, error) {
	type result struct {
		sh  *shell
		err error
	}
	done := make(chan result, 1)
	s.work <- func() {
		sh, err := s.fork(mark)
		done <- result{sh, err}
	}
	r := <-done
	return r.sh, r.err
}

func (s *spawner) fork(mark uint32) (*shell, error) {
	var fds []int
	closeAll := func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	fail := func(err error) (*shell, error) {
		closeAll()
		return nil, fmt.Errorf("starting a shell: %w", err)
	}
	pipes := make([][2]int, 3) // stdout, stderr, wake
	for i := range pipes {
		if err := unix.Pipe2(pipes[i][:], unix.O_CLOEXEC); err != nil {
			return fail(err)
		}
		fds = append(fds, pipes[i][:]...)
	}
	text, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	fds = append(fds, text)
	// Without this, another command of the same user could write to the memfd through /proc.
	if err := unix.Fchmod(text, 0); err != nil {
		return fail(err)
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	fds = append(fds, null)
	for _, fd := range []int{pipes[0][0], pipes[1][0]} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return fail(err)
		}
	}
	attr := &syscall.ProcAttr{
		Dir:   protocol.SpaceDir,
		Env:   s.env,
		Files: []uintptr{uintptr(null), uintptr(pipes[0][1]), uintptr(pipes[1][1]), uintptr(text), uintptr(pipes[2][0])},
		Sys: &syscall.SysProcAttr{
			Setsid:     true,
			Credential: &syscall.Credential{Uid: s.uid(), Gid: s.uid(), Groups: []uint32{mark}},
		},
	}
	pid, exited, err := s.reaper.start("/bin/bash", []string{"bash", "-c", s.script}, attr)
	if err != nil {
		return fail(err)
	}
	for _, fd := range []int{null, pipes[0][1], pipes[1][1], pipes[2][0]} {
		unix.Close(fd)
	}
	return &shell{
		pid: pid, mark: mark, readOnly: s.readOnly, uid: s.uid(), exited: exited,
		stdout: os.NewFile(uintptr(pipes[0][0]), "stdout"),
		stderr: os.NewFile(uintptr(pipes[1][0]), "stderr"),
		text:   text, wake: pipes[2][1],
	}, nil
}

// shellScript returns the script of a shell. It sets the shell's limits, waits until the
// wake pipe is closed, and evaluates the command as `bash -c` would, with no trace of the
// wait. It puts the command into BASH_EXECUTION_STRING, where bash itself keeps the text of
// -c. The script sets the limits because they belong to a process, not to the thread that
// starts it. A process may always lower its limits.
func shellScript(b protocol.Boot) string {
	var w strings.Builder
	w.WriteString("umask 022;ulimit -c 0")
	limit := func(flag string, v int64) {
		if v > 0 {
			w.WriteString(";ulimit -" + flag + " " + strconv.FormatInt(v, 10))
		}
	}
	limit("u", int64(b.Processes))
	limit("n", int64(b.OpenFiles))
	limit("f", (b.FileSize+1023)/1024)
	w.WriteString(`;read -r -u 4;exec 4<&-;mapfile -u 3;exec 3<&-;printf -v BASH_EXECUTION_STRING %s "${MAPFILE[@]}"` +
		`;unset -v MAPFILE REPLY;SECONDS=0;eval "$BASH_EXECUTION_STRING"`)
	return w.String()
}

// environment returns the complete environment of a command. The entries of extra come last, and
// override others.
func environment(extra []string, readOnly bool) []string {
	user := "satchel" // the names are those in package oci's /etc/passwd
	if readOnly {
		user = "reader"
	}
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + homeDir,
		"PWD=" + protocol.SpaceDir,
		"LANG=C.UTF-8",
		"TERM=dumb",
		"SHELL=/bin/bash",
		"USER=" + user,
		"LOGNAME=" + user,
	}
	for _, v := range extra {
		name, _, _ := strings.Cut(v, "=")
		for i, old := range env {
			if strings.HasPrefix(old, name+"=") {
				env = append(env[:i], env[i+1:]...)
				break
			}
		}
		env = append(env, v)
	}
	return env
}

// reaper is the only caller of wait4: process 1 inherits every orphan.
type reaper struct {
	mu       sync.Mutex
	children map[int]chan unix.WaitStatus
	started  chan struct{} // has a value if there may be children again
}

func newReaper() *reaper {
	r := &reaper{children: make(map[int]chan unix.WaitStatus), started: make(chan struct{}, 1)}
	go r.loop()
	return r
}

// start runs a program. The channel that it returns gets the program's exit status.
func (r *reaper) start(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan unix.WaitStatus, error) {
	// Hold the lock during the fork: otherwise the child could be reaped before it is
	// registered.
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	exited := make(chan unix.WaitStatus, 1)
	r.children[pid] = exited
	select {
	case r.started <- struct{}{}:
	default:
	}
	return pid, exited, nil
}

// loop runs until the process ends.
func (r *reaper) loop() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil: // ECHILD
			<-r.started
		default:
			r.mu.Lock()
			exited := r.children[pid]
			delete(r.children, pid)
			r.mu.Unlock()
			if exited != nil {
				exited <- status
			}
		}
	}
}
