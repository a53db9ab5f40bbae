package procmem

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestParseRollup(t *testing.T) {
	for _, c := range []struct {
		text       string
		pss, shmem int64
		ok         bool
	}{
		{"00400000-7fff [rollup]\nRss:  900 kB\nPss:  600 kB\nPss_Anon: 100 kB\nPss_Shmem:  200 kB\n", 600 << 10, 200 << 10, true},
		{"Pss:  600 kB\n", 600 << 10, 0, true}, // before Linux 5.9
		{"Pss:  100 kB\nPss_Shmem:  200 kB\n", 100 << 10, 100 << 10, true},
		{"Pss:  x kB\n", 0, 0, false},
		{"Pss:  -5 kB\n", 0, 0, false},
		{"", 0, 0, false},
	} {
		pss, shmem, ok := parseRollup(strings.NewReader(c.text))
		if pss != c.pss || shmem != c.shmem || ok != c.ok {
			t.Errorf("%q: %d, %d, %v", c.text, pss, shmem, ok)
		}
	}
}

// Only the program's own read-only pages are dropped. Other pages may be written to, or their
// mappings may end meanwhile.
func TestMappingsOfTheProgram(t *testing.T) {
	const maps = `00400000-01000000 r-xp 00000000 fe:00 12 /opt/satchel (deleted)
01000000-02000000 r--p 00c00000 fe:00 12 /opt/satchel
02000000-02100000 rw-p 01c00000 fe:00 12 /opt/satchel
02100000-02200000 r--s 01c00000 fe:00 13 /opt/other
03000000-03100000 r--s 00000000 00:01 12 /memfd:memory (deleted)
c000000000-c004000000 r--p 00000000 00:00 0
7fff0000-7fff1000 r-xp 00000000 00:00 0 [vdso]
zz-yy r-xp 0 0 0 /x
`
	program := fileAt(strings.NewReader(maps), 0x400123)
	if program != "fe:00 12" || fileAt(strings.NewReader(maps), 0xc000000000) != "" {
		t.Errorf("the program is %q", program)
	}
	var got []mapping
	for m := range mappings(strings.NewReader(maps)) {
		if m.readOnly && m.file == program {
			got = append(got, m)
		}
	}
	if want := []mapping{{0x400000, 0x1000000, true, program}, {0x1000000, 0x2000000, true, program}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestIsStatic(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	if static, err := isStatic(sh); err != nil || static {
		t.Errorf("%s: %v, %v", sh, static, err)
	}
	if _, err := isStatic(os.DevNull); err == nil {
		t.Error("a device was read as a program")
	}
}

// A process continues to run after Reclaim, and has less memory.
func TestGiveBack(t *testing.T) {
	g, err := NewReclaimer()
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(g.maps)
	// Nothing else in this test uses these pages of the program.
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	const size = 1 << 20
	mapped, err := syscall.Mmap(int(exe.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mapped)
	sum := func() (n int) {
		for i := 0; i < size; i += 4096 {
			n += int(mapped[i])
		}
		return n
	}
	want := sum()
	garbage := make([]byte, 64<<20)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.KeepAlive(garbage)
	before := Of(os.Getpid())
	g.Reclaim()
	after := Of(os.Getpid())
	if gone := before.PSS - after.PSS; gone < 60<<20 {
		t.Errorf("%d bytes went, of %d", gone, before.PSS)
	}
	if got := sum(); got != want {
		t.Errorf("the mapped file reads %d, want %d", got, want)
	}
}

// Two processes with one address space count once, and two with separate ones twice.
func TestOfCountsAnAddressSpaceOnce(t *testing.T) {
	self := os.Getpid()
	one := Of(self)
	if one.Spaces != 1 || one.PSS <= 0 {
		t.Fatalf("%+v", one)
	}
	if twice := Of(self, self); twice.Spaces != 1 || twice.PSS > 2*one.PSS-one.PSS/2 {
		t.Errorf("the same twice: %+v, once: %+v", twice, one)
	}
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	// Start sh with cat as its child.
	sh := exec.Command("sh", "-c", filepath.Clean(cat)+"; true")
	in, err := sh.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := sh.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // cat is running
		t.Fatal(err)
	}
	below := Descendants(self)
	if len(below) != 2 || below[0] != sh.Process.Pid {
		t.Errorf("below are %v", below)
	}
	if u := Of(below...); u.Spaces != 2 || u.PSS <= 0 {
		t.Errorf("%v: %+v", below, u)
	}
	in.Close()
	if err := sh.Wait(); err != nil {
		t.Error(err)
	}
	if u := Of(below...); u != (Usage{}) {
		t.Errorf("what has ended: %+v", u)
	}
}
