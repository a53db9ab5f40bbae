package gitcmd_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/gitcmd"
	"satchel/internal/testenv"
)

// telling is a script that tells which limits it has from its beginning.
const telling = `ulimit -d; ulimit -c`

func TestEachProcessHasItsLimits(t *testing.T) {
	for name, body := range map[string]string{
		"the program":                telling,
		"its child":                  "(" + telling + ") & wait",
		"a child's child, at once":   "(  (" + telling + ") & wait ) & wait",
		"a program that it becomes":  "exec sh -c '" + telling + "'",
		"a child of what it becomes": `exec sh -c '(` + telling + `) & wait'`,
	} {
		r := script(t, body+"\n")
		r.Memory = 64 << 20
		out, err := r.Run(t.Context(), gitcmd.Cmd{Args: []string{"fetch"}})
		if err != nil || string(out) != "65536\n0\n" {
			t.Errorf("%s: the limits are %q: %v", name, out, err)
		}
	}
	r := script(t, "[ $(ulimit -d) = 1048576 ]\n")
	if _, err := r.Run(t.Context(), gitcmd.Cmd{Args: []string{"fetch"}}); err != nil {
		t.Errorf("the default: %v", err)
	}
	r = script(t, "[ $(ulimit -c) = 0 ] && ulimit -d\n")
	r.Memory = -1
	if out, err := r.Run(t.Context(), gitcmd.Cmd{Args: []string{"fetch"}}); err != nil || string(out) != "unlimited\n" {
		t.Errorf("without a limit: %q, %v", out, err)
	}
}

// The attack: a pack of a few kilobytes with a delta that makes an object of
// hundreds of megabytes.
func TestAPackThatUnpacksToTooMuchIsRefused(t *testing.T) {
	git := testenv.NeedProgram(t, "git")
	dir := filepath.Join(t.TempDir(), "repo.git")
	pack := deltaBomb(t, 400<<20)
	if len(pack) > 64<<10 {
		t.Fatalf("the pack has %d bytes", len(pack))
	}
	r := gitcmd.Runner{Program: git, Memory: 128 << 20}
	if _, err := r.Run(t.Context(), gitcmd.Cmd{Args: []string{"init", "-q", "--bare", dir}}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Run(t.Context(), gitcmd.Cmd{Dir: dir, GitDir: dir, Args: []string{"index-pack", "--stdin", "--strict"}, Stdin: bytes.NewReader(pack)})
	if !gitcmd.OutOfMemory(err) {
		t.Errorf("got %v", err)
	}
}

func TestARemoteCannotSayThatWeHaveNoMemory(t *testing.T) {
	for text, want := range map[string]bool{
		"remote: fatal: Out of memory, malloc failed":                        false,
		"fatal: remote error: out of memory":                                 false,
		"fatal: Out of memory, malloc failed (tried to allocate 1048576)":    true,
		"remote: hello\nfatal: Out of memory, realloc failed":                true,
		"error: index-pack died\nfatal: mmap failed: Cannot allocate memory": true,
		"fatal: early EOF": false,
	} {
		err := fmt.Errorf("fetch: %w", &gitcmd.Error{Cmd: "fetch", Stderr: text})
		if got := gitcmd.OutOfMemory(err); got != want {
			t.Errorf("%q is %t", text, got)
		}
		err = &gitcmd.Error{Cmd: "fetch", Stderr: text, Here: true}
		if got := gitcmd.OutOfMemory(err); got != (want || strings.HasPrefix(text, "remote: fatal")) {
			t.Errorf("of a directory %q is %t", text, got)
		}
	}
	if gitcmd.OutOfMemory(nil) {
		t.Error("nil")
	}
}

// deltaBomb makes a pack of a blob of a megabyte, and a delta on it that
// repeats that until it has size bytes (gitformat-pack(5)).
func deltaBomb(t *testing.T, size int) []byte {
	t.Helper()
	base := make([]byte, 1<<20)
	var delta bytes.Buffer
	delta.Write(deltaSize(len(base)))
	delta.Write(deltaSize(size))
	for left := size; left > 0; {
		n := min(left, len(base))
		delta.Write([]byte{0x80 | 0x10 | 0x20 | 0x40, byte(n), byte(n >> 8), byte(n >> 16)})
		left -= n
	}
	name := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(base)), base...))
	var pack bytes.Buffer
	pack.WriteString("PACK")
	binary.Write(&pack, binary.BigEndian, []uint32{2, 2})
	for _, o := range []struct {
		kind   byte
		before []byte
		data   []byte
	}{{3, nil, base}, {7, name[:], delta.Bytes()}} {
		n := len(o.data)
		b := o.kind<<4 | byte(n&15)
		for n >>= 4; n > 0; n >>= 7 {
			pack.WriteByte(b | 0x80)
			b = byte(n & 0x7f)
		}
		pack.WriteByte(b)
		pack.Write(o.before)
		z := zlib.NewWriter(&pack)
		z.Write(o.data)
		z.Close()
	}
	sum := sha1.Sum(pack.Bytes())
	pack.Write(sum[:])
	return pack.Bytes()
}

func deltaSize(n int) []byte {
	var out []byte
	for ; n > 0x7f; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}
