package syncs_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// crashDir turns the test binary into the server that TestKilledSyncs kills.
const crashDir = "SATCHEL_TEST_CRASH_SYNCS"

// child runs as that server, and reports whether it did.
func child() bool {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return false
	}
	ctx := context.Background()
	w, err := openKilled(ctx, dir, os.Getenv("SATCHEL_TEST_GIT"))
	if err == nil {
		w.Start()
		_, err = w.Sync(ctx, "handbook", false, false, func(space.SyncProgress) {})
	}
	fmt.Println("ended", err)
	select {} // until it is killed
}

func openKilled(ctx context.Context, dir, git string) (*world, error) {
	return openWorld(ctx, dir, "sqlite:"+filepath.Join(dir, "x.db"), "sqlite:"+filepath.Join(dir, "workflows.db"), git, func(o *syncs.Options) {
		o.Store = spoken{o.Store}
	})
}

// A server is killed during a sync. The next start finishes the sync by itself, readers always
// see a complete version, and nothing is committed twice.
func TestKilledSyncs(t *testing.T) {
	git := testenv.NeedProgram(t, "git")
	server := remotetest.New(t, remotetest.Options{})
	server.Create("docs")
	server.Push("docs", "main", pages(150, "revision 0"))
	dir := t.TempDir()
	id := space.NewSpaceID()
	within := func(do func(w *world)) {
		t.Helper()
		w, err := openKilled(t.Context(), dir, git)
		must(t, err)
		do(w)
		must(t, w.close())
	}
	within(func(w *world) {
		_, err := w.git.Create(t.Context(), id, space.ChangeSet{}, space.Meta{})
		must(t, err)
		_, err = w.Add(t.Context(), space.Source{ID: "handbook", Space: id, Everybody: true}, syncs.Setting{URL: server.URL("docs"), Trusted: true})
		must(t, err)
		_, err = w.Sync(t.Context(), "handbook", false, false, func(space.SyncProgress) {})
		must(t, err)
	})
	kills := 5
	for i := 1; i <= kills; i++ {
		old := upstreamFiles(server)
		change := pages(150, fmt.Sprint("revision ", i))
		for n := range 20 {
			change[fmt.Sprintf("guide/page-%03d.md", n+i)] = remotetest.Gone
			change[fmt.Sprintf("new/%d-%d.md", i, n)] = fmt.Sprint("added by ", i)
		}
		server.Push("docs", "main", change)
		want := upstreamFiles(server)
		killSync(t, server, dir, git, rand.IntN(9))
		within(func(w *world) {
			seen := func() bool {
				t.Helper()
				got, err := w.shown(t.Context())
				must(t, err)
				if !maps.Equal(got, old) && !maps.Equal(got, want) {
					t.Fatalf("kill %d: readers see %d files of neither version", i, len(got))
				}
				return maps.Equal(got, want)
			}
			seen()
			w.Start()
			testenv.WaitFor(t, "the sync to finish by itself", func() bool {
				st, err := w.Status(t.Context(), "handbook")
				must(t, err)
				done := seen()
				if st.Running == nil && !done {
					_, err := w.Sync(t.Context(), "handbook", false, false, func(space.SyncProgress) {}) // it was killed before the run was stored
					must(t, err)
				}
				return done && st.Running == nil
			})
			log, err := w.git.Log(t.Context(), id, space.LogQuery{Limit: 100})
			must(t, err)
			if len(log) != i+2 { // with the commits of Create and of the first sync
				t.Errorf("kill %d: %d commits", i, len(log))
			}
			st, err := w.Status(t.Context(), "handbook")
			must(t, err)
			if n := len(st.Runs); n != i+1 {
				t.Errorf("kill %d: %d runs", i, n)
			}
		})
	}
	// A git process can outlive its killed server for a moment, and write into the directory that the next
	// start removes. The start after that removes the rest.
	within(func(w *world) { w.Start() })
	if left, _ := os.ReadDir(filepath.Join(dir, "syncs")); len(left) > 0 {
		t.Errorf("%d stages are left", len(left))
	}
}

// killSync starts a server, and kills it some moments after an event of its sync: a request to
// upstream, or a call of the store.
func killSync(t *testing.T, server *remotetest.Server, dir, git string, after int) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashDir+"="+dir, "SATCHEL_TEST_GIT="+git)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		server.Inject(nil)
		server.Idle()
	}()
	var events atomic.Int64
	happened := func() {
		if events.Add(1) == int64(after)+1 {
			for range rand.IntN(300_000) {
				runtime.Gosched()
			}
			_ = cmd.Process.Kill()
		}
	}
	server.Inject(func(remotetest.Request) remotetest.Fault {
		happened()
		return remotetest.Fault{}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ended") {
			t.Logf("the sync %s before the kill", lines.Text())
			return
		}
		happened()
	}
	t.Logf("killed after event %d of the sync, at event %d", after, events.Load())
}

// spoken is a store that prints a line for each call of a sync.
type spoken struct{ syncs.Store }

func (s spoken) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	fmt.Println("files")
	return s.Store.Files(ctx, id, at, under)
}

func (s spoken) Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error) {
	fmt.Println("commit")
	c, err := s.Store.Commit(ctx, id, cs, m)
	fmt.Println("committed")
	return c, err
}
