package seal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/seal"
)

func load(t *testing.T, name string) *seal.Box {
	t.Helper()
	b, err := seal.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpensWithTheSameKeyPurposeAndSubjectAlone(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "server.key")
	sealed, err := load(t, name).Seal([]byte("hunter2"), "remote token", "s_a")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("hunter2")) {
		t.Fatal("the text is readable in what was sealed")
	}
	again := load(t, name)
	got, err := again.Open(sealed, "remote token", "s_a")
	if err != nil || string(got) != "hunter2" {
		t.Fatalf("Open = %q, %v", got, err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for _, c := range []struct {
		why              string
		box              *seal.Box
		sealed           []byte
		purpose, subject string
	}{
		{"another purpose", again, sealed, "held", "s_a"},
		{"another subject", again, sealed, "remote token", "s_b"},
		{"another key", load(t, filepath.Join(dir, "other.key")), sealed, "remote token", "s_a"},
		{"a changed byte", again, changed, "remote token", "s_a"},
		{"cut short", again, sealed[:5], "remote token", "s_a"},
		{"nothing", again, nil, "remote token", "s_a"},
		{"another form", again, append([]byte{9}, sealed[1:]...), "remote token", "s_a"},
	} {
		if got, err := c.box.Open(c.sealed, c.purpose, c.subject); fault.CodeOf(err) != fault.Invalid || got != nil {
			t.Errorf("%s: Open = %q, %v", c.why, got, err)
		}
	}
	twice, _ := again.Seal([]byte("hunter2"), "remote token", "s_a")
	if bytes.Equal(twice, sealed) {
		t.Error("sealing the same text twice gives the same bytes")
	}
}

func TestTheKeyIsItsOwnersAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "server.key")
	load(t, name)
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", st.Mode().Perm())
	}
	if es, _ := os.ReadDir(filepath.Dir(name)); len(es) != 1 {
		t.Errorf("%d files are left beside the key", len(es)-1)
	}
}

func TestADamagedKeyIsNoNewKey(t *testing.T) {
	name := filepath.Join(t.TempDir(), "server.key")
	if err := os.WriteFile(name, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Load(name); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("Load = %v", err)
	}
	if b, _ := os.ReadFile(name); string(b) != "abc" {
		t.Error("the file was replaced")
	}
}

func TestOfTwoThatMakeAKeyBothHaveTheSame(t *testing.T) {
	name := filepath.Join(t.TempDir(), "server.key")
	var wg sync.WaitGroup
	boxes := make([]*seal.Box, 8)
	for i := range boxes {
		wg.Go(func() { boxes[i], _ = seal.Load(name) })
	}
	wg.Wait()
	sealed, err := boxes[0].Seal([]byte("x"), "p", "s")
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range boxes {
		if _, err := b.Open(sealed, "p", "s"); err != nil {
			t.Errorf("box %d: %v", i, err)
		}
	}
}
