package gitstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// screener refuses content with the word SECRET, unless the file contained it before.
type screener struct {
	mu    sync.Mutex
	asked []string
	err   error // returned instead of a refusal
}

func (s *screener) screen(_ context.Context, _ space.SpaceID, p space.Path, content []byte, before func() ([]byte, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, string(p))
	if !bytes.Contains(content, []byte("SECRET")) {
		return nil
	}
	if s.err != nil {
		return s.err
	}
	old, err := before()
	if err != nil {
		return err
	}
	if bytes.Contains(old, []byte("SECRET")) {
		return nil
	}
	return fault.New(fault.Forbidden, "There is a secret in %s.", string(p))
}

func (s *screener) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	slices.Sort(out)
	return out
}

func screened(t *testing.T) (*Store, *screener) {
	sc := &screener{}
	return newStore(t, func(o *Options) { o.Screen = sc.screen }), sc
}

func TestAScreenedFileIsLeftOutAndTheRestIsCommitted(t *testing.T) {
	s, _ := screened(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n"})
	for _, policy := range []space.Policy{space.KeepBoth, space.RefuseStale} {
		name := "new-" + string('0'+rune(policy)) + ".md"
		c := commit(t, s, id, space.ChangeSet{Policy: policy, Changes: []space.Change{
			{Path: "key.md", Content: []byte("a SECRET\n")}, {Path: name, Content: []byte("a note\n")},
		}})
		if !c.Changed || len(c.Files) != 1 || string(c.Files[0].Path) != name {
			t.Errorf("%+v", c.Files)
		}
		if len(c.Rejected) != 1 || c.Rejected[0].Path != "key.md" || fault.CodeOf(c.Rejected[0].Err) != fault.Forbidden || !strings.Contains(c.Rejected[0].Why, "secret") {
			t.Errorf("%+v", c.Rejected)
		}
	}
	r, release, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if r.db.Has(plumbing.ComputeHash(plumbing.BlobObject, []byte("a SECRET\n"))) {
		t.Error("what was refused is in the repository")
	}
	c := commit(t, s, id, space.ChangeSet{Changes: []space.Change{{Path: "key.md", Content: []byte("a SECRET\n")}}})
	if c.Changed || len(c.Rejected) != 1 {
		t.Errorf("a change of nothing else: %+v", c)
	}
}

func TestScreeningIsAskedForNewContentAlone(t *testing.T) {
	s, sc := screened(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n", "old.md": "no key\n"})
	first := commit(t, s, id, space.ChangeSet{Changes: []space.Change{{Path: "b.md", Content: []byte("two\n")}}})
	sc.take()
	for what, c := range map[string]struct {
		cs   space.ChangeSet
		want []string
	}{
		"the same again":    {writes(map[string]string{"a.md": "one\n"}), nil},
		"a copy":            {writes(map[string]string{"c.md": "one\n"}), nil},
		"a delete":          {space.ChangeSet{Changes: []space.Change{{Path: "old.md", Op: space.Delete, Base: at(t, s, id, "old.md")}}}, nil},
		"a link":            {space.ChangeSet{Changes: []space.Change{{Path: "l", Mode: space.Symlink, Content: []byte("a.md")}}}, []string{"l"}},
		"new content":       {writes(map[string]string{"d.md": "three\n"}), []string{"d.md"}},
		"what is too large": {writes(map[string]string{"e.md": strings.Repeat("x", DefaultFileLimit+1)}), nil},
		"a bad path":        {writes(map[string]string{"../e.md": "five\n"}), nil},
	} {
		commit(t, s, id, c.cs)
		if got := sc.take(); !slices.Equal(got, c.want) {
			t.Errorf("%s: asked about %q, want %q", what, got, c.want)
		}
	}
	if _, err := s.Restore(t.Context(), id, "old.md", first.ID, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	if got := sc.take(); len(got) != 0 {
		t.Errorf("a restore asked about %q", got)
	}
}

func TestScreeningSeesWhatHeadHas(t *testing.T) {
	screening := false // false for a space that gets a remote later
	sc := &screener{}
	s := newStore(t, func(o *Options) {
		o.Screen = func(ctx context.Context, id space.SpaceID, p space.Path, content []byte, before func() ([]byte, error)) error {
			if !screening {
				return nil
			}
			return sc.screen(ctx, id, p, content, before)
		}
	})
	id := newSpace(t, s, map[string]string{"a.md": "a SECRET\n"})
	screening = true
	c := commit(t, s, id, space.ChangeSet{Changes: []space.Change{
		{Path: "a.md", Content: []byte("a SECRET and more\n"), Base: at(t, s, id, "a.md")},
		{Path: "b.md", Content: []byte("a new SECRET\n")},
	}})
	if len(c.Files) != 1 || c.Files[0].Path != "a.md" || len(c.Rejected) != 1 || c.Rejected[0].Path != "b.md" {
		t.Errorf("%+v", c)
	}
}

func TestAnErrorOfScreeningChangesNothing(t *testing.T) {
	s, sc := screened(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n"})
	before := must(s.Head(t.Context(), id))(t)
	sc.err = errors.New("the rules are broken")
	_, err := s.Commit(t.Context(), id, writes(map[string]string{"key.md": "SECRET\n", "b.md": "two\n"}), space.Meta{Author: ada})
	if !errors.Is(err, sc.err) || must(s.Head(t.Context(), id))(t) != before {
		t.Errorf("%v", err)
	}
}

func TestImportsOfFilesAreScreened(t *testing.T) {
	s, _ := screened(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n"})
	commit(t, s, id, writes(map[string]string{"own.md": "mine\n"}))
	dir := t.TempDir()
	for name, content := range map[string]string{"key.md": "a SECRET\n", "page.md": "a page\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	res, err := s.Import(t.Context(), id, files(t, dir), space.Meta{Author: ada}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Commit.Files) != 1 || res.Commit.Files[0].Path != "page.md" || res.Noted != 1 || res.Notes[0].Path != "key.md" || fault.CodeOf(res.Notes[0].Err) != fault.Forbidden {
		t.Errorf("%+v", res)
	}
	r, release, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if r.db.Has(plumbing.ComputeHash(plumbing.BlobObject, []byte("a SECRET\n"))) {
		t.Error("what was refused is in the repository")
	}
}

// warned returns a store whose Screen accepts everything, and warns about secrets.
func warned(t *testing.T) *Store {
	return newStore(t, func(o *Options) {
		o.Screen = func(_ context.Context, _ space.SpaceID, p space.Path, content []byte, _ func() ([]byte, error)) error {
			if bytes.Contains(content, []byte("SECRET")) || bytes.Contains(content, []byte(secret)) {
				return Warned{Why: "A secret."}
			}
			return nil
		}
	})
}

func TestAWarnedFileIsCommittedAndTold(t *testing.T) {
	s := warned(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n"})
	cs := writes(map[string]string{"key.md": "a SECRET\n", "b.md": "two\n"})
	c, err := s.Commit(t.Context(), id, cs, space.Meta{Author: ada, Message: "the SECRET"})
	if err != nil || len(c.Files) != 2 || len(c.Rejected) != 0 || c.Message != "the SECRET" {
		t.Fatalf("%+v, %v", c, err)
	}
	if want := []space.Warning{{Path: "key.md", Why: "A secret."}, {Path: space.CommentPath, Why: "A secret."}}; !slices.Equal(c.Warnings, want) {
		t.Errorf("%+v", c.Warnings)
	}
	if c = commit(t, s, id, cs); c.Changed || len(c.Warnings) != 0 {
		t.Errorf("the same again: %+v", c)
	}
	if c = commit(t, s, id, writes(map[string]string{"copy.md": "a SECRET\n"})); len(c.Warnings) != 0 {
		t.Errorf("what the space has already: %+v", c.Warnings)
	}
}

func TestAnImportTellsItsWarnings(t *testing.T) {
	s := warned(t)
	id := newSpace(t, s, nil)
	commit(t, s, id, writes(map[string]string{"own.md": "mine\n"}))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key.md"), []byte("a SECRET\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := s.Import(t.Context(), id, files(t, dir), space.Meta{Author: ada, Message: "Import SECRET"}, nil)
	if want := []space.Warning{{Path: "key.md", Why: "A secret."}, {Path: space.CommentPath, Why: "A secret."}}; err != nil || !slices.Equal(res.Commit.Warnings, want) {
		t.Errorf("%+v, %v", res.Commit.Warnings, err)
	}
}

// TestAnImportedHistoryIsScreenedWhole checks that deleted files and messages are screened too.
func TestAnImportedHistoryIsScreenedWhole(t *testing.T) {
	from := newStore(t)
	history := from.repoDir(imported(t, from, `echo a >a; c -m 'a SECRET'; echo SECRET >k; c -m leak; echo gone >k; c -m clean`))

	s := warned(t)
	id := newSpace(t, s, nil)
	res, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, history)), space.Meta{Author: ada}, nil)
	if err != nil || !res.History || len(res.Commit.Warnings) != 2 || !strings.HasPrefix(res.Commit.Warnings[0].Path, "k at ") || !strings.HasPrefix(res.Commit.Warnings[1].Path, space.CommentPath) {
		t.Errorf("%+v, %v", res, err)
	}

	refusing := newStore(t, func(o *Options) {
		o.Screen = func(_ context.Context, _ space.SpaceID, p space.Path, content []byte, _ func() ([]byte, error)) error {
			if bytes.Contains(content, []byte(secret)) {
				return fault.New(fault.Forbidden, "There is a secret in %s.", string(p))
			}
			return nil
		}
	})
	id = newSpace(t, refusing, nil)
	before := must(refusing.Head(t.Context(), id))(t)
	if _, err := refusing.Import(t.Context(), id, FromBundle(testenv.Bundle(t, history)), space.Meta{Author: ada}, nil); fault.CodeOf(err) != fault.Forbidden || must(refusing.Head(t.Context(), id))(t) != before {
		t.Errorf("%v", err)
	}
}
