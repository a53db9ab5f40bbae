package app_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// suspension returns a real event that GitHub did not send, its secret, and a world with
// the connection that the event concerns.
func suspension(t *testing.T) (w *world, d apptest.Delivery, secret string) {
	t.Helper()
	return suspensionWith(t)
}

func suspensionWith(t *testing.T, change ...func(*app.Options)) (w *world, d apptest.Delivery, secret string) {
	t.Helper()
	w = newWorld(t, change...)
	w.create(false)
	// An event about the installation could arrive after the link, and make the server ask.
	w.gh.Behave(apptest.Behaviour{NoHooks: true})
	i := w.install("ada", "ada/notes", "ada/diary")
	w.connect(w.notes)
	w.gh.Suspend(i)
	all := w.gh.Deliveries()
	return w, all[len(all)-1], w.gh.App(w.slug()).Webhook
}

// Attacks on the webhook: only events that are signed with the App's secret count, and each
// delivery only once.
func TestAttackWebhook(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *apptest.Delivery, secret string)
		want   int
	}{
		{"no signature", func(d *apptest.Delivery, _ string) { d.Signature = "" }, http.StatusUnauthorized},
		{"another secret", func(d *apptest.Delivery, _ string) { d.Signature = apptest.Sign("guess", d.Body) }, http.StatusUnauthorized},
		{"an empty secret", func(d *apptest.Delivery, _ string) { d.Signature = apptest.Sign("", d.Body) }, http.StatusUnauthorized},
		{"half a signature", func(d *apptest.Delivery, _ string) { d.Signature = d.Signature[:40] }, http.StatusUnauthorized},
		{"an old algorithm", func(d *apptest.Delivery, _ string) { d.Signature = strings.Replace(d.Signature, "sha256=", "sha1=", 1) }, http.StatusUnauthorized},
		{"another body", func(d *apptest.Delivery, _ string) { d.Body = append(d.Body, ' ') }, http.StatusUnauthorized},
		{"a form", func(d *apptest.Delivery, _ string) { d.ContentType = "application/x-www-form-urlencoded" }, http.StatusUnsupportedMediaType},
		{"no JSON", func(d *apptest.Delivery, s string) { d.Body = []byte("{"); d.Signature = apptest.Sign(s, d.Body) }, http.StatusBadRequest},
		{"a body that is too large", func(d *apptest.Delivery, s string) {
			d.Body = []byte(`{"a":"` + strings.Repeat("a", 1<<20) + `"}`)
			d.Signature = apptest.Sign(s, d.Body)
		}, http.StatusRequestEntityTooLarge},
		{"no id", func(d *apptest.Delivery, _ string) { d.ID = "" }, http.StatusBadRequest},
		{"an id that is too long", func(d *apptest.Delivery, _ string) { d.ID = strings.Repeat("a", 101) }, http.StatusBadRequest},
		{"as GitHub sends it", func(*apptest.Delivery, string) {}, http.StatusAccepted},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, d, secret := suspension(t)
			before := w.gh.Count(http.MethodGet, "/app/installations/*")
			c.change(&d, secret)
			status, body, err := w.gh.Deliver(d)
			if err != nil || status != c.want || strings.Contains(body, secret) {
				t.Errorf("%d, want %d, %q, %v", status, c.want, body, err)
			}
			if c.want == http.StatusAccepted {
				w.becomes(auth.LinkSuspended)
				return
			}
			w.Close() // the pending checks have ended
			if w.gh.Count(http.MethodGet, "/app/installations/*") != before {
				t.Error("it was listened to")
			}
		})
	}
}

func TestAttackWebhookMethods(t *testing.T) {
	w, d, _ := suspension(t)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		r, err := http.NewRequest(method, d.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
	_ = w
}

// Attack: a delivery is repeated, also under another id. At most it causes a request to
// GitHub, and it ends no access.
func TestAttackWebhookReplay(t *testing.T) {
	w, i := withApp(t)
	w.connect(w.notes)
	w.gh.Suspend(i)
	w.becomes(auth.LinkSuspended)
	w.gh.Idle()
	all := w.gh.Deliveries()
	d := all[len(all)-1]
	w.gh.Unsuspend(i)
	w.becomes(auth.LinkConnected)
	w.gh.Idle()
	asked := w.gh.Count(http.MethodGet, "/app/installations/*")
	if status, _, err := w.gh.Deliver(d); err != nil || status != http.StatusOK {
		t.Errorf("again: %d, %v", status, err)
	}
	d.ID = "11111111-2222-3333-4444-555555555555"
	if status, _, err := w.gh.Deliver(d); err != nil || status != http.StatusAccepted {
		t.Errorf("under another id: %d, %v", status, err)
	}
	testenv.WaitFor(w.t, "GitHub is asked", func() bool { // after connecting, unsuspending and replaying
		return w.gh.Count(http.MethodGet, "/repos/ada/notes/collaborators/ada/permission") == 3
	})
	if n := w.gh.Count(http.MethodGet, "/app/installations/*"); n != asked+1 {
		t.Errorf("%d looks for two replays", n-asked)
	}
	if l, _, _ := w.Linked(t.Context(), w.annSpace); l.State != auth.LinkConnected {
		t.Errorf("a replayed event took the connection: %s", l.State)
	}
}

// Attack: an App has no webhook secret. Anybody can sign with an empty secret, so the
// server accepts no event.
func TestAttackWebhookEmptySecret(t *testing.T) {
	w := newWorld(t)
	_, manifest, err := w.Manifest("", app.NewApp{})
	if err != nil {
		t.Fatal(err)
	}
	made := w.gh.AddApp("ada", manifest)
	a := auth.GitHubApp{ID: made.ID, Secrets: auth.GitHubSecrets{ClientSecret: made.ClientSecret, PrivateKey: made.PrivateKey}}
	if _, err := w.Enter(t.Context(), w.ann.ID, a); err != nil {
		t.Fatal(err)
	}
	var m struct {
		Hook struct{ URL string } `json:"hook_attributes"`
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"action":"suspend","installation":{"id":1}}`)
	for name, signature := range map[string]string{"signed with nothing": apptest.Sign("", body), "unsigned": ""} {
		status, _, err := w.gh.Deliver(apptest.Delivery{ID: "a", Event: "installation", URL: m.Hook.URL, Body: body, Signature: signature})
		if err != nil || status != http.StatusNotFound && status != http.StatusUnauthorized {
			t.Errorf("%s: %d, %v", name, status, err)
		}
	}
}

// An event about an installation connects nothing.
func TestAttackWebhookNeverBinds(t *testing.T) {
	w := newWorld(t)
	w.create(false)
	if err := w.AskApproval(t.Context(), w.annSpace, w.ann.ID); err != nil {
		t.Fatal(err)
	}
	w.install("ada")
	w.gh.Idle()
	if d := w.gh.Deliveries(); len(d) == 0 || d[len(d)-1].Event != "installation" || d[len(d)-1].Status != http.StatusAccepted {
		t.Fatalf("%+v", d)
	}
	w.unlinked(w.annSpace)
	if _, ok, _ := w.Waiting(t.Context(), w.annSpace); !ok {
		t.Error("the wait ended")
	}
}

// An event about a push reaches the spaces that have the repository, as long as they have it.
func TestWebhookOfAPush(t *testing.T) {
	w, i := withApp(t)
	w.connect(w.notes)
	w.gh.Push("ada/notes", map[string]string{"a.md": "a"})
	w.gh.Push("ada/diary", map[string]string{"a.md": "a"})
	w.gh.Idle()
	if len(w.pushes) != 1 || <-w.pushes != w.annSpace {
		t.Errorf("%d more", len(w.pushes))
	}
	w.gh.Behave(apptest.Behaviour{NoHooks: true})
	w.gh.Suspend(i)
	if _, err := w.Recheck(t.Context(), w.annSpace); err != nil {
		t.Fatal(err)
	}
	w.gh.Behave(apptest.Behaviour{})
	w.gh.Push("ada/notes", map[string]string{"a.md": "b"})
	w.gh.Idle()
	if len(w.pushes) != 0 {
		t.Error("a suspended App's push is told")
	}
}

// If a person revokes the App's authorization, their connection is checked at once.
func TestWebhookOfARevokedAuthorization(t *testing.T) {
	w, _ := withApp(t)
	w.connect(w.notes)
	before := w.gh.Count(http.MethodGet, "/app/installations/*")
	w.gh.Deauthorize(w.slug(), "ada")
	w.gh.Idle()
	testenv.WaitFor(w.t, "GitHub is asked", func() bool { return w.gh.Count(http.MethodGet, "/app/installations/*") > before })
}

// A full queue of spaces does not block further deliveries.
func TestWebhookQueueIsBounded(t *testing.T) {
	stall := make(chan struct{})
	w, i := withApp(t, func(o *app.Options) { o.WebhookQueue = 1 })
	f := w.find("ada")
	for repository, l := range map[int64]auth.RepositoryLink{w.notes: {Space: w.annSpace, User: w.ann.ID}, w.diary: {Space: w.eveSpace, User: w.eve.ID}} {
		if _, err := w.Link(t.Context(), l.User, l.Space, f, repository); err != nil {
			t.Fatal(err)
		}
	}
	w.gh.Behave(apptest.Behaviour{Stall: stall})
	for range 5 {
		w.gh.Suspend(i)
	}
	testenv.WaitFor(w.t, "all are answered", func() bool {
		n := 0
		for _, d := range w.gh.Deliveries() {
			if d.Event == "installation" && d.Status == http.StatusAccepted {
				n++
			}
		}
		return n >= 5
	})
	close(stall)
}

func TestLinkIsRefusedBeforeItIsMade(t *testing.T) {
	no := fault.New(fault.Conflict, "The space holds secrets.")
	w, _ := withApp(t, func(o *app.Options) { o.Before = func(context.Context, auth.RepositoryLink) error { return no } })
	_, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("ada"), w.notes)
	wantCode(t, "connected", err, fault.Conflict)
	w.unlinked(w.annSpace)
	v, _ := withApp(t, func(o *app.Options) { o.OnState = func(context.Context, auth.RepositoryLink) error { return no } })
	_, err = v.Link(t.Context(), v.ann.ID, v.annSpace, v.find("ada"), v.notes)
	wantCode(t, "connected, though nothing follows it", err, fault.Conflict)
	v.unlinked(v.annSpace)
}
