package procmem

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
)

func TestEachSyscall(t *testing.T) {
	pair := []byte{movEAX, 0xca, 0, 0, 0, 0x0f, 0x05}
	const chunk = 64 << 10 // what is read at once
	for _, at := range []int{0, 1, 100, chunk - 8, chunk - 7, chunk - 6, chunk - 3, chunk - 1, chunk, 2*chunk - 9, 2*chunk - 12, 3*chunk - 7} {
		text := make([]byte, 3*chunk)
		copy(text[at:], pair)
		for name, r := range map[string]func() []int64{
			"whole":    func() []int64 { return syscallsIn(t, text, false) },
			"in bytes": func() []int64 { return syscallsIn(t, text, true) },
		} {
			if got := r(); !slices.Equal(got, []int64{int64(at)}) {
				t.Errorf("%s, at %d: found at %d", name, at, got)
			}
		}
	}
	for name, text := range map[string][]byte{
		"nothing":            nil,
		"too short":          pair[2:],
		"another way":        {0xb9, 0xca, 0, 0, 0, 0x0f, 0x05},
		"something between":  {movEAX, 0xca, 0, 0, 0, 0x90, 0x0f, 0x05},
		"sysenter, not this": {movEAX, 0xca, 0, 0, 0, 0x0f, 0x34},
	} {
		if got := syscallsIn(t, text, false); len(got) != 0 {
			t.Errorf("%s: found at %d", name, got)
		}
	}
	twice := slices.Concat([]byte{0x0f, 0x05}, pair, pair)
	if got := syscallsIn(t, twice, false); !slices.Equal(got, []int64{2, 9}) {
		t.Errorf("twice: found at %d", got)
	}
}

func syscallsIn(t *testing.T, text []byte, bytewise bool) (found []int64) {
	t.Helper()
	var err error
	each := func(at int64) { found = append(found, at) }
	if bytewise {
		err = eachSyscall(iotest.OneByteReader(bytes.NewReader(text)), each)
	} else {
		err = eachSyscall(bytes.NewReader(text), each)
	}
	if err != nil {
		t.Error(err)
	}
	return found
}

func TestExtentWithout(t *testing.T) {
	for _, c := range []struct {
		e      extent
		others []extent
		want   []extent
	}{
		{extent{10, 20}, nil, []extent{{10, 20}}},
		{extent{10, 20}, []extent{{0, 10}, {20, 30}}, []extent{{10, 20}}},
		{extent{10, 20}, []extent{{12, 14}}, []extent{{10, 12}, {14, 20}}},
		{extent{10, 20}, []extent{{0, 12}, {12, 13}, {18, 40}}, []extent{{13, 18}}},
		{extent{10, 20}, []extent{{12, 14}, {13, 15}}, []extent{{10, 12}, {15, 20}}},
		{extent{10, 20}, []extent{{0, 40}}, nil},
	} {
		t.Run(fmt.Sprint(c.e, c.others), func(t *testing.T) {
			if got := c.e.without(c.others); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// A Go program makes its system calls in a few places, which are few pages.
func TestPatchedPages(t *testing.T) {
	pages, err := patchedPages(program)
	if err != nil {
		t.Fatal(err)
	}
	if (len(pages) > 0) != (runtime.GOARCH == "amd64") || len(pages) > 50 {
		t.Errorf("%d pages: %v", len(pages), pages)
	}
	for _, p := range pages {
		if p.from%patchedPage != 0 || p.to%patchedPage != 0 || p.from >= p.to {
			t.Errorf("no pages: %v", p)
		}
	}
	if _, err := patchedPages(os.DevNull); err == nil {
		t.Error("a device was read as a program")
	}
}
