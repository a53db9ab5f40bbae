package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/space"
)

// kept is a store in memory with one App and one link.
type kept struct {
	app.Store
	a auth.GitHubApp
	l auth.RepositoryLink
}

func (k *kept) GitHubApp(context.Context) (auth.GitHubApp, bool, error) { return k.a, true, nil }
func (k *kept) RepositoryLink(context.Context, space.SpaceID) (auth.RepositoryLink, bool, error) {
	return k.l, true, nil
}
func (k *kept) RepositoryLinks(context.Context) ([]auth.RepositoryLink, error) {
	return []auth.RepositoryLink{k.l}, nil
}
func (k *kept) SeenDelivery(context.Context, string) (bool, error) { return true, nil }
func (k *kept) UpdateLink(context.Context, auth.RepositoryLink, auth.RepositoryLink) (bool, error) {
	return true, nil
}

func newKept() *kept {
	return &kept{
		a: auth.GitHubApp{URL: "https://github.com", ID: 7, ClientID: "c", HTMLURL: "https://github.com/apps/x", Secrets: auth.GitHubSecrets{ClientSecret: "s", Webhook: "w"}},
		l: auth.RepositoryLink{Space: "s_1", GitHubUser: 1, GitHubLogin: "ada", Installation: 5, Repository: 9, FullName: "ada/notes", State: auth.LinkConnected},
	}
}

type trip func(*http.Request) (int, string)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := f(r)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// No event causes a panic, and events that are signed with another secret have no effect.
func FuzzWebhook(f *testing.F) {
	store := newKept()
	pushed := 0
	c, err := app.New(app.Options{
		Store: store, Public: "https://notes.example.com", Hooks: true, OnPush: func(space.SpaceID) { pushed++ },
		Transport: trip(func(*http.Request) (int, string) { return 503, "" }),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	h := c.Webhook()
	f.Add("push", []byte(`{"repository":{"id":9},"installation":{"id":5}}`), "w")
	f.Add("push", []byte(`{"repository":{"id":9},"installation":{"id":5}}`), "")
	f.Add("installation_repositories", []byte(`{"repositories_removed":[{"id":9},null]}`), "w")
	f.Add("installation", []byte(`{"installation":[]}`), "w")
	f.Fuzz(func(t *testing.T, event string, body []byte, secret string) {
		r := httptest.NewRequest(http.MethodPost, app.PathWebhook, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-GitHub-Event", event)
		r.Header.Set("X-GitHub-Delivery", "a")
		r.Header.Set("X-Hub-Signature-256", apptest.Sign(secret, body))
		w := httptest.NewRecorder()
		before := pushed
		h.ServeHTTP(w, r)
		if secret != "w" && (w.Code != http.StatusUnauthorized || pushed != before) {
			t.Errorf("signed with %q: %d", secret, w.Code)
		}
	})
}

// No answer of GitHub causes a panic. Found repositories have valid names and belong to
// this App. Their count is limited.
func FuzzAnswers(f *testing.F) {
	f.Add(200, `{"id":1,"login":"ada","type":"User"}`, `{"installations":[{"id":5,"app_id":7,"account":{"login":"ada"}}]}`, `{"repositories":[{"id":9,"full_name":"ada/notes","permissions":{"push":true}}]}`)
	f.Add(404, `null`, `[]`, `{"repositories":[{"id":9,"full_name":"../..","permissions":null}]}`)
	f.Add(403, `{"message":"suspended"}`, `{"installations":[{"id":5,"app_id":8}]}`, `{}`)
	store := newKept()
	f.Fuzz(func(t *testing.T, status int, user, installations, repositories string) {
		if status < 100 || status > 599 {
			return
		}
		c, err := app.New(app.Options{Store: store, Public: "https://notes.example.com", Timeout: time.Minute, Transport: trip(func(r *http.Request) (int, string) {
			switch p := r.URL.Path; {
			case strings.HasSuffix(p, "/access_token"):
				return 200, `{"access_token":"ghu_x","token_type":"bearer"}`
			case p == "/user":
				return 200, user
			case strings.HasPrefix(p, "/user/installations/"):
				return status, repositories
			case p == "/user/installations":
				return 200, installations
			}
			return 204, ""
		})})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, flow, err := c.Begin(t.Context(), "https://notes.example.com/github/callback", "s")
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.Finish(t.Context(), "https://notes.example.com/github/callback", flow, url.Values{"state": {"s"}, "code": {"c"}})
		if err == nil && (found.GitHubUser <= 0 || found.App != 7) {
			t.Errorf("%+v", found)
		}
		for _, r := range found.Repositories {
			if r.ID <= 0 || strings.Count(r.FullName, "/") != 1 || strings.Contains(r.FullName, "..") && strings.HasSuffix(r.FullName, "/..") || strings.ContainsAny(r.FullName, "?#@:\\% \n") {
				t.Errorf("%+v", r)
			}
		}
		if b, err := json.Marshal(found); err != nil || len(b) > 45<<10 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}
