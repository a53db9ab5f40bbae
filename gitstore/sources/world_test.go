package sources_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore"
	"satchel/gitstore/sources"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store of spaces with a Manager over it. The user ada owns the space.
type world struct {
	*sources.Manager
	t   *testing.T
	ctx context.Context
	db  *database.DB
	git *gitstore.Store
	id  space.SpaceID
	dir string

	mu      sync.Mutex
	owners  map[space.UserID][]space.SpaceID
	changed []space.SpaceID
	dropped chan space.SpaceID
	changes chan space.SpaceID
}

const ada, bob, eve = space.UserID("u_ada"), space.UserID("u_bob"), space.UserID("u_eve")

var meta = space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}, Tool: "test"}

func newWorld(t *testing.T, db *database.DB, files map[string]string, with ...func(*sources.Options)) *world {
	t.Helper()
	git, err := gitstore.Open(gitstore.Options{Dir: filepath.Join(t.TempDir(), "spaces")})
	must(t, err)
	t.Cleanup(func() { must(t, git.Close()) })
	if _, err := db.Migrate(t.Context(), sources.Migrations()...); err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, ctx: t.Context(), db: db, git: git, id: space.NewSpaceID(), dir: filepath.Join(t.TempDir(), "library"),
		owners: map[space.UserID][]space.SpaceID{}, dropped: make(chan space.SpaceID, 99), changes: make(chan space.SpaceID, 999),
	}
	w.owners[ada] = []space.SpaceID{w.id}
	_, err = git.Create(w.ctx, w.id, changes(files), meta)
	must(t, err)
	w.open(with...)
	return w
}

func sqlite(t *testing.T) *database.DB { return databasetest.Open(t, databasetest.SQLite(t)) }

// open creates a Manager, as a start of the server does.
func (w *world) open(with ...func(*sources.Options)) {
	w.t.Helper()
	o := sources.Options{
		DB: w.db, Store: w.git, Dir: w.dir, Settle: time.Millisecond, LookEvery: time.Hour,
		Owned: func(_ context.Context, u space.UserID) ([]space.SpaceID, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.owners[u]), nil
		},
	}
	for _, f := range with {
		f(&o)
	}
	w.Manager = sources.New(o)
	m := w.Manager
	w.t.Cleanup(m.Close)
	must(w.t, m.Load(w.ctx))
	must(w.t, m.Start(w.ctx, sources.Index{
		Changed: func(c space.SpaceID) { w.changes <- c },
		Dropped: func(_ context.Context, c space.SpaceID) error { w.dropped <- c; return nil },
	}))
}

func (w *world) own(u space.UserID, ids ...space.SpaceID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[u] = ids
}

func changes(files map[string]string) space.ChangeSet {
	var cs space.ChangeSet
	for p, text := range files {
		c := space.Change{Path: p, Content: []byte(text)}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			c.Mode, c.Content = space.Symlink, []byte(target)
		}
		if text == "DELETE" {
			c = space.Change{Path: p, Op: space.Delete}
		}
		cs.Changes = append(cs.Changes, c)
	}
	sort.Slice(cs.Changes, func(i, j int) bool { return cs.Changes[i].Path < cs.Changes[j].Path })
	return cs
}

// write commits files; the content DELETE deletes a file.
func (w *world) write(files map[string]string) space.Commit {
	w.t.Helper()
	cs := changes(files)
	for i := range cs.Changes {
		c := &cs.Changes[i]
		if b, m, ok, err := w.git.Blob(w.ctx, w.id, "", space.Path(c.Path)); err == nil && ok {
			c.Base, c.BaseMode = b, m
		}
	}
	c, err := w.git.Commit(w.ctx, w.id, cs, meta)
	must(w.t, err)
	return c
}

// request is the input of a test's publication.
type request struct {
	space.Source
	sources.Consent
}

// add publishes knowledge/ for everybody, after changing the request.
func (w *world) add(change ...func(*request)) space.Source {
	w.t.Helper()
	r := request{Source: space.Source{ID: "team-notes", SourceText: space.SourceText{Title: "Team notes"}, Space: w.id, Dir: "knowledge", Everybody: true, By: ada}}
	for _, f := range change {
		f(&r)
	}
	s, err := w.Add(w.ctx, r.Source, r.Consent)
	must(w.t, err)
	return s
}

func only(users ...space.UserID) func(*request) {
	return func(r *request) { r.Everybody, r.Users = false, users }
}

// sees returns the sources that a user may read.
func (w *world) sees(u space.UserID) string {
	w.t.Helper()
	all, err := w.Visible(w.ctx, u)
	must(w.t, err)
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return strings.Join(ids, " ")
}

// synced waits until the source shows the space's head.
func (w *world) synced(id string) space.Source {
	w.t.Helper()
	s, err := w.Sync(w.ctx, ada, id)
	must(w.t, err)
	return s
}

// paths lists the files of a snapshot.
func (w *world) paths(s space.Source) string {
	w.t.Helper()
	at, err := w.Head(w.ctx, s.Collection)
	must(w.t, err)
	list, err := w.Files(w.ctx, s.Collection, at, "")
	must(w.t, err)
	var out []string
	for _, f := range list {
		out = append(out, string(f.Path))
	}
	return strings.Join(out, " ")
}

// tree lists the files that a sandbox sees, with their contents.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Type()&os.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			out = append(out, rel+" -> "+to)
			return err
		}
		b, err := os.ReadFile(p)
		out = append(out, rel+"="+strings.TrimSpace(string(b)))
		return err
	}))
	return strings.Join(out, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("%s: got %q (%v), want %q", what, fault.CodeOf(err), err, code)
	}
}
