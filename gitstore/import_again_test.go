package gitstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/space"
)

// TestAnImportAgainMakesNoSecondCopy checks that a file that differs from the space's version
// is kept beside it once for each version, even if it is imported several times.
func TestAnImportAgainMakesNoSecondCopy(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"seeded": "s"})
	commit(t, s, id, space.ChangeSet{Policy: space.KeepBoth, Changes: []space.Change{
		{Path: "notes/a.md", Content: []byte("mine")}, {Path: "b", Content: []byte("mine")}}})
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "notes"), 0o755); err != nil {
		t.Fatal(err)
	}
	overwrite(t, filepath.Join(dir, "notes/a.md"), "theirs")
	overwrite(t, filepath.Join(dir, "b"), "theirs")
	imported := func() ImportResult {
		t.Helper()
		return must(s.Import(t.Context(), id, files(t, dir), space.Meta{Author: ada}, nil))(t)
	}
	if first := imported(); len(first.Commit.Conflicts) != 2 || !first.Commit.Changed {
		t.Fatalf("%+v", first)
	}
	before := fmt.Sprint(tree(t, s, id))
	if again := imported(); again.Commit.Changed || len(again.Commit.Conflicts) != 0 || again.Files != 2 {
		t.Errorf("%+v", again)
	}
	if after := fmt.Sprint(tree(t, s, id)); after != before {
		t.Errorf("%s, was %s", after, before)
	}
	overwrite(t, filepath.Join(dir, "notes/a.md"), "theirs, newer")
	if newer := imported(); len(newer.Commit.Conflicts) != 1 || newer.Commit.Conflicts[0].Path != "notes/a.md" {
		t.Errorf("%+v", newer)
	}
}

// TestASenderLeavesOutWhatTheReceiverRefuses checks that a file that is too large costs
// nothing, and that the result says why the file is missing.
func TestASenderLeavesOutWhatTheReceiverRefuses(t *testing.T) {
	dir := t.TempDir()
	overwrite(t, filepath.Join(dir, "small"), "x")
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(50 << 30); err != nil {
		t.Skipf("this file system has no files of 50 GiB: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteTar(t.Context(), dir, &b, 1000); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, func(o *Options) { o.Limits.File = 1000 })
	id := newSpace(t, s, map[string]string{"seeded": "s"})
	res := must(s.Import(t.Context(), id, FromTar(&b), space.Meta{Author: ada}, nil))(t)
	if res.Files != 1 || len(res.Notes) != 1 || res.Notes[0].Path != "sparse" || !strings.Contains(res.Notes[0].Why, "larger than the 1000 bytes") {
		t.Errorf("%+v", res)
	}
}

func TestOnlyGitsProgressIsTold(t *testing.T) {
	var told []string
	tell := onlyProgress(func(l string) { told = append(told, l) })
	for _, l := range []string{"From /srv/data/spaces/.quarantine/import-1/bundle", "Receiving objects:   3% (1/33)", " * [new ref] HEAD -> main", "Resolving deltas: 100% (9/9), done."} {
		tell(l)
	}
	if len(told) != 2 {
		t.Errorf("%q", told)
	}
}
