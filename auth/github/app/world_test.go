package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a GitHub with three people. ada owns ada/notes, ada/diary and the organization
// acme with acme/wiki. bob is a member of acme who may read. mallory belongs to none of
// these. On this server ann is ada, and eve is mallory.
type world struct {
	*app.Client
	t     *testing.T
	gh    *apptest.Server
	db    *database.DB
	dir   string // directory of the database
	store *store.Store
	seen  *wire

	notes, diary, wiki int64
	ann, eve           store.User
	annSpace, eveSpace space.SpaceID

	log    *lockedBuffer
	states chan auth.RepositoryLink
	pushes chan space.SpaceID
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// wire collects every secret that GitHub sends.
type wire struct {
	mu      sync.Mutex
	secrets map[string]bool
}

var secretForm = regexp.MustCompile(`gh[a-z]_[A-Za-z0-9_.-]+|"(?:client_secret|webhook_secret)":\s*"[^"]+"`)

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range secretForm.FindAllString(string(body), -1) {
		if parts := strings.Split(s, `"`); len(parts) > 3 {
			s = parts[3]
		}
		w.secrets[s] = true
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// newWorld returns a world without an App.
func newWorld(t *testing.T, change ...func(*app.Options)) *world {
	t.Helper()
	w := &world{
		t: t, gh: apptest.Start(t, apptest.Options{}), dir: t.TempDir(), log: &lockedBuffer{}, seen: &wire{secrets: map[string]bool{}},
		states: make(chan auth.RepositoryLink, 100), pushes: make(chan space.SpaceID, 100),
	}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log has\n%s", w.log)
		}
	})
	for _, p := range []string{"ada", "bob", "mallory"} {
		w.gh.AddPerson(p)
	}
	w.gh.AddOrg("acme", "read", map[string]string{"ada": "admin", "bob": "member"})
	w.notes = w.gh.AddRepository(apptest.Repository{Owner: "ada", Name: "notes", Private: true})
	w.diary = w.gh.AddRepository(apptest.Repository{Owner: "ada", Name: "diary", Private: true})
	w.wiki = w.gh.AddRepository(apptest.Repository{Owner: "acme", Name: "wiki", Private: true})

	w.db = databasetest.Open(t, "sqlite:"+filepath.Join(w.dir, "test.db"))
	if _, err := w.db.Migrate(t.Context(), store.Migrations()...); err != nil {
		t.Fatal(err)
	}
	box, err := seal.Load(filepath.Join(t.TempDir(), "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	w.store = store.New(w.db, store.Options{Seal: box})
	t.Cleanup(func() { w.store.Close() })
	var sp store.Space
	if w.ann, sp, err = w.store.CreateUser(t.Context(), store.Actor{}, store.NewUser{Name: "ann", Admin: true}); err != nil {
		t.Fatal(err)
	}
	w.annSpace = sp.ID
	if w.eve, sp, err = w.store.CreateUser(t.Context(), store.Actor{}, store.NewUser{Name: "eve"}); err != nil {
		t.Fatal(err)
	}
	w.eveSpace = sp.ID

	var hook http.Handler
	public := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { hook.ServeHTTP(rw, r) }))
	t.Cleanup(public.Close)
	o := app.Options{
		Store: w.store, URL: w.gh.URL, Public: public.URL, Hooks: true, Transport: w.seen,
		OnState: func(_ context.Context, l auth.RepositoryLink) error { w.states <- l; return nil },
		OnPush:  func(id space.SpaceID) { w.pushes <- id },
		Logger:  slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&o)
	}
	if w.Client, err = app.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Client.Close)
	t.Cleanup(w.gh.Close) // runs first, so that no webhook is in progress when the Client ends
	hook = w.Client.Webhook()
	return w
}

const redirect = app.PathCallback

// withApp creates the App by the manifest, and installs it for ada on ada/notes and ada/diary.
func withApp(t *testing.T, change ...func(*app.Options)) (w *world, installation int64) {
	t.Helper()
	w = newWorld(t, change...)
	w.create(false)
	return w, w.install("ada", "ada/notes", "ada/diary")
}

func (w *world) create(creates bool) auth.GitHubApp { return w.createFor("", creates) }

func (w *world) createFor(org string, creates bool) auth.GitHubApp {
	w.t.Helper()
	action, manifest, err := w.Manifest(rand.Text(), app.NewApp{Organisation: org, Creates: creates})
	if err != nil {
		w.t.Fatal(err)
	}
	back, err := w.gh.CreateApp("ada", action, manifest)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := w.Create(w.t.Context(), w.ann.ID, back.Query().Get("code"))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) slug() string {
	w.t.Helper()
	a, ok, err := w.App(w.t.Context())
	if err != nil || !ok {
		w.t.Fatal("no App", err)
	}
	return a.Slug
}

func (w *world) install(account string, repositories ...string) int64 {
	w.t.Helper()
	return w.gh.Install(apptest.Installing{App: w.slug(), Account: account, By: "ada", Repositories: repositories})
}

// callback returns the address to which GitHub redirects people.
func (w *world) callback() string {
	w.t.Helper()
	_, manifest, err := w.Manifest("", app.NewApp{})
	var m struct {
		CallbackURLs []string `json:"callback_urls"`
	}
	if err != nil || json.Unmarshal(manifest, &m) != nil || len(m.CallbackURLs) != 2 {
		w.t.Fatal("the manifest is another", err)
	}
	return m.CallbackURLs[0]
}

func (w *world) visit(login string) (flow []byte, q url.Values) {
	w.t.Helper()
	location, flow, err := w.Begin(w.t.Context(), w.callback(), "state-2")
	if err != nil {
		w.t.Fatal(err)
	}
	back, err := w.gh.Authorize(login, location)
	if err != nil {
		w.t.Fatal(err)
	}
	return flow, back.Query()
}

// find does a whole visit, and returns its result.
func (w *world) find(login string) app.Found {
	w.t.Helper()
	flow, q := w.visit(login)
	f, err := w.Finish(w.t.Context(), w.callback(), flow, q)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// connect connects a repository for ann, who is ada at GitHub.
func (w *world) connect(repository int64) auth.RepositoryLink {
	w.t.Helper()
	l, err := w.Link(w.t.Context(), w.ann.ID, w.annSpace, w.find("ada"), repository)
	if err != nil {
		w.t.Fatal(err)
	}
	w.gh.Idle()
	for len(w.states) > 0 {
		<-w.states
	}
	return l
}

// credential requests a credential as a sync does.
func (w *world) credential(fullName string) (space.Credential, error) {
	return w.Credential(w.t.Context(), space.Repository{Space: w.annSpace, URL: w.CloneURL(fullName)})
}

// becomes waits until ann's link has a state.
func (w *world) becomes(state auth.LinkState) auth.RepositoryLink {
	w.t.Helper()
	for {
		if l := testenv.Receive(w.t, fmt.Sprintf("the link becomes %q", state), w.states); l.State == state {
			return l
		}
	}
}

func names(f app.Found) string {
	var all []string
	for _, r := range f.Repositories {
		name := r.FullName
		if !r.Push {
			name += "(read)"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != want {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

// unlinked checks that no repository is connected to a space.
func (w *world) unlinked(id space.SpaceID) {
	w.t.Helper()
	if l, ok, err := w.Linked(w.t.Context(), id); err != nil || ok {
		w.t.Errorf("connected: %+v, %v", l, err)
	}
}

func repositoryAt(id space.SpaceID, address string) space.Repository {
	return space.Repository{Space: id, URL: address}
}
