//go:build unix

package pending_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"satchel/sandbox/pending"
)

// crashDir is the variable that makes the test binary the process to be killed.
const crashDir = "HELD_CRASH_DIR"

// TestCrashChild is not a test: it saves until it is killed, and prints what it has saved.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return
	}
	s := reopen(t, dir, load(t, filepath.Join(dir, "key")))
	for n := 0; ; n++ {
		// Inline and apart in turn, over what was there before.
		p := fmt.Sprintf("f%d", n%3)
		if _, err := s.Save(t.Context(), user, id, []pending.File{file(p, content(n))}, []string{fmt.Sprintf("f%d", (n+2)%3)}); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("saved %d\n", n)
	}
}

func content(n int) string { return strings.Repeat(fmt.Sprintf("%06d ", n), 1+n%2*800) }

func TestAKilledProcessLosesNothingItSaved(t *testing.T) {
	dir := t.TempDir()
	for range 8 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last, stop := -1, 1+rand.IntN(20)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				if err != io.EOF {
					t.Fatal(err)
				}
				break
			}
			fmt.Sscanf(line, "saved %d", &last)
			if last >= stop {
				_ = cmd.Process.Kill() // gone already only where it failed, which shows below
			}
		}
		_ = cmd.Wait() // killed
		if last < stop {
			t.Fatalf("the process ended by itself after %d", last)
		}
		// The store has what it saved, or what it was saving when it was killed.
		s := reopen(t, dir, load(t, filepath.Join(dir, "key")))
		files, err := s.Load(t.Context(), user, id)
		if err != nil {
			t.Fatal(err)
		}
		ok := false
		for _, n := range []int{last, last + 1} {
			found := 0
			for _, f := range files {
				if f.Path == fmt.Sprintf("f%d", n%3) && string(f.Content) == content(n) {
					found++
				}
			}
			ok = ok || found == 1
		}
		if !ok {
			t.Fatalf("after %d was saved, %d files are held and none is it", last, len(files))
		}
		// The next save takes away what the killed one left half done.
		save(t, s, user, id, []pending.File{file("f0", content(1)), file("f1", content(3)), file("f2", "x")})
		if names := tree(t, filepath.Join(dir, "held")); len(names) != 3 {
			t.Fatalf("on disk are %q", names)
		}
	}
}
