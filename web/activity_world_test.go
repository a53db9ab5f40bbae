package web_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/reviews"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// active is a world with a real store of spaces, whose commits are published to the pages,
// with reviews, and with remotes that a test controls.
type active struct {
	*held
	live    *web.Live
	reviews *reviews.Reviews
	remotes *fakeRemotes
	carol   store.User // an editor of ada's space
	behind  bool       // the reviews are said to be
	dir     string     // of the repositories
}

func newActive(t *testing.T, o web.LiveOptions, with ...func(*web.Options)) *active {
	t.Helper()
	a := &active{held: &held{}, live: web.NewLive(o), remotes: &fakeRemotes{status: space.RemoteStatus{State: space.RemoteLocal}}}
	var err error
	a.dir = t.TempDir()
	a.git, err = gitstore.Open(gitstore.Options{Dir: a.dir, Events: a.live})
	must(t, err)
	t.Cleanup(func() { _ = a.git.Close() })
	all := []func(*web.Options){func(o *web.Options) {
		db := databasetest.Open(t, databasetest.SQLite(t))
		_, err = db.Migrate(t.Context(), reviews.Migrations()...)
		must(t, err)
		a.reviews, err = reviews.New(reviews.Options{DB: db, Git: a.git, Now: func() time.Time { return a.clock() }, Patience: time.Hour})
		must(t, err)
		t.Cleanup(a.reviews.Close)
		o.Workspace, o.History, o.Operations = a.git, a.git, operations(t, o, a.git, a.reviews)
		o.Live, o.Reviews, o.Remotes = a.live, reviewsBehind{a}, a.remotes
		o.WaitingTime = time.Hour
	}}
	a.world = newWorld(t, append(all, with...)...)
	for _, id := range []space.SpaceID{a.space.ID, a.evil.ID} {
		a.start(id)
	}
	a.carol, _ = a.user("carol", false)
	must(t, a.AddMember(t.Context(), cli, a.space.ID, a.carol.ID, space.Editor))
	return a
}

func (a *active) start(id space.SpaceID) {
	a.t.Helper()
	cs := space.ChangeSet{}
	for _, p := range []string{"resources/instructions.md", "skills/a/SKILL.md"} {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte("start\n")})
	}
	_, err := a.git.Create(a.t.Context(), id, cs, space.Meta{Message: "Start the space", Tool: "satchel", Time: a.clock().Add(-time.Hour)})
	must(a.t, err)
}

// newSpace creates another space for a user.
func (a *active) newSpace(owner store.User, name string) store.Space {
	a.t.Helper()
	sp, err := a.CreateSpace(a.t.Context(), cli, owner.ID, space.NewSpaceID(), name)
	must(a.t, err)
	a.start(sp.ID)
	return sp
}

// by commits files as a client, a minute after the last commit.
func (a *active) by(client, message string, files ...string) space.Commit {
	a.t.Helper()
	a.pass(time.Minute)
	return a.commitAs(space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}, Message: message, Tool: "bash", Client: client, Time: a.clock()}, files...)
}

// text returns the content of a file of ada's space; "" if there is none.
func (a *active) text(path string) string {
	a.t.Helper()
	_, data, err := a.git.Open(a.t.Context(), a.space.ID, "", space.Path(path))
	if fault.CodeOf(err) == fault.NotFound {
		return ""
	}
	must(a.t, err)
	return string(data)
}

func (a *active) head() space.CommitID {
	a.t.Helper()
	h, err := a.git.Head(a.t.Context(), a.space.ID)
	must(a.t, err)
	return h
}

// reviewsBehind are said to be behind if the world is.
type reviewsBehind struct{ a *active }

func (r reviewsBehind) Waiting(ctx context.Context, id space.SpaceID) ([]space.Review, bool, error) {
	list, behind, err := r.a.reviews.Waiting(ctx, id)
	return list, behind || r.a.behind, err
}

// fakeRemotes remembers its calls.
type fakeRemotes struct {
	status space.RemoteStatus
	found  []service.FoundSecret
	err    error
	set    []service.SetRemoteInput
	synced int
	gone   int
	// fetched are the spaces whose remotes were to be fetched from.
	fetched []space.SpaceID

	state  *service.ImportState
	asked  []string // addresses of imports
	refuse error    // an import
}

// statusAt is the status of a remote that a token opens.
func statusAt(state space.RemoteState, url string) space.RemoteStatus {
	return space.RemoteStatus{State: state, Remote: &space.Remote{URL: url, Kind: space.KindToken}}
}

func (f *fakeRemotes) ListRemoteStates(context.Context, service.Actor, service.ListRemoteStatesInput) (map[space.SpaceID]space.RemoteState, error) {
	return nil, nil
}

func (f *fakeRemotes) GetRemote(context.Context, service.Actor, service.GetRemoteInput) (space.RemoteStatus, error) {
	return f.status, nil
}

func (f *fakeRemotes) SyncRemote(context.Context, service.Actor, service.SyncRemoteInput) (service.SpaceStatus, error) {
	f.synced++
	return service.SpaceStatus{}, nil
}

func (f *fakeRemotes) SetRemote(_ context.Context, _ service.Actor, in service.SetRemoteInput) (service.SpaceStatus, error) {
	left := slices.DeleteFunc(slices.Clone(f.found), func(x service.FoundSecret) bool { return slices.Contains(in.AllowSecrets, x.Fingerprint) })
	if f.err != nil || len(left) > 0 {
		return service.SpaceStatus{Secrets: left[:min(len(left), in.MaxSecrets+1)]}, f.err
	}
	f.set = append(f.set, in)
	return service.SpaceStatus{}, nil
}

func (f *fakeRemotes) RemoveRemote(context.Context, service.Actor, service.RemoveRemoteInput) (service.None, error) {
	f.gone++
	return service.None{}, nil
}

func (f *fakeRemotes) FetchRemote(_ context.Context, _ service.Actor, in service.FetchRemoteInput) (service.None, error) {
	f.fetched = append(f.fetched, in.Space.ID)
	return service.None{}, nil
}

func (f *fakeRemotes) StartImport(_ context.Context, _ service.Actor, in service.StartImportInput) (service.None, error) {
	if f.refuse == nil {
		f.asked = append(f.asked, in.URL)
		f.state = &service.ImportState{From: in.URL, Running: true}
	}
	return service.None{}, f.refuse
}

func (f *fakeRemotes) GetImport(context.Context, service.Actor, service.GetImportInput) (*service.ImportState, error) {
	return f.state, nil
}

// stream is an open stream of events, over a real connection.
type stream struct {
	t      *testing.T
	status int
	header http.Header
	lines  *bufio.Scanner
	close  func()
}

// serve lets the world be reached over a real connection.
func (a *active) serve() string {
	a.t.Helper()
	srv := httptest.NewServer(a.server.Handler())
	a.t.Cleanup(func() {
		a.live.Close()
		srv.Close()
	})
	return srv.URL
}

func (b *browser) stream(base, target string, change ...func(*http.Request)) *stream {
	b.w.t.Helper()
	ctx, cancel := context.WithCancel(b.w.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+target, nil)
	must(b.w.t, err)
	r.Host = strings.TrimPrefix(issuer, "https://")
	for k, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	for _, f := range change {
		f(r)
	}
	tr := &http.Transport{}
	res, err := tr.RoundTrip(r)
	must(b.w.t, err)
	s := &stream{t: b.w.t, status: res.StatusCode, header: res.Header, lines: bufio.NewScanner(res.Body), close: func() {
		cancel()
		_ = res.Body.Close()
		tr.CloseIdleConnections()
	}}
	b.w.t.Cleanup(s.close)
	if s.status == http.StatusOK {
		s.until(": hello")
	}
	return s
}

// until reads up to a line with a prefix and returns it; "" if the stream ends.
func (s *stream) until(prefix string) string {
	s.t.Helper()
	for s.lines.Scan() {
		if strings.HasPrefix(s.lines.Text(), prefix) {
			return s.lines.Text()
		}
	}
	return ""
}

// rest reads to the end.
func (s *stream) rest() string {
	s.t.Helper()
	var b strings.Builder
	for s.lines.Scan() {
		b.WriteString(s.lines.Text() + "\n")
	}
	return b.String()
}

// blob is the content that a file of ada's space has.
func (a *active) blob(path string) space.BlobID {
	a.t.Helper()
	b, _, _, err := a.git.Blob(a.t.Context(), a.space.ID, "", space.Path(path))
	must(a.t, err)
	return b
}

// countedPatches counts how often two versions are compared.
type countedPatches struct {
	web.History
	asked *int
}

func (c countedPatches) FilePatch(ctx context.Context, id space.SpaceID, f space.FileChange) (string, error) {
	*c.asked++
	return c.History.FilePatch(ctx, id, f)
}
