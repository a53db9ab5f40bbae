package web_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/gitstore/remotes"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/web"
)

const (
	hubURL    = "https://github.test"
	canaryKey = "-----BEGIN RSA PRIVATE KEY-----\nCANARYPEM\n-----END RSA PRIVATE KEY-----\n"
)

// fakeGitHub answers requests as GitHub does. The code of a person, and the token that
// they get for it, is their name here.
type fakeGitHub struct {
	t *testing.T

	mu     sync.Mutex
	people map[string]app.Found
	down   bool     // every request fails
	lost   bool     // nobody may push any more
	did    []string // the requests that used a code or changed something
}

// RoundTrip implements http.RoundTripper.
func (f *fakeGitHub) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	status, answer := f.answer(r, body)
	if f.down {
		status, answer = http.StatusBadGateway, map[string]any{}
	}
	b, err := json.Marshal(answer)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, err
}

func (f *fakeGitHub) answer(r *http.Request, body []byte) (int, any) {
	type object = map[string]any
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	p, known := f.people[strings.TrimPrefix(token, "ghu_")]
	all := func(fit func(app.Repository) bool) (list []object) {
		for _, found := range f.people {
			for _, x := range found.Repositories {
				if fit(x) {
					list = append(list, object{"id": x.ID, "full_name": x.FullName, "private": x.Private, "archived": x.Archived, "default_branch": x.DefaultBranch, "permissions": object{"push": x.Push}})
				}
			}
		}
		return list
	}
	installations := func(fit func(app.Installation) bool) (list []object) {
		for _, found := range f.people {
			for _, x := range found.Installations {
				if fit(x) {
					list = append(list, object{"id": x.ID, "app_id": 7, "account": object{"login": x.Account, "type": x.AccountType}, "html_url": x.ManageURL, "repository_selection": x.Selection})
				}
			}
		}
		return list
	}
	made := object{"id": 7, "client_id": "Iv1.x", "slug": "satchel", "name": "Satchel", "html_url": hubURL + "/apps/satchel", "owner": object{"login": "ada-l"},
		"permissions": object{"contents": "write", "administration": "write"}, "client_secret": "canary-client-secret", "pem": appKey(), "webhook_secret": "canary-webhook"}
	segments := strings.Split(strings.Trim(path, "/"), "/")
	number, _ := strconv.ParseInt(segments[len(segments)-1], 10, 64)
	switch pattern := r.Method + " " + numbers.ReplaceAllString(path, "/N"); {
	case pattern == "POST /login/oauth/access_token":
		q, _ := url.ParseQuery(string(body))
		f.did = append(f.did, "finish "+q.Get("code"))
		if _, ok := f.people[q.Get("code")]; !ok {
			return http.StatusOK, object{"error": "bad_verification_code"}
		}
		return http.StatusOK, object{"access_token": "ghu_" + q.Get("code"), "token_type": "bearer"}
	case pattern == "GET /user" && known:
		return http.StatusOK, object{"id": p.GitHubUser, "login": p.Login, "type": "User"}
	case pattern == "GET /user/installations" && known:
		return http.StatusOK, object{"installations": installations(func(x app.Installation) bool { return slices.Contains(p.Installations, x) })}
	case strings.HasPrefix(pattern, "GET /user/installations/N/repositories") && known:
		id, _ := strconv.ParseInt(segments[2], 10, 64)
		return http.StatusOK, object{"repositories": all(func(x app.Repository) bool { return x.Installation == id && slices.Contains(p.Repositories, x) })}
	case pattern == "POST /user/repos" && known:
		var n struct {
			Name    string
			Private bool
		}
		must(f.t, json.Unmarshal(body, &n))
		f.did = append(f.did, fmt.Sprintf("make %s private=%t", n.Name, n.Private))
		p.Repositories = append(slices.Clone(p.Repositories), app.Repository{ID: 99, FullName: p.Login + "/" + n.Name, Private: n.Private, Push: true, Installation: 1})
		f.people[strings.TrimPrefix(token, "ghu_")] = p
		return http.StatusCreated, object{"id": 99}
	case strings.HasPrefix(pattern, "DELETE /applications/"):
		return http.StatusNoContent, nil
	case pattern == "POST /app-manifests/good/conversions":
		f.did = append(f.did, "create good")
		return http.StatusCreated, made
	case pattern == "GET /app":
		return http.StatusOK, made
	case pattern == "GET /app/installations/N":
		if list := installations(func(x app.Installation) bool { return x.ID == number }); len(list) > 0 {
			return http.StatusOK, list[0]
		}
	case pattern == "POST /app/installations/N/access_tokens":
		var want struct {
			IDs []int64 `json:"repository_ids"`
		}
		must(f.t, json.Unmarshal(body, &want))
		return http.StatusCreated, object{"token": "ghs_test", "expires_at": time.Now().Add(time.Hour), "permissions": object{"contents": "write", "metadata": "read"},
			"repositories": all(func(x app.Repository) bool { return slices.Contains(want.IDs, x.ID) })}
	case pattern == "GET /repositories/N":
		if list := all(func(x app.Repository) bool { return x.ID == number }); len(list) > 0 {
			return http.StatusOK, list[0]
		}
	case pattern == "GET /user/N":
		for _, found := range f.people {
			if found.GitHubUser == number {
				return http.StatusOK, object{"id": number, "login": found.Login}
			}
		}
	case strings.HasSuffix(pattern, "/permission") && !f.lost:
		for _, found := range f.people {
			if len(segments) > 4 && found.Login == segments[4] {
				return http.StatusOK, object{"permission": "write", "user": object{"id": found.GitHubUser}}
			}
		}
	}
	return http.StatusNotFound, object{"message": "Not Found"}
}

var numbers = regexp.MustCompile(`/\d+`)

// appKey returns a private key, which takes long to make.
var appKey = sync.OnceValue(func() string {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}))
})

// hubWorld is a world with an App.
type hubWorld struct {
	*world
	hub  *fakeGitHub
	path string // of the pages of ada's space
}

func newHubWorld(t *testing.T, with ...func(*web.Options)) *hubWorld {
	t.Helper()
	return newHubWorldOf(t, servicetest.Setup{}, with...)
}

// newHubWorldOf is newHubWorld with other engines.
func newHubWorldOf(t *testing.T, s servicetest.Setup, with ...func(*web.Options)) *hubWorld {
	t.Helper()
	f := &fakeGitHub{t: t, people: map[string]app.Found{
		"ada": {GitHubUser: 1, Login: "ada-l", Installations: []app.Installation{{ID: 1, Account: "ada-l", AccountType: "User", ManageURL: hubURL + "/settings/installations/1", Selection: "selected"}},
			Repositories: []app.Repository{
				{ID: 11, FullName: "ada-l/notes", Private: true, Push: true, Installation: 1},
				{ID: 12, FullName: "ada-l/blog", Push: true, Installation: 1},
				{ID: 13, FullName: "org/secret", Private: true, Push: false, Installation: 1},
				{ID: 14, FullName: "ada-l/old", Push: true, Archived: true, Installation: 1},
			}},
		"eve":  {GitHubUser: 2, Login: "eve", Installations: []app.Installation{{ID: 2, Account: "eve", Selection: "all"}}, Repositories: []app.Repository{{ID: 21, FullName: "eve/trap", Push: true, Installation: 2}}},
		"none": {GitHubUser: 3, Login: "newbie"},
	}}
	h := &hubWorld{hub: f}
	h.world = newWorldOf(t, s, append(with, func(o *web.Options) {
		var err error
		o.App, err = app.New(app.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Store: o.Accounts, URL: hubURL, Public: o.Issuer, Transport: f, Now: o.Now, OnState: func(ctx context.Context, l auth.RepositoryLink) error {
			if l.State != auth.LinkConnected {
				return h.service.Remotes.Remove(ctx, l.Space)
			}
			return h.service.Remotes.Set(ctx, remotes.SetRequest{Space: l.Space, URL: hubURL + "/" + l.FullName + ".git", Kind: space.KindGitHub, Trusted: true})
		}})
		must(t, err)
		t.Cleanup(o.App.Close)
	})...)
	h.path = "/spaces/" + string(h.space.ID) + "/github"
	h.setApp(func(*auth.GitHubApp) {})
	return h
}

// setApp replaces the App.
func (h *hubWorld) setApp(change func(*auth.GitHubApp)) {
	h.t.Helper()
	h.noApp()
	a := auth.GitHubApp{URL: hubURL, ID: 7, ClientID: "Iv1.x", Slug: "satchel", Name: "Satchel", Owner: "ada-l", HTMLURL: hubURL + "/apps/satchel", Created: h.clock(), Creates: true,
		Secrets: auth.GitHubSecrets{ClientSecret: "canary-client-secret", PrivateKey: appKey(), Webhook: "canary-webhook"}}
	change(&a)
	must(h.t, h.SetGitHubApp(h.t.Context(), h.ada.ID, "test", a))
}

// noApp removes the App.
func (h *hubWorld) noApp() {
	h.t.Helper()
	must(h.t, h.RemoveGitHubApp(h.t.Context(), h.ada.ID, "test"))
}

func (h *hubWorld) hasApp() bool {
	h.t.Helper()
	_, ok, err := h.GitHubApp(h.t.Context())
	must(h.t, err)
	return ok
}

// link connects a repository to a space in the store alone.
func (h *hubWorld) link(id space.SpaceID, state auth.LinkState, change ...func(*auth.RepositoryLink)) auth.RepositoryLink {
	h.t.Helper()
	sp, err := h.Space(h.t.Context(), id)
	must(h.t, err)
	l := auth.RepositoryLink{Space: id, User: sp.Owner, GitHubUser: 1, GitHubLogin: "ada-l", Installation: 1, Account: "ada-l", Repository: 11, FullName: "ada-l/notes", State: state, Checked: h.clock()}
	for _, f := range change {
		f(&l)
	}
	must(h.t, h.LinkRepository(h.t.Context(), sp.Owner, "test", l))
	return h.linked(id)
}

// linked returns the repository of a space.
func (h *hubWorld) linked(id space.SpaceID) auth.RepositoryLink {
	h.t.Helper()
	l, _, err := h.RepositoryLink(h.t.Context(), id)
	must(h.t, err)
	return l
}

// did returns what GitHub was asked to do since the last call.
func (h *hubWorld) did() string {
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	all := strings.Join(h.hub.did, ", ")
	h.hub.did = nil
	return all
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

// untouched fails if a code was used, a repository connected or an approval asked for.
func (h *hubWorld) untouched(what string) {
	h.t.Helper()
	links, err := h.RepositoryLinks(h.t.Context())
	must(h.t, err)
	_, asked, err := h.PendingApproval(h.t.Context(), h.space.ID)
	must(h.t, err)
	if did := h.did(); did != "" || len(links) > 0 || asked {
		h.t.Errorf("%s: it did %s, links %v", what, did, links)
	}
}
