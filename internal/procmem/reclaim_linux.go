package procmem

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Reclaimer gives back memory of the process that made it. Its methods may be
// called at once by many.
type Reclaimer struct {
	maps   int // /proc/self/maps
	static bool
}

const program = "/proc/self/exe"

// NewReclaimer opens what Reclaim reads later, when this process may be in an
// empty root directory and behind a filter that lets it open nothing. The
// descriptor leads nowhere else, and stays open.
//
// It is not for a process within gVisor, which writes jumps into the text of
// programs and needs them to stay.
func NewReclaimer() (*Reclaimer, error) {
	static, err := isStatic(program)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	fd, err := unix.Open("/proc/self/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the list of mappings: %w", err)
	}
	return &Reclaimer{maps: fd, static: static}, nil
}

// isStatic reports whether a program is loaded by the kernel alone. A dynamic
// loader, and a program that relocates itself, write to pages that are
// read-only later.
func isStatic(exe string) (bool, error) {
	f, err := elf.Open(exe)
	if err != nil {
		return false, err
	}
	defer f.Close()
	relocated := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool {
		return p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC || p.Type == elf.PT_GNU_RELRO
	})
	return f.Type == elf.ET_EXEC && !relocated, nil
}

// Reclaim collects the heap's garbage, returns its free pages to the system,
// and drops the pages of program text and other read-only mappings of files.
// What is used again of those is mapped again from the page cache, at a few
// microseconds a fault; the rest, mostly what ran at the start only, stays
// away. It takes some milliseconds of processor time. A nil Reclaimer gives back
// the heap alone.
func (g *Reclaimer) Reclaim() {
	runtime.GC() // what a sync.Pool holds goes with the second collection only
	debug.FreeOSMemory()
	if g == nil {
		return
	}
	for _, m := range readOnly(io.NewSectionReader(fdReader(g.maps), 0, 1<<24), g.static) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

type fdReader int

func (fd fdReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := unix.Pread(int(fd), b, off)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

// mapping is a part of memory that shows a file.
type mapping struct{ start, end uintptr }

// readOnly returns the mappings of files in a maps file (proc_pid_maps(5)) that
// are the file's own pages: shared ones that are not written through, and a
// static program's private ones. A memfd's do not count: they are nowhere else.
func readOnly(r io.Reader, static bool) []mapping {
	var out []mapping
	s := bufio.NewScanner(r)
	for s.Scan() {
		// start-end perms offset device inode path
		f := strings.Fields(s.Text())
		if len(f) < 6 || len(f[1]) != 4 || f[1][:2] != "r-" || f[1][3] != 's' && !static {
			continue
		}
		if !strings.HasPrefix(f[5], "/") || strings.HasPrefix(f[5], "/memfd:") {
			continue
		}
		from, to, ok := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if ok && err1 == nil && err2 == nil && start < end {
			out = append(out, mapping{uintptr(start), uintptr(end)})
		}
	}
	return out
}
