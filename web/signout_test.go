package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/web"
)

const noWayBack = "can only come back with a link from an admin or the operator of the server"

func withoutMail(o *web.Options) { o.Mail = nil }

// People who could only come back with somebody's help must confirm before they sign out.
func TestSignOutWithoutAWayBack(t *testing.T) {
	passkey := func(w *world, u store.User) {
		must(w.t, w.AddPasskey(w.t.Context(), cli, store.Passkey{ID: []byte("k"), User: u.ID, Name: "k", Credential: []byte("credential k")}))
	}
	identity := func(w *world, u store.User) {
		must(w.t, w.LinkIdentity(w.t.Context(), cli, store.Identity{User: u.ID, Issuer: hub, Subject: "7"}))
	}
	nothing := func(*world, store.User) {}
	for _, tt := range []struct {
		name     string
		with     func(*web.Options)
		email    string
		have     func(*world, store.User)
		stranded bool
	}{
		{"nothing", withoutMail, "", nothing, true},
		{"an address, but no mail is sent here", withoutMail, "grace@example.com", nothing, true},
		{"mail, but no address", func(*web.Options) {}, "", nothing, true},
		{"mail", func(*web.Options) {}, "grace@example.com", nothing, false},
		{"a passkey", withoutMail, "", passkey, false},
		{"a sign-in at a provider", withoutMail, "", identity, false},
		{"a sign-in at a provider that is no longer configured", func(o *web.Options) { o.Mail, o.GitHub = nil, nil }, "", identity, true},
		{"a passkey of a server that takes none", bare, "", passkey, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.with)
			u, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "grace", Email: tt.email})
			must(t, err)
			tt.have(w, u)
			for _, path := range []string{"/signout", "/account/sessions/end"} {
				b := w.as(u)
				all, err := w.Sessions(t.Context(), u.ID)
				must(t, err)
				form := url.Values{"return": {request()}, "id": {all[0].ID}}
				a := b.send(path, form)
				if !tt.stranded {
					want(t, path, a, http.StatusSeeOther)
					continue
				}
				want(t, path, a, http.StatusOK)
				checkPage(t, path, a)
				if !strings.Contains(a.body, noWayBack) || !strings.Contains(a.body, "Sign out anyway") || !b.signedIn() {
					t.Fatalf("%s: they are not asked: %s", path, a.body)
				}
				// What the button sends.
				for _, m := range regexp.MustCompile(`name="(sure|id)" value="([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
					form.Set(m[1], m[2])
				}
				want(t, path+" anyway", b.send(path, form), http.StatusSeeOther)
				if b.signedIn() {
					t.Errorf("%s: they are signed in yet", path)
				}
			}
			if body := w.as(u).get("/welcome").body; strings.Contains(body, noWayBack) != (tt.stranded && strings.Contains(body, "Later")) {
				t.Error("the page of welcome says something else")
			}
		})
	}
}

// Sessions of other browsers end without a question, because this one remains.
func TestEndingAnotherSessionAsksNothing(t *testing.T) {
	w := newWorld(t, withoutMail)
	b, other := w.as(w.ada), w.as(w.ada)
	all, err := w.Sessions(t.Context(), w.ada.ID)
	must(t, err)
	here := regexp.MustCompile(`this browser</span>.*\n.*name="id" value="([^"]*)"`).FindStringSubmatch(b.get("/account").body)
	for _, ss := range all {
		if ss.ID != here[1] {
			want(t, "end", b.send("/account/sessions/end", url.Values{"id": {ss.ID}}), http.StatusSeeOther)
		}
	}
	if other.signedIn() || !b.signedIn() {
		t.Error("the wrong session is over")
	}
}

// Without a script, nothing is offered that needs one.
func TestSignOutOffersWhatWorksWithoutAScript(t *testing.T) {
	for name, tt := range map[string]struct {
		with func(*web.Options)
		ways []string
		not  []string
	}{
		"a provider and passkeys": {withoutMail, []string{`<a class="button" href="/account#sign-ins">Add a way to sign in</a>`}, []string{"passkey"}},
		"passkeys alone":          {func(o *web.Options) { o.Mail, o.GitHub = nil, nil }, []string{`<a class="button" href="/account#sign-ins" data-scripted hidden>Add a passkey</a>`, `href="/">Stay signed in</a>`}, nil},
		"nothing":                 {bare, []string{`<a class="button" href="/">Stay signed in</a>`}, []string{"passkey", "Add a way"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.with)
			u, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "grace"})
			must(t, err)
			a := w.as(u).send("/signout", nil)
			_, main, _ := strings.Cut(a.body, "<main")
			for _, way := range tt.ways {
				if !strings.Contains(main, way) {
					t.Errorf("%q is missing", way)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(main, not) {
					t.Errorf("%q is there", not)
				}
			}
		})
	}
}
