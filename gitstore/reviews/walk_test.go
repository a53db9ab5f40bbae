package reviews_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/reviews"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// Attack: so many changes follow a change that the review only shows the last, and undoing
// restores an AI's version as the person's.
func TestAttackAChangeIsBuried(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	known := w.write("web", instructions, "mine\n")
	for i := range 205 {
		w.write("bash", instructions, fmt.Sprintf("mine\nevil\n%d\n", i))
	}
	for range 2 {
		if r := w.find(instructions); r.Base != known {
			t.Errorf("the difference is from %s, want %s", r.Base, known)
		}
		w.restart()
	}
	w.undo(instructions)
	if s := w.read(instructions); s != "mine\n" {
		t.Errorf("undone to %q", s)
	}
	if p := w.paths(); p != "" {
		t.Errorf("%q waits", p)
	}
}

// Attack: a file with the shown content becomes executable.
func TestAttackAModeIsNotKeptUnseen(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.write("bash", skill, "ai\n")
	seen := w.find(skill)
	ch := space.Change{Path: skill, Content: []byte("ai\n"), Mode: space.Executable, Base: seen.Blob}
	if _, err := w.git.Commit(t.Context(), w.id, space.ChangeSet{Changes: []space.Change{ch}}, space.Meta{Tool: "bash"}); err != nil {
		t.Fatal(err)
	}
	if err := w.r.Keep(t.Context(), w.id, person, skill, seen.Blob, seen.Mode); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("kept: %v", err)
	}
	if r := w.find(skill); r.Mode != space.Executable {
		t.Errorf("%+v", r)
	}
}

// Attack: one command creates so many files in a space with a long history that every page of
// the space hangs. The number of calls to the store must not grow with the files, and a page
// must not wait.
func TestAttackManyFilesHoldUpNoPage(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	for i := range 60 {
		w.write("bash", "knowledge/x.md", fmt.Sprint(i))
	}
	var many []string
	for i := range 1500 {
		many = append(many, fmt.Sprintf("skills/f%d.md", i), fmt.Sprint(i))
	}
	w.commit("bash", many...)
	held := make(chan struct{})
	w.git.before = func() { <-held } // reading the history blocks
	w.begin(reviews.Options{Patience: time.Nanosecond})
	for range 3 {
		list, behind, err := w.r.Waiting(t.Context(), w.id)
		if err != nil || !behind || len(list) > 0 {
			t.Fatal(len(list), behind, err)
		}
	}
	close(held)
	w.restart()
	w.git.calls()
	if n := len(w.waiting()); n != 1500 {
		t.Fatalf("%d wait", n)
	}
	if n := w.git.calls(); n > 20 {
		t.Errorf("the store was asked %d times for the first look", n)
	}
	for range 5 {
		w.waiting()
	}
	if n := w.git.calls(); n > 5 {
		t.Errorf("the store was asked %d times for 5 pages", n)
	}
	w.write("bash", "knowledge/x.md", "ai\n")
	w.waiting()
	if n := w.git.calls(); n > 8 {
		t.Errorf("the store was asked %d times after a commit of something else", n)
	}
}

// An interrupted read of a long history continues where it was saved.
func TestWhatWasReadIsSaved(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	for i := range 250 {
		w.write("web", skill, fmt.Sprint(i))
	}
	n := 0
	ctx, cancel := context.WithCancel(t.Context())
	w.git.before = func() {
		if n++; n > 230 {
			cancel()
		}
	}
	if err := w.r.Keep(ctx, w.id, person, skill, "", space.Regular); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	n = 0
	w.git.before = func() { n++ }
	w.restart()
	if p := w.paths(); p != "" {
		t.Errorf("%q waits", p)
	}
	if n > 60 {
		t.Errorf("%d commits were looked into again", n)
	}
}

// Both sides of a merge are read, and the merge itself confirms nothing. A foreign history that
// replaces a space's own is read from its beginning.
func TestMergesOfAnImportedHistory(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.id = space.NewSpaceID()
	if _, err := w.git.Create(t.Context(), w.id, gitstore.StartingTree(), space.Meta{Tool: "satchel"}); err != nil {
		t.Fatal(err)
	}
	w.waiting()
	dir := t.TempDir()
	script := exec.Command("sh", "-euc", `git init -q -b main .
n=0
c() { n=$((n+1)); git add -A; GIT_AUTHOR_DATE="$((1700000000+n)) +0000" GIT_COMMITTER_DATE="$((1700000000+n)) +0000" git commit -q "$@"; }
mkdir -p skills/a skills/b skills/c skills/d
for f in a b c d; do seq 9 > skills/$f/SKILL.md; done
c -m start
git checkout -q -b side
sed -i 's/^1$/evil/' skills/a/SKILL.md skills/b/SKILL.md
printf 'ai\n\nSatchel-Tool: bash\nSatchel-Client: claude\n' > ../message
c -F ../message
sed -i 's/^1$/mine/' skills/c/SKILL.md
c -m mine
git checkout -q main
sed -i 's/^9$/mine/' skills/a/SKILL.md skills/d/SKILL.md
c -m mine
git merge -q --no-edit side
`)
	script.Dir = filepath.Join(dir, "repo")
	if err := os.Mkdir(script.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	script.Env = testenv.GitEnv()
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := w.git.Import(t.Context(), w.id, gitstore.FromBundle(testenv.Bundle(t, script.Dir)), space.Meta{Tool: "import"}, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if p := w.paths(); p != "skills/a/SKILL.md skills/b/SKILL.md" {
			t.Errorf("%q waits", p)
		}
		w.restart()
	}
	w.undo("skills/b/SKILL.md")
	if s := w.read("skills/b/SKILL.md"); s != "1\n2\n3\n4\n5\n6\n7\n8\n9\n" {
		t.Errorf("undone to %q", s)
	}
}

// A purge creates another history, in which people still know what they knew.
func TestAPurgeForgetsNoDecision(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.write("bash", skill, "kept\n")
	w.keep(skill)
	w.write("bash", "knowledge/x.md", "secret\n")
	w.write("bash", instructions, "ai\n")
	w.waiting()
	redact := func(_ space.Path, b []byte) ([]byte, bool) {
		return bytes.ReplaceAll(b, []byte("secret"), []byte("gone")), true
	}
	if _, err := w.git.Purge(t.Context(), w.id, "", redact, space.Meta{Tool: "purge"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if p := w.paths(); p != instructions {
			t.Errorf("%q waits", p)
		}
		w.restart()
	}
	w.write("bash", skill, "worse\n")
	if patch, err := w.git.Patch(t.Context(), w.id, w.find(skill).Base, w.find(skill).Head, skill); err != nil || !strings.Contains(patch, "-kept") {
		t.Error(patch, err)
	}
	w.undo(skill)
	if s := w.read(skill); s != "kept\n" {
		t.Errorf("undone to %q", s)
	}
}

// A caller that reads many spaces has no time left for the last ones. It gets their known
// reviews without a call to the store, and they are read in the background.
func TestWaitingWithoutTime(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.write("bash", skill, "ai\n")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	begun := make(chan struct{}, 100)
	w.git.before = func() { begun <- struct{}{} }
	if _, behind, err := w.r.Waiting(over, w.id); err != nil || !behind {
		t.Error("of what is not known", behind, err)
	}
	testenv.Receive(t, "the look", begun)
	w.waiting()
	w.r.Close() // the background read makes one more call at its end
	w.git.calls()
	if list, behind, err := w.r.Waiting(over, w.id); err != nil || !behind || len(list) != 1 {
		t.Error("of what is known", list, behind, err)
	}
	if n := w.git.calls(); n > 0 {
		t.Errorf("the store was asked %d times", n)
	}
}
