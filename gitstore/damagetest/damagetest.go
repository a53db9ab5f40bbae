// Package damagetest damages repositories in tests, as a failing disk does. Damaging the
// same byte again restores it.
package damagetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"satchel/internal/testenv"
)

// TurnByte damages the header of an object; see TurnObject.
func TurnByte(t testing.TB, repo, object string) {
	t.Helper()
	testenv.NeedProgram(t, "git")
	if err := TurnObject(repo, object, false); err != nil {
		t.Fatal(err)
	}
}

// TurnObject changes one byte of an object in every pack of a repository that contains the object.
// If content is true, it changes a byte of the content, and otherwise the first byte of the header.
// object is a name that git accepts, such as "main:a.md". A store does not notice damage to
// objects that it has in memory.
func TurnObject(repo, object string, content bool) error {
	id, err := git(repo, nil, "rev-parse", object)
	if err != nil {
		return err
	}
	indexes, err := filepath.Glob(filepath.Join(repo, "objects", "pack", "*.idx"))
	if err != nil {
		return err
	}
	turned := 0
	for _, idx := range indexes {
		b, err := os.ReadFile(idx)
		if err != nil {
			return err
		}
		list, err := git(repo, b, "show-index")
		if err != nil {
			return err
		}
		for line := range strings.Lines(list) {
			f := strings.Fields(line) // offset, object, checksum
			if f[1] != id {
				continue
			}
			at, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				return err
			}
			if content {
				at += 5 // past the header
			}
			if err := TurnFile(strings.TrimSuffix(idx, ".idx")+".pack", at); err != nil {
				return err
			}
			turned++
		}
	}
	if turned == 0 {
		return fmt.Errorf("no pack has %s", object)
	}
	return nil
}

func git(repo string, in []byte, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"--git-dir", repo}, args...)...)
	cmd.Env, cmd.Stdin = testenv.GitEnv(), bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %q: %w", args, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// TurnFile changes one byte of a file; a negative offset counts from the end. It
// writes in place, because the git views of sandboxes are links to the file.
func TurnFile(file string, at int64) error {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	if at < 0 {
		at += st.Size()
	}
	if err := os.Chmod(file, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 0x55
	if _, err := f.WriteAt(b[:], at); err != nil {
		return err
	}
	return os.Chmod(file, st.Mode())
}
