package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

func wantWords(t *testing.T, what string, a answer, words ...string) {
	t.Helper()
	want(t, what, a, http.StatusOK)
	checkPage(t, what, a)
	for _, s := range words {
		if !strings.Contains(a.body, s) {
			t.Errorf("%s lacks %q", what, s)
		}
	}
}

// A space whose owner was removed belongs to nobody on every page.
func TestSpaceOfNobody(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.bob)
	must(t, w.SetAdmin(t.Context(), cli, w.eve.ID, true))
	must(t, w.RemoveUser(t.Context(), cli, w.ada.ID))
	path := "/spaces/" + string(w.space.ID)
	wantWords(t, "keys", b.get("/account/keys"), `">`+w.space.Name+` (of nobody (was ada), read only)</option>`)
	wantWords(t, "account", b.get("/account"), `<span class="hint">of nobody (was ada)</span>`)
	wantWords(t, "space", b.get(path), "A space of <strong>nobody (was ada)</strong>, in which you are a <strong>reader</strong>.")
	wantWords(t, "consent", b.get(request()), "Shared by nobody (was ada) · you can only read")
	for _, p := range []string{"/account", "/account/keys", path, request()} {
		if body := b.get(p).body; strings.Contains(body, "of  ") || strings.Contains(body, "of ;") || strings.Contains(body, "<strong></strong>") {
			t.Errorf("%.30s has a blank", p)
		}
	}
	want(t, "leave", b.send(path+"/members/"+string(w.bob.ID)+"/remove", nil), http.StatusSeeOther)
	want(t, "the space after", b.get(path), http.StatusNotFound)
}

// The list of invitations says what each is for.
func TestInvitationsOnThePageOfPeople(t *testing.T) {
	w := newWorld(t)
	for _, n := range []store.NewInvitation{
		{By: w.ada.ID, Space: w.space.ID, Role: space.Reader}, {By: w.eve.ID, Space: w.evil.ID, Role: space.Editor}, {Admin: true},
	} {
		n.Lifetime = time.Hour
		_, _, err := w.CreateInvitation(t.Context(), cli, n)
		must(t, err)
	}
	wantWords(t, "people", w.as(w.ada).get("/admin"),
		"To read the space "+w.space.Name+" · by ada ·", "To read and change the space "+w.evil.Name+" · by eve ·", "To this server · by the operator ·",
		`<span class="badge">reader</span>`, `<span class="badge">editor</span>`)
}

// Sessions say how people signed in, in the words of the buttons.
func TestSessionsNameTheProvider(t *testing.T) {
	w := newWorld(t, func(o *web.Options) { o.OIDC = &fakeProvider{label: "Acme <Inc>"} })
	for _, m := range []string{"oidc", "github", "link"} {
		_, _, err := w.StartSession(t.Context(), store.NewSession{User: w.ada.ID, Method: m})
		must(t, err)
	}
	wantWords(t, "account", w.as(w.ada).get("/account"), "with Acme &lt;Inc&gt; <time", "with GitHub <time", "with a sign-in link <time")

	// A session with a provider that is no longer configured.
	w = newWorld(t)
	_, _, err := w.StartSession(t.Context(), store.NewSession{User: w.ada.ID, Method: "oidc"})
	must(t, err)
	wantWords(t, "account without it", w.as(w.ada).get("/account"), "with single sign-on <time")
}

// People without an address see how to add one, if that is useful.
func TestAccountWithoutAddress(t *testing.T) {
	const add = "<code>satchel user email"
	for name, tt := range map[string]struct {
		with  func(*web.Options)
		user  store.NewUser
		words string // empty: nothing is said
	}{
		"no address":                      {func(*web.Options) {}, store.NewUser{Name: "grace"}, "An admin can add it with <code>satchel user email grace ADDRESS</code>."},
		"an admin without one":            {func(*web.Options) {}, store.NewUser{Name: "grace", Admin: true}, "Add it with <code>satchel user email grace ADDRESS</code>."},
		"an address":                      {func(*web.Options) {}, store.NewUser{Name: "grace", Email: "grace@example.com"}, ""},
		"no address, and no mail is sent": {withoutMail, store.NewUser{Name: "grace"}, ""},
	} {
		w := newWorld(t, tt.with)
		u, _, err := w.CreateUser(t.Context(), cli, tt.user)
		must(t, err)
		a := w.as(u).get("/account")
		wantWords(t, name, a, tt.words)
		if tt.words == "" && strings.Contains(a.body, add) {
			t.Errorf("%s: it tells of an address", name)
		}
		if strings.Contains(a.body, "So far, you can only sign in with a link by mail") != (name == "an address") {
			t.Errorf("%s: what ways there are is wrong", name)
		}
	}
}
