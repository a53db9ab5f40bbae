package procmem

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"iter"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Reclaimer returns memory of this process to the system. Its methods may be called
// concurrently.
type Reclaimer struct {
	maps int    // the open /proc/self/maps
	file string // the program, as named in maps; "" if its pages may have been written to
}

const program = "/proc/self/exe"

// NewReclaimer opens the file that Reclaim reads later. By then, this process may be in an
// empty root directory and behind a filter that refuses to open anything. The descriptor gives
// access to nothing else, and stays open.
//
// NewReclaimer is not for a process in gVisor, which writes jumps into the text of programs and
// needs them to stay.
func NewReclaimer() (*Reclaimer, error) {
	static, err := isStatic(program)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	fd, err := unix.Open("/proc/self/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the list of mappings: %w", err)
	}
	g := &Reclaimer{maps: fd}
	if static {
		g.file = fileAt(g.read(), reflect.ValueOf(NewReclaimer).Pointer())
	}
	return g, nil
}

// read returns a reader of the current list of mappings.
func (g *Reclaimer) read() io.Reader { return io.NewSectionReader(fdReader(g.maps), 0, 1<<24) }

// isStatic reports whether only the kernel loads a program. A dynamic loader, and a program
// that relocates itself, write to pages that later become read-only.
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

// Reclaim collects the heap's garbage and returns its free pages to the system. It also drops
// the pages of a static program's text and read-only data. Pages that are used again come from
// the page cache, at a few microseconds each. The other pages, mostly code that only ran at
// the start, are not loaded again. Reclaim takes some milliseconds of processor time. With a nil
// Reclaimer, it only frees heap pages.
//
// The pages of other files stay. Their mappings may end while Reclaim runs, and other memory
// may then take their addresses.
func (g *Reclaimer) Reclaim() {
	runtime.GC() // FreeOSMemory collects again, and two collections empty each sync.Pool
	debug.FreeOSMemory()
	if g == nil || g.file == "" {
		return
	}
	for m := range mappings(g.read()) {
		if m.file == g.file && m.readOnly {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
		}
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

// mapping is a part of memory that contains a file.
type mapping struct {
	start, end uintptr
	readOnly   bool
	file       string // the device and inode numbers, because a path changes with the root directory
}

// mappings returns the mappings of files in a maps file (proc_pid_maps(5)).
func mappings(r io.Reader) iter.Seq[mapping] {
	return func(yield func(mapping) bool) {
		s := bufio.NewScanner(r)
		for s.Scan() {
			// start-end perms offset device inode path
			f := strings.Fields(s.Text())
			if len(f) < 6 || len(f[1]) != 4 || !strings.HasPrefix(f[5], "/") {
				continue
			}
			from, to, ok := strings.Cut(f[0], "-")
			start, err1 := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			if !ok || err1 != nil || err2 != nil || start >= end {
				continue
			}
			if !yield(mapping{uintptr(start), uintptr(end), f[1][:2] == "r-" && f[1][3] == 'p', f[3] + " " + f[4]}) {
				return
			}
		}
	}
}

// fileAt returns the file of the mapping at an address, or "" if there is none.
func fileAt(maps io.Reader, address uintptr) string {
	for m := range mappings(maps) {
		if m.start <= address && address < m.end {
			return m.file
		}
	}
	return ""
}
