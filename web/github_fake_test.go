package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

const (
	hubURL    = "https://github.test"
	canaryKey = "-----BEGIN RSA PRIVATE KEY-----\nCANARYPEM\n-----END RSA PRIVATE KEY-----\n"
)

// fakeApp is a GitHub App whose GitHub identifies people by their codes.
type fakeApp struct {
	app    auth.GitHubApp
	made   bool
	links  map[space.SpaceID]auth.RepositoryLink
	asked  map[space.SpaceID]time.Time
	people map[string]app.Found // by code
	broken error                // what everything answers
	begun  int
	writes []string // what changed something, or used a code
	now    func() time.Time
	taken  map[int64]space.SpaceID
	// conflict is the error that Link returns.
	conflict error
}

var _ web.GitHubApp = (*fakeApp)(nil)

func (f *fakeApp) note(format string, args ...any) {
	f.writes = append(f.writes, fmt.Sprintf(format, args...))
}

func (f *fakeApp) App(context.Context) (auth.GitHubApp, bool, error) { return f.app, f.made, nil }

func (f *fakeApp) Manifest(state string, n app.NewApp) (string, []byte, error) {
	path := "/settings/apps/new"
	if org := n.Organisation; org != "" {
		path = "/organizations/" + org + path
	}
	m, err := json.Marshal(map[string]any{"name": `<b>"`, "creates": n.Creates, "public": n.Public})
	return hubURL + path + "?state=" + state, m, err
}

func (f *fakeApp) Create(_ context.Context, _ space.UserID, code string) (auth.GitHubApp, error) {
	f.note("create %s", code)
	switch {
	case f.made:
		return auth.GitHubApp{}, fault.New(fault.Conflict, "There is one.")
	case code != "good":
		return auth.GitHubApp{}, fault.New(fault.Invalid, "GitHub does not know the code any more.")
	}
	f.make()
	return f.app, nil
}

// make puts secrets where a careless implementation might leak them.
func (f *fakeApp) make() {
	f.made = true
	f.app = auth.GitHubApp{URL: hubURL, ID: 7, ClientID: "Iv1.x", Slug: "satchel", Name: "Satchel", Owner: "ada-l", HTMLURL: hubURL + "/apps/satchel", Created: f.now(), Creates: true,
		Secrets: auth.GitHubSecrets{ClientSecret: "canary-client-secret", PrivateKey: canaryKey, Webhook: "canary-webhook"}}
}

func (f *fakeApp) Enter(_ context.Context, _ space.UserID, a auth.GitHubApp) (auth.GitHubApp, error) {
	f.note("enter %d", a.ID)
	if a.Secrets.PrivateKey != canaryKey {
		return a, fault.New(fault.Invalid, "GitHub says that the key is not the App's.")
	}
	f.make()
	return f.app, nil
}

func (f *fakeApp) Forget(context.Context, space.UserID) error {
	f.note("forget")
	f.made, f.app = false, auth.GitHubApp{}
	return nil
}

func (f *fakeApp) InstallURL(_ context.Context, state string) (string, error) {
	return hubURL + "/apps/satchel/installations/new?state=" + state, f.broken
}

func (f *fakeApp) Begin(_ context.Context, redirectURI, state string) (string, []byte, error) {
	f.begun++
	q := url.Values{"state": {state}, "redirect_uri": {redirectURI}, "code_challenge_method": {"S256"}}
	return hubURL + "/login/oauth/authorize?" + q.Encode(), []byte("verifier of " + state), f.broken
}

func (f *fakeApp) Finish(_ context.Context, redirectURI string, flow []byte, q url.Values) (app.Found, error) {
	f.note("finish %s", q.Get("code"))
	if redirectURI != issuer+"/github/callback" || string(flow) != "verifier of "+q.Get("state") {
		return app.Found{}, errors.New("another flow")
	}
	found, ok := f.people[q.Get("code")]
	if !ok {
		return app.Found{}, fault.New(fault.Unauthenticated, "GitHub does not take the code.")
	}
	return found, nil
}

func (f *fakeApp) FinishCreate(ctx context.Context, redirectURI string, flow []byte, q url.Values, n app.NewRepository) (app.Found, error) {
	found, err := f.Finish(ctx, redirectURI, flow, q)
	if err != nil {
		return found, err
	}
	f.note("make %s/%s private=%t", n.Owner, n.Name, n.Private)
	found.Created = 99
	found.Repositories = append(slices.Clone(found.Repositories), app.Repository{ID: 99, FullName: found.Login + "/" + n.Name, Private: n.Private, Push: true, Installation: 1})
	return found, nil
}

func (f *fakeApp) Link(_ context.Context, by space.UserID, id space.SpaceID, found app.Found, repository int64) (auth.RepositoryLink, error) {
	f.note("link %d", repository)
	if f.conflict != nil {
		return auth.RepositoryLink{}, f.conflict
	}
	i := slices.IndexFunc(found.Repositories, func(r app.Repository) bool { return r.ID == repository && r.Push })
	if i < 0 {
		return auth.RepositoryLink{}, fault.New(fault.Forbidden, "You may not push there.")
	}
	l := auth.RepositoryLink{Space: id, User: by, GitHubUser: found.GitHubUser, GitHubLogin: found.Login, Installation: found.Repositories[i].Installation, Account: found.Login,
		Repository: repository, FullName: found.Repositories[i].FullName, State: auth.LinkConnected, Since: f.now(), Checked: f.now(), Created: f.now()}
	f.links[id] = l
	return l, nil
}

func (f *fakeApp) Taken(context.Context, space.SpaceID) (map[int64]space.SpaceID, error) {
	return f.taken, nil
}

func (f *fakeApp) Linked(_ context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error) {
	l, ok := f.links[id]
	return l, ok, nil
}

func (f *fakeApp) Unlink(_ context.Context, _ space.UserID, id space.SpaceID) error {
	f.note("unlink")
	delete(f.links, id)
	return nil
}

func (f *fakeApp) Recheck(_ context.Context, id space.SpaceID) (auth.RepositoryLink, error) {
	f.note("recheck")
	return f.links[id], f.broken
}

func (f *fakeApp) AskApproval(_ context.Context, id space.SpaceID, user space.UserID) error {
	f.note("ask %s", user)
	f.asked[id] = f.now()
	return nil
}

func (f *fakeApp) Waiting(_ context.Context, id space.SpaceID) (time.Time, bool, error) {
	t, ok := f.asked[id]
	return t, ok, nil
}

// hubWorld is a world with an App.
type hubWorld struct {
	*world
	app  *fakeApp
	path string // of the pages of ada's space
}

func newHubWorld(t *testing.T, with ...func(*web.Options)) *hubWorld {
	t.Helper()
	f := &fakeApp{links: map[space.SpaceID]auth.RepositoryLink{}, asked: map[space.SpaceID]time.Time{}}
	w := newWorld(t, append(with, func(o *web.Options) { o.App, f.now = f, o.Now })...)
	f.make()
	f.people = map[string]app.Found{
		"ada": {GitHubUser: 1, Login: "ada-l", Installations: []app.Installation{{ID: 1, Account: "ada-l", AccountType: "User", ManageURL: hubURL + "/settings/installations/1", Selection: "selected"}},
			Repositories: []app.Repository{
				{ID: 11, FullName: "ada-l/notes", Private: true, Push: true, Installation: 1},
				{ID: 12, FullName: "ada-l/blog", Push: true, Installation: 1},
				{ID: 13, FullName: "org/secret", Private: true, Push: false, Installation: 1},
				{ID: 14, FullName: "ada-l/old", Push: true, Archived: true, Installation: 1},
			}},
		"eve":  {GitHubUser: 2, Login: "eve", Installations: []app.Installation{{ID: 2, Account: "eve", Selection: "all"}}, Repositories: []app.Repository{{ID: 21, FullName: "eve/trap", Push: true, Installation: 2}}},
		"none": {GitHubUser: 3, Login: "newbie"},
	}
	return &hubWorld{world: w, app: f, path: "/spaces/" + string(w.space.ID) + "/github"}
}

var leads = regexp.MustCompile(`href="(https://github\.test/[^"]*)"`)

// away returns the address at GitHub to which an answer redirects.
func away(t *testing.T, a answer) *url.URL {
	t.Helper()
	location := a.location()
	if m := leads.FindStringSubmatch(a.body); location == "" && m != nil {
		location = strings.ReplaceAll(m[1], "&amp;", "&")
	}
	u, err := url.Parse(location)
	if err != nil || u.Host != "github.test" {
		t.Fatalf("%d: it does not lead to GitHub: %q %s", a.StatusCode, location, heading(a.body))
	}
	return u
}

// state begins a flow and returns the state that GitHub receives.
func (h *hubWorld) state(b *browser, begin string) string {
	h.t.Helper()
	return away(h.t, b.send(h.path+begin, nil)).Query().Get("state")
}

// choosing brings a browser to the list of repositories.
func (h *hubWorld) choosing(b *browser, code string) {
	h.t.Helper()
	state := h.state(b, "/connect")
	a := b.get("/github/callback?" + url.Values{"code": {code}, "state": {state}}.Encode())
	want(h.t, "back from GitHub", a, 303)
	if a.location() != issuer+h.path+"/pick" {
		h.t.Fatalf("it leads to %s", a.location())
	}
}

// untouched fails if anything was written since.
func (h *hubWorld) untouched(what string) {
	h.t.Helper()
	if len(h.app.writes) > 0 || len(h.app.links) > 0 {
		h.t.Errorf("%s: it did %v, links %v", what, h.app.writes, h.app.links)
	}
	h.app.writes = nil
}
