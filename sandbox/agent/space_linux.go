package agent

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"satchel/sandbox/protocol"
)

const (
	// maxDepth and maxReportedPath limit the reported paths. They are twice the limits of a
	// space, so that the host can explain most violations.
	maxDepth        = 64
	maxReportedPath = 4096
	// keptBatches is how many recent collections can still be acknowledged.
	keptBatches = 4
	// opaqueName is the extended attribute of a directory in the upper layer that hides the
	// directory at the same path in the lower layer.
	opaqueName = "trusted.overlay.opaque"
)

// stamp identifies the state of a path in the upper layer. Equal stamps mean that the path has not
// changed, except through a mapping (see writeWatch), because no command can set back an inode's
// ctime.
type stamp struct {
	ino    uint64
	mode   uint32
	rdev   uint64
	opaque bool
	size   int64 // size and the times are zero for a directory or a whiteout
	mtime  int64
	ctime  int64
}

func stampOf(st *unix.Stat_t, opaque bool) stamp {
	s := stamp{ino: st.Ino, mode: st.Mode, rdev: uint64(st.Rdev), opaque: opaque}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		s.mode &= unix.S_IFMT // git keeps no modes of directories
		return s
	}
	if s.whiteout() {
		// All whiteouts mean the same, so their inodes do not matter.
		return stamp{mode: s.kind()}
	}
	s.size, s.mtime, s.ctime = st.Size, st.Mtim.Nano(), st.Ctim.Nano()
	return s
}

func (s stamp) kind() uint32   { return s.mode & unix.S_IFMT }
func (s stamp) whiteout() bool { return s.kind() == unix.S_IFCHR && s.rdev == 0 }

// spaceView compares the upper layer with what the host knows, which is acked. One
// operation runs at a time.
type spaceView struct {
	pool  *pool
	user  *userThread
	upper int  // the upper layer, as root sees it
	lower int  // the checkout; hideOwn covers its path
	space int  // SpaceDir
	git   bool // the root's .git is a mount point

	mu      sync.Mutex
	acked   map[string]stamp
	batches map[uint64]map[string]*stamp // by batch and path; nil: the path is gone
	last    uint64
	cut     *cutWalk // a collection that can continue
	watch   *writeWatch
	copies  int // conflict copies made
	findUse func() liveUse
	hooks   viewHooks
}

// viewHooks let tests run code between the steps of an application, and after a collection
// has read a file.
type viewHooks struct {
	beforeSwap, afterSwap, beforeSettle, beforePutBack, afterRead func(path string)
}

func (h *viewHooks) swap(p string)    { run(h.beforeSwap, p) }
func (h *viewHooks) swapped(p string) { run(h.afterSwap, p) }
func (h *viewHooks) settle()          { run(h.beforeSettle, "") }
func (h *viewHooks) putBack(p string) { run(h.beforePutBack, p) }

func run(f func(string), p string) {
	if f != nil {
		f(p)
	}
}

func newSpaceView(p *pool, lower int) (*spaceView, error) {
	v := &spaceView{pool: p, lower: lower, acked: make(map[string]stamp), batches: make(map[uint64]map[string]*stamp)}
	v.findUse = func() liveUse { return findUse(p.running(), protocol.SpaceDir) }
	var err error
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if v.upper, err = unix.Open(upperDir, flags, 0); err != nil {
		return nil, fmt.Errorf("opening the upper layer: %w", err)
	}
	if v.space, err = unix.Open(protocol.SpaceDir, flags, 0); err != nil {
		return nil, fmt.Errorf("opening the space: %w", err)
	}
	var st unix.Stat_t
	v.git = unix.Fstatat(v.upper, gitName, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	if v.watch, err = newWriteWatch(); err != nil {
		return nil, fmt.Errorf("watching the space: %w", err)
	}
	v.user, err = newUserThread()
	return v, err
}

// noteWrites treats every known file that a writer has closed as changed until the file is
// acknowledged again. It calls the function each, unless nil, with the path of every closed
// file. all means that writers may have closed any file.
func (v *spaceView) noteWrites(each func(p string)) (all bool) {
	suspect := func(p string) {
		if s, ok := v.acked[p]; ok && s.kind() == unix.S_IFREG {
			s.ctime = never
			v.acked[p] = s
		}
	}
	all = v.watch.drain(func(p string) {
		suspect(p)
		if each != nil {
			each(p)
		}
	})
	if all {
		for p := range v.acked {
			suspect(p)
		}
	}
	return all
}

// inLower reports whether the checkout has a path.
func (v *spaceView) inLower(p string) bool {
	fd, err := openBeneath(v.lower, p, unix.O_PATH, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err != unix.ENOENT && err != unix.ENOTDIR
}

// ack records that the host has saved a batch.
func (v *spaceView) ack(a protocol.AckRequest) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, ok := v.batches[a.Batch]
	if !ok {
		return fmt.Errorf("no batch %d", a.Batch)
	}
	delete(v.batches, a.Batch)
	for _, p := range a.Except {
		delete(b, p)
	}
	v.ackCut(a.Batch, b)
	for p, s := range b {
		if s == nil {
			delete(v.acked, p)
		} else {
			v.acked[p] = *s
		}
	}
	return nil
}

// userThread runs functions as the commands' user: a thread of the agent with that
// effective user and no effective capability. gVisor has no setfsuid. The real and saved
// user ids stay root's, so no command can signal the thread.
type userThread struct{ work chan func() }

func newUserThread() (*userThread, error) {
	t := &userThread{work: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		ready <- becomeUser()
		for f := range t.work {
			f()
		}
	}()
	return t, <-ready
}

// becomeUser changes only the calling thread, unlike the functions of package syscall.
func becomeUser() error {
	const keep = ^uintptr(0)
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return os.NewSyscallError("setgroups", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, keep, protocol.CommandUID, keep); e != 0 {
		return os.NewSyscallError("setresgid", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, protocol.CommandUID, keep); e != 0 {
		return os.NewSyscallError("setresuid", e)
	}
	return nil
}

// do runs f on the thread, and returns when f has returned.
func (t *userThread) do(f func()) {
	done := make(chan struct{})
	t.work <- func() { defer close(done); f() }
	<-done
}

// openBeneath opens a path under a directory, following no link anywhere and
// never waiting for a FIFO's other end.
func openBeneath(dir int, path string, flags uint64, mode uint64) (int, error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK // openat2 does not allow it with O_PATH
	}
	how := unix.OpenHow{
		Flags:   flags,
		Mode:    mode,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for again := 0; ; {
		fd, err := unix.Openat2(dir, path, &how)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN && again < openTries:
			again++
		default:
			return fd, err
		}
	}
}

// openTries limits how often opening is repeated after concurrent renames: a file with a
// lease (fcntl(2)) returns the same error for as long as its holder likes.
const openTries = 1000

// isOpaque reports whether an open directory of the upper layer hides the directory at the same
// path in the lower layer.
func (v *spaceView) isOpaque(fd int) bool {
	var b [8]byte
	n, err := unix.Fgetxattr(fd, opaqueName, b[:])
	return err == nil && n == 1 && b[0] == 'y'
}

// readNames lists an open directory, which stays open.
func readNames(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(again), "directory")
	defer dir.Close()
	return dir.Readdirnames(-1)
}
