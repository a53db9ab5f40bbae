package procmem

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// gVisor's systrap replaces "mov $number, %eax; syscall" in a program's text by
// a jump, once it has seen the call, while other threads run through it
// (pkg/sentry/platform/systrap/usertrap, amd64 alone). A thread between the two
// instructions then meets an invalid one, and is sent back only where the jump
// is still there. So what was patched must not be dropped: the thread would die
// of the fault. Dropping it would also use up the few jumps that there are for a
// process.
const (
	patchable    = 7 // bytes of the two instructions
	syscallAfter = 5 // bytes of the first
	movEAX       = 0xb8
	patchedPage  = 4096 // bytes of a page on amd64
)

var syscallInstruction = []byte{0x0f, 0x05}

// extent is a part of a file, in bytes from its start.
type extent struct{ from, to int64 }

// patchedPages returns the pages of a program's file that gVisor may write to
// once they are mapped, in order. It reads the text once, about a millisecond
// for 2 MB.
func patchedPages(exe string) ([]extent, error) {
	f, err := os.Open(exe)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, err
	}
	if e.Machine != elf.EM_X86_64 {
		return nil, nil
	}
	var pages []extent
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		text := io.NewSectionReader(f, int64(p.Off), int64(p.Filesz))
		err := eachSyscall(text, func(at int64) {
			at += int64(p.Off)
			page := extent{at &^ (patchedPage - 1), (at + patchable + patchedPage - 1) &^ (patchedPage - 1)}
			if !slices.Contains(pages, page) {
				pages = append(pages, page)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading the text: %w", err)
		}
	}
	slices.SortFunc(pages, func(a, b extent) int { return int(a.from - b.from) })
	return pages, nil
}

// eachSyscall reports where each pair of instructions begins that gVisor would
// replace. Data that looks like one counts too.
func eachSyscall(text io.Reader, found func(at int64)) error {
	buf := make([]byte, 64<<10)
	var start int64 // of buf in the text
	kept := 0       // bytes of the last read: a pair may lie across two
	for {
		n, err := io.ReadFull(text, buf[kept:])
		b := buf[:kept+n]
		for i := syscallAfter; i < len(b); {
			next := bytes.Index(b[i:], syscallInstruction)
			if next < 0 {
				break
			}
			i += next
			if b[i-syscallAfter] == movEAX {
				found(start + int64(i-syscallAfter))
			}
			i++
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		kept = copy(buf, b[len(b)-(patchable-1):])
		start += int64(len(b) - kept)
	}
}

// without returns what of an extent the others, in order, leave.
func (e extent) without(others []extent) []extent {
	var out []extent
	for _, o := range others {
		if o.to <= e.from || o.from >= e.to {
			continue
		}
		if o.from > e.from {
			out = append(out, extent{e.from, o.from})
		}
		e.from = o.to
	}
	if e.from < e.to {
		out = append(out, e)
	}
	return out
}
