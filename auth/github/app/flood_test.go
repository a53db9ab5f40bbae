package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/fault"
)

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// Attack: unsigned bodies and bodies larger than any event use memory.
func TestAttackWebhookUnreadBodies(t *testing.T) {
	w, _, _ := suspension(t)
	for name, c := range map[string]struct {
		signature string
		length    int64
		want      int
	}{
		"unsigned":         {"", 100, http.StatusUnauthorized},
		"no signature":     {"sha256=guess", 100, http.StatusUnauthorized},
		"a long signature": {"sha256=" + strings.Repeat("0", 65), 100, http.StatusUnauthorized},
		"huge":             {"sha256=" + strings.Repeat("0", 64), 1 << 40, http.StatusRequestEntityTooLarge},
	} {
		r := httptest.NewRequest(http.MethodPost, app.PathWebhook, untouched{t})
		r.ContentLength = c.length
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Hub-Signature-256", c.signature)
		rec := httptest.NewRecorder()
		w.Webhook().ServeHTTP(rec, r)
		if rec.Code != c.want {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
}

// Attack: a flood of events with a wrong signature fills the log.
func TestAttackWebhookFloodOfForged(t *testing.T) {
	w, d, _ := suspension(t)
	d.Signature = apptest.Sign("guess", d.Body)
	for i := range 50 {
		d.ID = fmt.Sprint("forged-", i)
		if status, _, err := w.gh.Deliver(d); err != nil || status != http.StatusUnauthorized {
			t.Fatal(status, err)
		}
	}
	if n := strings.Count(w.log.String(), "invalid signature"); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
}

// Attack: a flood of signed events with new ids arrives in the wrong order and at once, while
// GitHub is slow. The server asks GitHub only a few times, and GitHub's last answer counts.
func TestAttackWebhookFloodAndReordered(t *testing.T) {
	w, d, secret := suspension(t) // GitHub has suspended it without sending an event
	before := w.gh.Count(http.MethodGet, "/app/installations/*")
	stall := make(chan struct{})
	w.gh.Behave(apptest.Behaviour{Stall: stall})
	var work sync.WaitGroup
	for i := range 60 {
		e := d
		e.ID = fmt.Sprint("flood-", i)
		if i%2 == 0 { // a later event, or one that never happened
			e.Body = []byte(strings.Replace(string(d.Body), `"action":"suspend"`, `"action":"unsuspend"`, 1))
			e.Signature = apptest.Sign(secret, e.Body)
		}
		work.Go(func() {
			if status, _, err := w.gh.Deliver(e); err != nil || status != http.StatusAccepted {
				t.Errorf("%s: %d, %v", e.ID, status, err)
			}
		})
	}
	work.Wait()
	close(stall)
	w.becomes(auth.LinkSuspended)
	w.Close()
	if n := w.gh.Count(http.MethodGet, "/app/installations/*") - before; n > 5 {
		t.Errorf("GitHub was asked %d times", n)
	}
	if l, _, _ := w.Linked(t.Context(), w.annSpace); l.State != auth.LinkSuspended {
		t.Errorf("it is %s", l.State)
	}
}

// Attack: signed events concern other installations, repositories and people.
func TestAttackWebhookOfOthers(t *testing.T) {
	w, d, secret := suspension(t)
	before := w.gh.Count(http.MethodGet, "/app/installations/*")
	l, _, err := w.Linked(t.Context(), w.annSpace)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range []struct{ event, body string }{
		{"installation", `{"action":"suspend","installation":{"id":4711}}`},
		{"installation", `{"action":"deleted","installation":{"id":-1}}`},
		{"installation", `{"action":"deleted","installation":[]}`},
		{"installation_repositories", fmt.Sprintf(`{"installation":{"id":4711},"repositories_removed":[{"id":%d}]}`, l.Repository)},
		{"installation_repositories", fmt.Sprintf(`{"installation":{"id":%d},"repositories_added":[{"id":4711}]}`, l.Installation)},
		{"repository", `{"action":"deleted","repository":{"id":4711}}`},
		{"github_app_authorization", `{"action":"revoked","sender":{"id":4711}}`},
		{"push", fmt.Sprintf(`{"repository":{"id":%d},"installation":{"id":4711}}`, l.Repository)},
		{"push", fmt.Sprintf(`{"repository":{"id":4711},"installation":{"id":%d}}`, l.Installation)},
		{"ping", `{}`}, {"", `{}`}, {"push", `null`}, {"push", `[]`}, {"push", `"x"`},
	} {
		x := d
		x.ID, x.Event, x.Body, x.Signature = fmt.Sprint("other-", i), e.event, []byte(e.body), apptest.Sign(secret, []byte(e.body))
		if status, _, err := w.gh.Deliver(x); err != nil || status != http.StatusAccepted && status != http.StatusBadRequest {
			t.Errorf("%s %s: %d, %v", e.event, e.body, status, err)
		}
	}
	w.Close()
	if n := w.gh.Count(http.MethodGet, "/app/installations/*"); n != before || len(w.pushes) > 0 {
		t.Errorf("GitHub was asked %d times, %d pushes were followed", n-before, len(w.pushes))
	}
}

// Attack, or chance: two admins create the App at the same time. One of them succeeds, and
// the App's data is complete.
func TestAttackTwoAdminsMakeTheApp(t *testing.T) {
	w := newWorld(t)
	var work sync.WaitGroup
	made := make(chan auth.GitHubApp, 2)
	for _, state := range []string{"one", "two"} {
		action, manifest, err := w.Manifest(state, app.NewApp{})
		if err != nil {
			t.Fatal(err)
		}
		body := strings.Replace(string(manifest), `"name":"`, `"name":"`+state+" ", 1)
		back, err := w.gh.CreateApp("ada", action, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			switch a, err := w.Create(t.Context(), w.ann.ID, back.Query().Get("code")); {
			case err == nil:
				made <- a
			case fault.CodeOf(err) != fault.Conflict:
				t.Errorf("%s: %v", state, err)
			}
		})
	}
	work.Wait()
	if len(made) != 1 {
		t.Fatalf("%d were made", len(made))
	}
	if a, ok, err := w.App(t.Context()); err != nil || !ok || a.ID != (<-made).ID {
		t.Errorf("%+v, %v, %v", a, ok, err)
	}
}

// Attack: an admin removes the App and creates another one while a person is at GitHub for
// the first one. The person's return connects nothing.
func TestAttackAppForgottenMidway(t *testing.T) {
	w, _ := withApp(t)
	flow, q := w.visit("ada")
	f := w.find("ada")
	if err := w.Forget(t.Context(), w.ann.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(t.Context(), w.callback(), flow, q); fault.CodeOf(err) == "" || fault.CodeOf(err) == fault.Internal {
		t.Errorf("finished without an App: %v", err)
	}
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, f, w.notes); fault.CodeOf(err) == "" || fault.CodeOf(err) == fault.Internal {
		t.Errorf("connected without an App: %v", err)
	}
	w.unlinked(w.annSpace)
}
