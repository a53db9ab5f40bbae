package syncs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// world is a data directory with the real stores. Open it again for another start of the server.
type world struct {
	*syncs.Manager
	db      *database.DB
	git     *gitstore.Store
	sources *sources.Manager
	remotes *transport.Client
	shows   func() // called when readers see another version; may be nil
}

// openWorld opens a data directory, as a start of the server does.
func openWorld(ctx context.Context, dir, url, workflows, git string, change func(*syncs.Options), store ...func(*gitstore.Options)) (*world, error) {
	w := &world{}
	var err error
	so := gitstore.Options{Dir: filepath.Join(dir, "spaces")}
	for _, f := range store {
		f(&so)
	}
	if w.git, err = gitstore.Open(so); err != nil {
		return nil, err
	}
	if w.db, err = database.Open(ctx, database.Options{URL: url}); err != nil {
		return nil, err
	}
	if _, err = w.db.Migrate(ctx, append(sources.Migrations(), syncs.Migrations()...)...); err != nil {
		return nil, err
	}
	w.sources = sources.New(sources.Options{
		DB: w.db, Store: w.git, Dir: filepath.Join(dir, "library"), Settle: time.Millisecond, LookEvery: time.Hour,
		Owned: func(context.Context, space.UserID) ([]space.SpaceID, error) { return nil, nil },
	})
	if err := w.sources.Load(ctx); err != nil {
		return nil, err
	}
	err = w.sources.Start(ctx, sources.Index{Changed: func(space.SpaceID) {
		if w.shows != nil {
			w.shows()
		}
	}, Dropped: func(context.Context, space.SpaceID) error { return nil }})
	if err != nil {
		return nil, err
	}
	runner := gitcmd.Runner{Program: git}
	w.remotes = transport.New(transport.Options{Git: runner})
	o := syncs.Options{
		DB: w.db, Workflows: workflows, Store: w.git, Sources: w.sources, Dir: filepath.Join(dir, "syncs"), Retry: time.Millisecond,
		Env: upstream.Env{Remotes: w.remotes, Git: runner, MaxFileBytes: 1 << 20, MaxBytes: 64 << 20, Now: time.Now},
	}
	if change != nil {
		change(&o)
	}
	w.Manager = syncs.New(o)
	return w, w.Load(ctx)
}

func (w *world) close() error {
	err := w.Close()
	w.sources.Close()
	return errors.Join(err, w.remotes.Close(), w.db.Close(), w.git.Close())
}

// bench is a world in a test, with a git server.
type bench struct {
	*world
	t      *testing.T
	ctx    context.Context
	server *remotetest.Server
	space  space.SpaceID
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchWith(t, func(*syncs.Options) {})
}

func newBenchWith(t *testing.T, change func(*syncs.Options)) *bench {
	t.Helper()
	dir := t.TempDir()
	return newBenchIn(t, dir, "sqlite:"+filepath.Join(dir, "x.db"), "sqlite:"+filepath.Join(dir, "workflows.db"), change)
}

func newBenchIn(t *testing.T, dir, url, workflows string, change ...func(*syncs.Options)) *bench {
	t.Helper()
	w, err := openWorld(t.Context(), dir, url, workflows, testenv.NeedProgram(t, "git"), func(o *syncs.Options) {
		for _, f := range change {
			f(o)
		}
	})
	must(t, err)
	t.Cleanup(func() { must(t, w.close()) })
	b := &bench{world: w, t: t, ctx: t.Context(), server: remotetest.New(t, remotetest.Options{})}
	b.server.Create("docs")
	return b
}

// add adds the source handbook for everybody, as the operator does.
func (b *bench) add() {
	b.t.Helper()
	b.space = space.NewSpaceID()
	_, err := b.git.Create(b.ctx, b.space, space.ChangeSet{}, space.Meta{})
	must(b.t, err)
	_, err = b.Add(b.ctx, space.Source{ID: "handbook", Space: b.space, Everybody: true}, b.setting())
	must(b.t, err)
}

func (b *bench) setting() syncs.Setting {
	return syncs.Setting{URL: b.server.URL("docs"), Trusted: true}
}

func (b *bench) sync(flags ...string) space.SyncRun {
	b.t.Helper()
	r, err := b.Sync(b.ctx, "handbook", slices.Contains(flags, "reset"), slices.Contains(flags, "confirm"), func(space.SyncProgress) {})
	must(b.t, err)
	return r
}

// shown returns the files that readers see.
func (w *world) shown(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	s, err := w.sources.Find("handbook")
	if err != nil || s.Commit == "" {
		return out, err
	}
	files, err := w.sources.Files(ctx, s.Collection, s.Commit, "")
	for _, f := range files {
		b, err := w.sources.ReadBlob(ctx, s.Collection, f.Blob)
		if err != nil {
			return nil, err
		}
		out[string(f.Path)] = string(b)
	}
	return out, err
}

func (b *bench) wantShown(want map[string]string) {
	b.t.Helper()
	got, err := b.shown(b.ctx)
	must(b.t, err)
	if !maps.Equal(got, want) {
		b.t.Errorf("readers see %q, want %q", got, want)
	}
}

// upstream returns the files of a repository's branch.
func upstreamFiles(s *remotetest.Server) map[string]string {
	out := map[string]string{}
	for _, p := range s.Files("docs", "main") {
		out[p], _ = s.File("docs", "main", p)
	}
	return out
}

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
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
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

// pages returns n files with a text.
func pages(n int, text string) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("guide/page-%03d.md", i)] = fmt.Sprintf("# Page %d\n\n%s\n", i, text)
	}
	return out
}
