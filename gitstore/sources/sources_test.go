package sources_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/sources"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

var files = map[string]string{
	"knowledge/a.md": "alpha", "knowledge/deep/b.md": "beta", "memory/person/name.md": "private", "secret.txt": "hidden", "knowledge2/c.md": "not this",
}

func TestAPublishedDirectoryIsShownAndFollowed(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		w := newWorld(t, db, files)
		s := w.add()
		if got := w.paths(s); got != "a.md deep/b.md" {
			t.Errorf("the snapshot has %q", got)
		}
		if s.State != space.SourceReady || s.Files != 2 || s.Commit == "" {
			t.Errorf("published: %+v", s)
		}
		dir, release, err := w.Library(t.Context(), bob)
		must(t, err)
		defer release()
		if got, want := tree(t, dir), "docs/team-notes/a.md=alpha docs/team-notes/deep/b.md=beta"; got != want {
			t.Errorf("a sandbox has %q, want %q", got, want)
		}
		old := s.Commit
		w.write(map[string]string{"knowledge/a.md": "DELETE", "knowledge/new.md": "gamma", "secret.txt": "more"})
		s = w.synced("team-notes")
		if got := w.paths(s); got != "deep/b.md new.md" || s.Commit == old {
			t.Errorf("after a commit the snapshot has %q", got)
		}
		if got, want := tree(t, dir), "docs/team-notes/deep/b.md=beta docs/team-notes/new.md=gamma"; got != want {
			t.Errorf("the running sandbox has %q, want %q", got, want)
		}
		// A call that began before continues with its snapshot.
		if list, err := w.Files(t.Context(), s.Collection, old, ""); err != nil || len(list) != 2 || list[0].Path != "a.md" {
			t.Errorf("the snapshot before: %v, %v", list, err)
		}
		w.Close()
		w.open()
		s = w.synced("team-notes")
		if got := w.paths(s); got != "deep/b.md new.md" || s.Title != "Team notes" {
			t.Errorf("after a restart: %q %+v", got, s)
		}
	})
}

// Reset writes the files in sandboxes again, even if the space has not changed.
func TestResetMakesTheSnapshotAgain(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		w := newWorld(t, db, files)
		w.add()
		dir, release, err := w.Library(t.Context(), bob)
		must(t, err)
		defer release()
		want := tree(t, dir)
		// Every link to the file, in the tree of the source and in the library, loses its text
		// at once.
		must(t, os.WriteFile(filepath.Join(dir, "docs", "team-notes", "a.md"), nil, 0o600))
		w.synced("team-notes")
		if got := tree(t, dir); got == want {
			t.Fatal("the damage did not last to the reset")
		}
		s, err := w.Reset(t.Context(), ada, "team-notes")
		must(t, err)
		if got := tree(t, dir); got != want || s.State != space.SourceReady {
			t.Errorf("after the reset a sandbox has %q (%s), want %q", got, s.State, want)
		}
		if _, err := w.Reset(t.Context(), ada, "no-such"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a source that there is not: %v", err)
		}
	})
}

func TestWhoSeesASource(t *testing.T) {
	for _, c := range []struct {
		name     string
		audience func(*request)
		then     func(w *world)
		bob, eve string
	}{
		{"for everybody", func(*request) {}, nil, "team-notes", "team-notes"},
		{"for bob", only(bob), nil, "team-notes", ""},
		{"for nobody by name", only(), nil, "", ""},
		{"narrowed", func(*request) {}, func(w *world) { w.add(only(bob)) }, "team-notes", ""},
		{"widened", only(), func(w *world) { w.add() }, "team-notes", "team-notes"},
		{"unpublished", only(bob), func(w *world) { must(w.t, w.Remove(w.ctx, w.id, "team-notes")) }, "", ""},
		{"the space was given away", func(*request) {}, func(w *world) { w.own(ada); w.own(eve, w.id) }, "", ""},
		{"its owner was removed", func(*request) {}, func(w *world) { w.own(ada) }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sqlite(t), files)
			w.add(c.audience)
			dirs := map[space.UserID]string{}
			for _, u := range []space.UserID{bob, eve} {
				dir, release, err := w.Library(t.Context(), u)
				must(t, err)
				defer release()
				dirs[u] = dir
			}
			if c.then != nil {
				c.then(w)
			}
			// Reads end at once. The caller that removed the right then updates the sandboxes.
			for u, want := range map[space.UserID]string{bob: c.bob, eve: c.eve} {
				if got := w.sees(u); got != want {
					t.Errorf("%s sees %q, want %q", u, got, want)
				}
			}
			w.Look(t.Context())
			for u, want := range map[space.UserID]string{bob: c.bob, eve: c.eve} {
				if got := tree(t, dirs[u]); (got != "") != (want != "") {
					t.Errorf("the running sandbox of %s has %q", u, got)
				}
				dir, release, err := w.Library(t.Context(), u)
				must(t, err)
				if got := tree(t, dir); (got != "") != (want != "") {
					t.Errorf("a new sandbox of %s has %q", u, got)
				}
				release()
			}
		})
	}
}

func TestWhatIsPublishedAgainHasNothingOfBefore(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	first := w.add()
	must(t, w.Remove(t.Context(), w.id, "team-notes"))
	if got := <-w.dropped; got != first.Collection {
		t.Errorf("the index of %s was dropped, want %s", got, first.Collection)
	}
	other := space.NewSpaceID()
	_, err := w.git.Create(t.Context(), other, changes(map[string]string{"knowledge/theirs.md": "theirs"}), meta)
	must(t, err)
	w.own(eve, other)
	second := w.add(func(r *request) { r.Space, r.By = other, eve })
	if second.Collection == first.Collection {
		t.Error("another publication has the collection of an ended one")
	}
	if _, err := w.Files(t.Context(), first.Collection, first.Commit, ""); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("reading an ended publication: %v", err)
	}
	if got := w.paths(second); got != "theirs.md" {
		t.Errorf("the new source has %q", got)
	}
	// Another directory is also another publication, because no index may mix them.
	third := w.add(func(r *request) { r.ID, r.Dir = "mine", "knowledge2" })
	must(t, w.Remove(t.Context(), w.id, "mine"))
	fourth := w.add(func(r *request) { r.ID, r.Dir = "mine", "knowledge" })
	if third.Collection == fourth.Collection || w.paths(fourth) != "a.md deep/b.md" {
		t.Errorf("after a change of the directory: %q in %s, before in %s", w.paths(fourth), fourth.Collection, third.Collection)
	}
}

// A source stays as it is, with its audience, if its publisher uses its name for something
// else.
func TestANameThatIsTakenStaysWithWhatHasIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*request)
		want   string
	}{
		{"another directory of the same space", func(r *request) { r.Dir = "knowledge2" }, `You already publish knowledge/ as "team-notes".`},
		{"another directory, by the form of a change", func(r *request) { r.Dir, r.New = "knowledge2", false }, `You already publish knowledge/ as "team-notes".`},
		{"the same directory, as if it were new", func(*request) {}, `You already publish knowledge/ as "team-notes".`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sqlite(t), files)
			had := w.add(func(r *request) { r.Everybody, r.Users = false, []space.UserID{bob} })
			r := request{Source: space.Source{ID: had.ID, Space: w.id, Dir: "knowledge", Everybody: true, By: ada}, Consent: sources.Consent{New: true}}
			c.change(&r)
			_, err := w.Add(t.Context(), r.Source, r.Consent)
			wantCode(t, c.name, err, fault.Conflict)
			if !strings.HasPrefix(fault.PublicOf(err), c.want) || fault.FieldOf(err) != space.SourceName {
				t.Errorf("it is said of %q: %v", fault.FieldOf(err), err)
			}
			if got, hers := w.sees(bob), w.sees(eve); got != had.ID || hers != "" {
				t.Errorf("bob sees %q, eve %q", got, hers)
			}
			if got := w.paths(had); got != "a.md deep/b.md" {
				t.Errorf("the source has %q", got)
			}
			if _, err := w.Find("another"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("a source that nobody published: %v", err)
			}
			if got, err := w.Find(had.ID); err != nil || got.ID != had.ID {
				t.Errorf("the source: %v, %v", got.ID, err)
			}
		})
	}
}

func TestPublishRefuses(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	other := space.NewSpaceID()
	_, err := w.git.Create(t.Context(), other, changes(map[string]string{"knowledge/x.md": "x"}), meta)
	must(t, err)
	w.own(bob, other)
	w.add(func(r *request) { r.ID, r.Space, r.By = "taken", other, bob })
	for _, c := range []struct {
		name   string
		change func(*request)
		code   fault.Code
	}{
		{"attack: who does not own the space", func(r *request) { r.By = eve }, fault.Forbidden},
		{"attack: nobody", func(r *request) { r.By = "" }, fault.Forbidden},
		{"attack: the name of another's source", func(r *request) { r.ID = "taken" }, fault.Conflict},
		{"attack: a name that is a path", func(r *request) { r.ID = "../etc" }, fault.Invalid},
		{"attack: a name with a slash", func(r *request) { r.ID = "a/b" }, fault.Invalid},
		{"attack: a dot", func(r *request) { r.ID = "." }, fault.Invalid},
		{"attack: a name that differs in case", func(r *request) { r.ID = "TAKEN" }, fault.Invalid},
		{"attack: script", func(r *request) { r.ID = "<script>" }, fault.Invalid},
		{"attack: a line break", func(r *request) { r.ID = "a\nb" }, fault.Invalid},
		{"attack: what search calls the space", func(r *request) { r.ID = "space" }, fault.Invalid},
		{"attack: what search calls the space, in other letters", func(r *request) { r.ID = "ſpace" }, fault.Invalid},
		{"a hyphen at the end", func(r *request) { r.ID = "a-" }, fault.Invalid},
		{"no name", func(r *request) { r.ID = "" }, fault.Invalid},
		{"a name too long", func(r *request) { r.ID = strings.Repeat("a", 41) }, fault.Invalid},
		{"attack: a directory outside", func(r *request) { r.Dir = "knowledge/../memory" }, fault.Invalid},
		{"attack: above the space", func(r *request) { r.Dir = ".." }, fault.Invalid},
		{"attack: git's own", func(r *request) { r.Dir = ".GIT" }, fault.Invalid},
		{"memory without a word", func(r *request) { r.Dir = "memory" }, fault.Invalid},
		{"in memory without a word", func(r *request) { r.Dir = "/memory/person/" }, fault.Invalid},
		{"everything without a word", func(r *request) { r.Dir = "" }, fault.Invalid},
		{"everything, in other words", func(r *request) { r.Dir = "/" }, fault.Invalid},
		{"a directory that is not there", func(r *request) { r.Dir = "nothing" }, fault.Invalid},
		{"a file", func(r *request) { r.Dir = "secret.txt" }, fault.Invalid},
		{"a directory in other case", func(r *request) { r.Dir = "Knowledge" }, fault.Invalid},
		{"a title too long", func(r *request) { r.Title = strings.Repeat("é", 81) }, fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request{Source: space.Source{ID: "notes", Space: w.id, Dir: "knowledge", Everybody: true, By: ada}}
			c.change(&r)
			_, err := w.Add(t.Context(), r.Source, r.Consent)
			wantCode(t, c.name, err, c.code)
			if got := w.sees(eve); got != "taken" {
				t.Errorf("there is now %q", got)
			}
		})
	}
	s := w.add(func(r *request) { r.ID, r.Dir, r.WithMemory = "all-of-it", "", true })
	if got := w.paths(s); !strings.Contains(got, "memory/person/name.md") {
		t.Errorf("what was said to be shown is not: %q", got)
	}
	wantCode(t, "unpublish by way of another space", w.Remove(t.Context(), other, "all-of-it"), fault.NotFound)
}

func TestLimits(t *testing.T) {
	w := newWorld(t, sqlite(t), files, func(o *sources.Options) { o.MaxFiles, o.MaxBytes, o.MaxSources = 2, 20, 1 })
	s := w.add()
	_, err := w.Add(t.Context(), space.Source{ID: "second", Space: w.id, Dir: "knowledge2", By: ada}, sources.Consent{})
	wantCode(t, "one source too many", err, fault.Limited)
	w.write(map[string]string{"knowledge/more.md": "more"})
	s = w.synced("team-notes")
	if s.State != space.SourceFailed || !strings.Contains(s.Problem, "3 files") || w.paths(s) != "a.md deep/b.md" {
		t.Errorf("too many files: %+v, which shows %q", s, w.paths(s))
	}
	w.write(map[string]string{"knowledge/more.md": "DELETE", "knowledge/a.md": "short"})
	if s = w.synced("team-notes"); s.State != space.SourceReady || s.Problem != "" {
		t.Errorf("when it fits again: %+v", s)
	}
	// Emptying the directory means that nothing in it should be shown.
	w.write(map[string]string{"knowledge/a.md": "DELETE", "knowledge/deep/b.md": "DELETE"})
	if s = w.synced("team-notes"); s.State != space.SourceReady || w.paths(s) != "" {
		t.Errorf("an empty directory: %+v shows %q", s, w.paths(s))
	}
}

// Each text has its own column.
func TestTheTextsOfASourceAreStored(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	var want space.SourceText
	for _, f := range want.Fields() {
		*f.Text = "the " + f.Name
	}
	w.add(func(r *request) { r.SourceText = want })
	w.Close()
	w.open()
	if all := w.All(); len(all) != 1 || all[0].SourceText != want {
		t.Errorf("got %+v", all)
	}
}

func TestTextsOfPeopleAreOneLine(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	// Invisible characters do not make a title different.
	s := w.add(func(r *request) { r.Title, r.Description = "a\nb\u202e\u200b c", "x\x00y  z" })
	if s.Title != "a b c" || s.Description != "x y z" {
		t.Errorf("got %q and %q", s.Title, s.Description)
	}
}
