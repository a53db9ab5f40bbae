// Package damagetest damages repositories as a failing disk does, for tests.
package damagetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"satchel/internal/testenv"
)

// TurnByte turns bits of the first byte that the packs of a repository have of
// an object, which is named as git names objects, such as "main:a.md". What a
// store has read before stays in its memory.
func TurnByte(t testing.TB, repo, object string) {
	t.Helper()
	name := testenv.NeedProgram(t, "git")
	git := func(in []byte, args ...string) string {
		cmd := exec.Command(name, append([]string{"--git-dir", repo}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	id := git(nil, "rev-parse", object)
	indexes, err := filepath.Glob(filepath.Join(repo, "objects", "pack", "*.idx"))
	if err != nil {
		t.Fatal(err)
	}
	turned := 0
	for _, idx := range indexes {
		b, err := os.ReadFile(idx)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(git(b, "show-index")) {
			f := strings.Fields(line) // offset, object, checksum
			if f[1] != id {
				continue
			}
			at, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			turn(t, strings.TrimSuffix(idx, ".idx")+".pack", at)
			turned++
		}
	}
	if turned == 0 {
		t.Fatalf("no pack has %s", object)
	}
}

// turn changes the file in place: git views are links to it.
func turn(t testing.TB, file string, at int64) {
	t.Helper()
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x55
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, st.Mode()); err != nil {
		t.Fatal(err)
	}
}
