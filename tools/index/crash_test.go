package index

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"satchel/internal/testenv"
	"satchel/tools/index/indextest"
	"satchel/tools/index/postings"
)

// crashHistory is the same history in every process: a first commit, and then one change
// after another.
type crashHistory struct {
	*history
	rng *rand.Rand
	gen *indextest.Generator
}

func newCrashHistory() *crashHistory {
	c := &crashHistory{newHistory(), rand.New(rand.NewPCG(5, 5)), indextest.NewGenerator(5)}
	c.commit(c.gen.Pages(15, 3000))
	return c
}

func (c *crashHistory) next() { c.commit(randomChange(c.rng, c.gen)) }

const crashDir = "SATCHEL_TEST_CRASH_DIR"

// TestCrashChild runs in the process that TestKilledIndex kills. It follows commits until
// then, with updates, merges and a rebuild after every few commits.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("it is run by TestKilledIndex")
	}
	x, err := Open(Options{Dir: dir, storage: postings.Options{BuildBytes: 60_000}})
	if err != nil {
		t.Fatal(err)
	}
	h := newCrashHistory()
	for n := 0; ; n++ {
		if n%7 == 6 {
			err = x.Rebuild(context.Background(), testSpace, h)
		} else {
			err = x.Update(context.Background(), testSpace, h)
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("at", h.head)
		h.next()
	}
}

// A process that is killed in the middle of updates, merges and rebuilds leaves a complete
// index of one commit or of the next, which continues from there.
func TestKilledIndex(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(6, 6))
	kills := 2
	if testenv.Soak() {
		kills = 20
	}
	for range kills {
		cmd := exec.Command(self, "-test.run=^TestCrashChild$", "-test.count=1")
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		last := ""
		for n := 1 + rng.IntN(12); n > 0 && lines.Scan(); {
			if at, ok := strings.CutPrefix(lines.Text(), "at "); ok {
				last = at
				n--
			}
		}
		for range rng.IntN(200_000) { // a random moment in the following updates
			_ = rng.Uint64()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if at, ok := strings.CutPrefix(lines.Text(), "at "); ok {
				last = at
			}
		}
		_ = cmd.Wait() // the error only says that it was killed
		if last == "" {
			t.Fatal("the child did nothing")
		}

		x := openIndex(t, Options{Dir: dir, storage: postings.Options{BuildBytes: 60_000}})
		st, err := x.Status(t.Context(), testSpace)
		if err != nil {
			t.Fatal(err)
		}
		at := st.Commit
		h, told := newCrashHistory(), false // told: the history has passed the last commit that the child printed
		for h.head != at {
			told = told || string(h.head) == last
			h.next()
			if len(h.trees) > 2000 {
				t.Fatalf("the index is at %s, which is no commit", at)
			}
		}
		if !told && string(at) != last {
			t.Fatalf("the index is at %s, which is before %s, where it said that it was", at, last)
		}
		fresh := openIndex(t, Options{storage: postings.Options{BuildBytes: 60_000}})
		update(t, fresh, h)
		if dump(t, x) != dump(t, fresh) {
			t.Fatal("what a killed process left is not what a rebuild makes")
		}
		h.next()
		update(t, x, h)
		update(t, fresh, h)
		if dump(t, x) != dump(t, fresh) {
			t.Fatal("what a killed process left does not go on")
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
