package syncs_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// crashDir turns the test binary into the server that TestKilledSyncs kills.
const crashDir = "SATCHEL_TEST_CRASH_SYNCS"

// child runs as that server, and reports whether it did. It prints its events, and waits after each one
// for an answer.
func child() bool {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return false
	}
	ctx := context.Background()
	c := &speaker{answers: bufio.NewReader(os.Stdin)}
	w, err := openKilled(ctx, dir, os.Getenv("SATCHEL_TEST_GIT"), func(o *syncs.Options) {
		o.Store = spoken{o.Store, c}
		o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(b []byte) {
			if strings.Contains(string(b), "a sync ended") {
				c.say("stored")
			}
		}), nil))
	})
	if err == nil {
		w.shows = func() { c.say("shown") }
		w.Start()
		go w.watch(ctx, c)
		_, err = w.Sync(ctx, "handbook", false, false, func(space.SyncProgress) {})
	}
	c.say(fmt.Sprint("ended ", err))
	select {} // until it is killed
}

// watch reads the source all the time, and prints an event if readers see parts of two versions.
func (w *world) watch(ctx context.Context, c *speaker) {
	for {
		files, err := w.shown(ctx)
		texts := map[string]bool{}
		for p, text := range files {
			if strings.HasPrefix(p, "guide/") {
				texts[text[strings.Index(text, "\n"):]] = true
			}
		}
		if err != nil || len(texts) != 1 {
			c.say(fmt.Sprintf("mixed %v %v", texts, err))
		}
	}
}

// speaker prints events.
type speaker struct {
	mu      sync.Mutex
	answers *bufio.Reader
}

func (c *speaker) say(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Println(event)
	if _, err := c.answers.ReadString('\n'); err != nil {
		select {} // the kill is near
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

func openKilled(ctx context.Context, dir, git string, change func(*syncs.Options)) (*world, error) {
	return openWorld(ctx, dir, "sqlite:"+filepath.Join(dir, "x.db"), "sqlite:"+filepath.Join(dir, "workflows.db"), git, change)
}

// A server is killed during a sync. The next start finishes the sync by itself, readers always
// see a complete version, and nothing is committed twice.
func TestKilledSyncs(t *testing.T) {
	git := testenv.NeedProgram(t, "git")
	server := remotetest.New(t, remotetest.Options{})
	server.Create("docs")
	server.Git("docs", "config", "uploadpack.allowFilter", "true")
	server.Push("docs", "main", pages(30, "revision 0"))
	dir := t.TempDir()
	id := space.NewSpaceID()
	within := func(do func(w *world)) {
		t.Helper()
		w, err := openKilled(t.Context(), dir, git, nil)
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
	kills := 10
	if testenv.Soak() {
		kills = 50
	}
	random := rand.New(rand.NewPCG(20, 1))
	places := map[string]int{} // of the kills
	for i := 1; i <= kills; i++ {
		old := upstreamFiles(server)
		change := pages(30, fmt.Sprint("revision ", i))
		for n := range 4 {
			change[fmt.Sprintf("new/%d-%d.md", i, n)] = fmt.Sprint("added by ", i)
			if i > 1 {
				change[fmt.Sprintf("new/%d-%d.md", i-1, n)] = remotetest.Gone
			}
		}
		server.Push("docs", "main", change)
		want := upstreamFiles(server)
		// First each event but one is the last of a server, and then random moments after each.
		spins := 0
		if i >= eventsOfSync {
			spins = random.IntN(200_000)
		}
		at := killSync(t, server, dir, git, (3+7*i)%eventsOfSync, spins)
		places[at]++
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
			testenv.WaitFor(t, fmt.Sprintf("the sync to finish by itself, after kill %d in %s", i, at), func() bool {
				st, err := w.Status(t.Context(), "handbook")
				must(t, err)
				return seen() && st.Running == nil
			})
			log, err := w.git.Log(t.Context(), id, space.LogQuery{Limit: 100})
			must(t, err)
			if len(log) != i+2 { // with the commits of Create and of the first sync
				t.Errorf("kill %d in %s: %d commits", i, at, len(log))
			}
			st, err := w.Status(t.Context(), "handbook")
			must(t, err)
			if n := len(st.Runs); n != min(i+1, 50) {
				t.Errorf("kill %d in %s: %d runs", i, at, n)
			}
		})
	}
	t.Logf("the kills: %v", places)
	for _, step := range []string{"check", "fetch", "commit", "publish", "end"} {
		if places[step] == 0 {
			t.Errorf("no kill was in the step %s", step)
		}
	}
	// A git process can outlive its killed server for a moment, and write into the directory that the next
	// start removes. The start after that removes the rest.
	within(func(w *world) { w.Start() })
	if left, _ := os.ReadDir(filepath.Join(dir, "syncs")); len(left) > 0 {
		t.Errorf("%d stages are left", len(left))
	}
}

// eventsOfSync is how many events a sync has: 6 requests, 4 calls of the store or by it, and its end.
const eventsOfSync = 11

// killSync starts a server, and kills it some moments after an event of its sync: a request to
// upstream, a call of the store, or a change that readers see. It returns the step in which the server
// was killed.
func killSync(t *testing.T, server *remotetest.Server, dir, git string, after, spins int) (step string) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashDir+"="+dir, "SATCHEL_TEST_GIT="+git)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	var mu sync.Mutex
	events, killed := 0, false
	step = "begin"
	// happened notes an event, and answers it unless the server is killed at once.
	happened := func(now string, answer func()) {
		mu.Lock()
		defer mu.Unlock()
		if killed {
			return
		}
		if now != "" {
			step = now
		}
		last := events == after
		events++
		if last && spins == 0 {
			killed = true
			_ = cmd.Process.Kill()
			return
		}
		answer()
		if last {
			go func() {
				for range spins {
					runtime.Gosched()
				}
				_ = cmd.Process.Kill()
			}()
		}
	}
	at := func() string {
		mu.Lock()
		defer mu.Unlock()
		return step
	}
	server.Inject(func(r remotetest.Request) remotetest.Fault {
		happened(map[bool]string{true: "fetch", false: "check"}[r.Header.Get("Git-Protocol") != ""], func() {})
		return remotetest.Fault{}
	})
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		server.Inject(nil)
		server.Idle()
	}()
	defer func() { t.Logf("killed in %s, %d moments after event %d of %d", step, spins, after, events) }()
	steps := map[string]string{"files": "commit", "commit": "commit", "committed": "publish", "shown": "publish", "stored": "end"}
	answer := func() { _, _ = io.WriteString(in, "\n") }
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		switch text := lines.Text(); {
		case strings.HasPrefix(text, "mixed"):
			t.Errorf("readers see %s", text)
			answer()
		case strings.HasPrefix(text, "ended"):
			return "afterwards"
		case text == "shown" && at() != "publish":
			answer() // of the start
		case steps[text] != "":
			happened(steps[text], answer)
		default:
			t.Errorf("the server says %q", text)
			answer()
		}
	}
	return at()
}

// spoken is a store that prints the calls of a sync.
type spoken struct {
	syncs.Store
	*speaker
}

func (s spoken) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	s.say("files")
	return s.Store.Files(ctx, id, at, under)
}

func (s spoken) Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error) {
	s.say("commit")
	c, err := s.Store.Commit(ctx, id, cs, m)
	s.say("committed")
	return c, err
}
