package remotes_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// commit returns the n-th commit of a fake history. The history is a line: each commit contains
// all earlier ones.
func commit(n int) space.CommitID {
	if n == 0 {
		return ""
	}
	return space.CommitID(fmt.Sprintf("%040x", n))
}

func number(c space.CommitID) (n int) {
	fmt.Sscanf(string(c), "%x", &n)
	return n
}

// fakeSpace is a space and its remote.
type fakeSpace struct {
	head, tracked, remote int
	shallow               bool
	busy                  int // running transfers
}

// fake is the store of spaces and all their remotes. Transfers take no time, unless hook
// blocks.
type fake struct {
	t  testing.TB
	mu sync.Mutex
	// hook is called when "list", "fetch", "integrate" or "push" begins.
	hook   func(ctx context.Context, op string, id space.SpaceID, e transport.Endpoint) error
	spaces map[space.SpaceID]*fakeSpace
	calls  []string // the operation and when it began, in seconds after start
	start  time.Time
	merged gitstore.Integration // the result of the next merge
}

func newFake(t testing.TB) *fake {
	return &fake{t: t, spaces: map[space.SpaceID]*fakeSpace{}, start: time.Now()}
}

func (f *fake) space(id space.SpaceID) *fakeSpace {
	s := f.spaces[id]
	if s == nil {
		f.t.Errorf("the space %s is unknown", id)
		return &fakeSpace{}
	}
	return s
}

// add creates a space with a commit.
func (f *fake) add() space.SpaceID {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := space.NewSpaceID()
	f.spaces[id] = &fakeSpace{head: 1}
	return id
}

// commit moves a space's head, and returns its event.
func (f *fake) commit(id space.SpaceID) space.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.space(id)
	s.head = max(s.head, s.remote) + 1
	return space.Event{Space: id, Commit: space.Commit{ID: commit(s.head), Changed: true}}
}

func (f *fake) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) state(id space.SpaceID) fakeSpace {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.space(id)
}

// begin records a transfer and calls the hook.
func (f *fake) begin(ctx context.Context, op string, id space.SpaceID, e transport.Endpoint) (end func(), err error) {
	f.mu.Lock()
	f.calls = append(f.calls, fmt.Sprintf("%s@%v", op, time.Since(f.start).Round(time.Millisecond)))
	hook := f.hook
	s := f.spaces[id]
	if s == nil { // a URL that belongs to no space
		f.mu.Unlock()
		return func() {}, &transport.Error{Problem: transport.Gone, Op: op}
	}
	if s.busy++; s.busy > 1 {
		f.t.Errorf("%d syncs of one space run at once", s.busy)
	}
	f.mu.Unlock()
	if hook != nil {
		err = hook(ctx, op, id, e)
	}
	if err == nil {
		err = ctx.Err()
	}
	return func() { f.set(func() { s.busy-- }) }, err
}

// took returns the calls since its last call, and forgets them.
func (f *fake) took() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.calls, " ")
	f.calls = nil
	return s
}

func (f *fake) idOf(e transport.Endpoint) space.SpaceID {
	return space.SpaceID(strings.TrimPrefix(e.URL, "https://git.example/"))
}

// Check checks URLs like the real one.
func (f *fake) Check(e transport.Endpoint) error {
	c := transport.New(transport.Options{})
	defer c.Close()
	return c.Check(e)
}

func (f *fake) List(ctx context.Context, e transport.Endpoint) (transport.Refs, error) {
	end, err := f.begin(ctx, "list", f.idOf(e), e)
	defer end()
	if err != nil {
		return transport.Refs{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.space(f.idOf(e))
	refs := transport.Refs{Heads: map[string]space.CommitID{}, Default: "main", URL: e.URL, Shallow: s.shallow}
	if s.remote != 0 {
		refs.Heads["main"] = commit(s.remote)
	}
	return refs, nil
}

func (f *fake) Fetch(ctx context.Context, id space.SpaceID, e transport.Endpoint, _ string, progress func(string)) (gitstore.Fetched, error) {
	end, err := f.begin(ctx, "fetch", id, e)
	defer end()
	if err != nil {
		return gitstore.Fetched{}, err
	}
	progress("Receiving")
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.space(id)
	s.tracked = s.remote
	return gitstore.Fetched{Tip: commit(s.remote)}, nil
}

func (f *fake) Integrate(ctx context.Context, id space.SpaceID, tip space.CommitID, _ space.Meta) (gitstore.Integration, error) {
	end, err := f.begin(ctx, "integrate", id, transport.Endpoint{})
	defer end()
	if err != nil {
		return gitstore.Integration{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.space(id)
	s.head = max(s.head, number(tip))
	return f.merged, nil
}

func (f *fake) ResetToRemote(ctx context.Context, id space.SpaceID, tip space.CommitID, _ space.Meta) (space.Commit, error) {
	end, err := f.begin(ctx, "follow", id, transport.Endpoint{})
	defer end()
	if err != nil {
		return space.Commit{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space(id).head = number(tip)
	return space.Commit{ID: tip, Changed: true}, nil
}

func (f *fake) Push(ctx context.Context, id space.SpaceID, e transport.Endpoint, _ string, progress func(string)) (space.CommitID, error) {
	f.mu.Lock()
	head := f.space(id).head // the head when Push is called
	f.mu.Unlock()
	end, err := f.begin(ctx, "push", id, e)
	defer end()
	if err != nil {
		return "", err
	}
	progress("Sending")
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.space(id)
	if s.remote > head {
		return "", &transport.Error{Problem: transport.Stale, Op: "push"}
	}
	s.remote, s.tracked = head, head
	return commit(head), nil
}

func (f *fake) Head(_ context.Context, id space.SpaceID) (space.CommitID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.spaces[id]
	if s == nil {
		return "", fault.New(fault.NotFound, "There is no such space.")
	}
	return commit(s.head), nil
}

func (f *fake) Tracked(_ context.Context, id space.SpaceID, _ string) (space.CommitID, bool, error) {
	n := f.state(id).tracked
	return commit(n), n != 0, nil
}

func (f *fake) Unpushed(_ context.Context, id space.SpaceID, _ string, _ int) (int, []space.Commit, error) {
	s := f.state(id)
	return max(0, s.head-s.tracked), nil, nil
}

func (f *fake) Contains(_ context.Context, _ space.SpaceID, tip, c space.CommitID) (bool, error) {
	return number(c) <= number(tip), nil
}

func (f *fake) ForgetRemote(_ context.Context, id space.SpaceID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.spaces[id]
	if s == nil {
		return fault.New(fault.NotFound, "There is no such space.")
	}
	s.tracked = 0
	return nil
}

// bench is a Manager over a fake.
type bench struct {
	*remotes.Manager
	t    testing.TB
	git  *fake
	o    remotes.Options
	seal *seal.Box
}

func newBench(t testing.TB, change func(*remotes.Options)) *bench {
	t.Helper()
	return benchOn(t, databasetest.Open(t, databasetest.SQLite(t)), change)
}

func benchOn(t testing.TB, db *database.DB, change func(*remotes.Options)) *bench {
	t.Helper()
	if _, err := db.Migrate(t.Context(), remotes.Migrations()...); err != nil {
		t.Fatal(err)
	}
	box, err := seal.Load(filepath.Join(t.TempDir(), "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	git := newFake(t)
	o := remotes.Options{DB: db, Git: git, Transport: git, Seal: box, Random: func() float64 { return 0.999999999 }}
	if change != nil {
		change(&o)
	}
	b := &bench{t: t, git: git, o: o, seal: box}
	b.open()
	t.Cleanup(b.close)
	return b
}

// open creates a new Manager, as the next process does.
func (b *bench) open() { b.Manager = remotes.New(b.o) }

func (b *bench) close() {
	if err := b.Close(context.WithoutCancel(b.t.Context())); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) start() {
	b.t.Helper()
	if err := b.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// remote creates a space with a remote.
func (b *bench) remote() space.SpaceID {
	b.t.Helper()
	id := b.git.add()
	if err := b.Set(b.t.Context(), remotes.SetRequest{Space: id, URL: "https://git.example/" + string(id)}); err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bench) status(id space.SpaceID) space.RemoteStatus {
	b.t.Helper()
	st, err := b.Status(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

func (b *bench) wantState(id space.SpaceID, want space.RemoteState) space.RemoteStatus {
	b.t.Helper()
	st := b.status(id)
	if st.State != want {
		b.t.Fatalf("the state is %s (%s %s), want %s", st.State, st.Problem, st.Detail, want)
	}
	if quick := b.State(id); quick != want && want != space.RemoteSyncing {
		b.t.Errorf("the state from memory is %s, want %s", quick, want)
	}
	return st
}

func (b *bench) wantCalls(want string) {
	b.t.Helper()
	if got := b.git.took(); got != want {
		b.t.Errorf("calls:\ngot  %s\nwant %s", got, want)
	}
}

func remoteError(p transport.Problem) *transport.Error {
	return &transport.Error{Problem: p, Op: "list", Host: "git.example"}
}

// failing makes every check of a remote fail with an error; nil ends this.
func (f *fake) failing(err func() error) {
	f.set(func() {
		f.hook = func(_ context.Context, op string, _ space.SpaceID, _ transport.Endpoint) error {
			if op == "list" && err != nil {
				return err()
			}
			return nil
		}
	})
}
