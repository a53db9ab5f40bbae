package gvisor

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// slimAfter is how long after its start a sentry or gofer has booted for
// certain.
const slimAfter = time.Second

// slim makes a process that is about to become a sentry or a gofer small once
// it has booted: it then gives back the heap of its start and the pages of the
// program that it ran through, about 9 MB of each sandbox's proportional share.
//
// It also begins with one processor: gVisor drops forty capabilities on every
// thread, one after the other, and each thread costs a round. The sentry sets
// its own number later.
func slim() {
	all := runtime.GOMAXPROCS(1)
	var text []mapping
	if f, err := os.Open("/proc/self/maps"); err == nil {
		text = programText(f)
		f.Close()
	}
	gofer := os.Args[0] == "runsc-gofer"
	time.AfterFunc(slimAfter, func() {
		if gofer {
			runtime.GOMAXPROCS(all)
		}
		debug.FreeOSMemory()
		for _, m := range text {
			// These are the program file's own bytes, never written to: the next
			// use of a page maps it again from the page cache.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
		}
	})
}

type mapping struct{ start, end uintptr }

// programText returns the read-only mappings of files in a maps file
// (proc_pid_maps(5)).
func programText(r io.Reader) []mapping {
	var out []mapping
	s := bufio.NewScanner(r)
	for s.Scan() {
		// start-end perms offset device inode path
		f := strings.Fields(s.Text())
		if len(f) < 6 || !strings.HasPrefix(f[5], "/") || f[1] != "r-xp" && f[1] != "r--p" {
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
