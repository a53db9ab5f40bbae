package web_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/store"
)

// Two tabs sign in at once, in whichever order they come back; each goes on to where
// it was on the way to.
func TestTwoTabsSignInAtOnce(t *testing.T) {
	w := withGitHub(t)
	b := w.browser()
	first := stateOf(t, b.get("/signin/github?return=%2Faccount"))
	second := stateOf(t, b.get("/signin/github?return=%2Fwelcome"))
	b.script("/signin/passkey/begin", "{}") // and a third asks for a passkey
	for _, tab := range []struct{ name, state, to string }{{"the second", second, "/welcome"}, {"the first", first, "/account"}} {
		a := b.get(callback("ada", tab.state))
		want(t, tab.name, a, http.StatusSeeOther)
		if a.location() != issuer+tab.to || b.who() != "ada" {
			t.Errorf("%s: %q is signed in at %s", tab.name, b.who(), a.location())
		}
	}
	must(t, w.AddPasskey(t.Context(), cli, store.Passkey{ID: []byte("bobs"), User: w.bob.ID, Name: "phone", Credential: []byte("credential bobs")}))
	want(t, "the third", b.script("/signin/passkey/finish", `{"response":"bobs"}`), http.StatusOK)
	if left := b.flows(); len(left) > 0 {
		t.Errorf("cookies are left: %v", left)
	}
}

// Attack: while somebody signs in or links an account, a link on another site has their
// browser come back with a state that is not theirs. Nothing of theirs is used up, and
// nobody is signed in by it.
func TestAttackForgedCallbackEndsNobodysSignIn(t *testing.T) {
	w := withGitHub(t)
	must(t, w.LinkIdentity(t.Context(), cli, store.Identity{User: w.eve.ID, Issuer: hub, Subject: "2"}))
	in, linking := w.browser(), w.as(w.bob)
	s := stateOf(t, in.get("/signin/github"))
	link := stateOf(t, linking.send("/account/link/github", nil))
	theirs := stateOf(t, w.browser().get("/signin/github"))
	for name, target := range map[string]string{
		"garbage":              callback("eve", "x"),
		"no state":             "/signin/github/callback?code=eve",
		"an empty state":       callback("eve", ""),
		"the attacker's state": callback("eve", theirs),
		"a made-up state":      callback("eve", auth.NewSecret(auth.KindFlow).Reveal()),
		"a refusal":            "/signin/github/callback?error=access_denied&state=x",
		"two states":           callback("eve", "x") + "&state=y",
	} {
		for _, b := range []*browser{in, linking} {
			before := maps.Clone(b.cookies)
			want(t, name, b.get(target), http.StatusBadRequest)
			if !maps.Equal(before, b.cookies) {
				t.Errorf("%s changed the cookies", name)
			}
		}
	}
	// Who came by the states cannot end them from elsewhere either.
	want(t, "the state without the cookie", w.browser().get(callback("eve", s)), http.StatusBadRequest)
	eve := w.as(w.eve)
	maps.Copy(eve.cookies, linking.flows())
	want(t, "the state and the cookie in another session", eve.get(callback("eve", link)), http.StatusBadRequest)

	want(t, "the sign-in goes on", in.get(callback("ada", s)), http.StatusSeeOther)
	want(t, "the link goes on", linking.get(callback("grace", link)), http.StatusSeeOther)
	ids, err := w.Identities(t.Context(), w.bob.ID)
	if in.who() != "ada" || err != nil || len(ids) != 1 || ids[0].Subject != "3" {
		t.Errorf("%q is signed in, and bob has %+v, %v", in.who(), ids, err)
	}
}

// Attack: links on another site begin sign-ins without end. The cookies stay few, and
// none takes the place of what the person began by a form.
func TestAttackBegunSignInsPushNothingOut(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	connect := h.state(b, "/connect")
	for range 30 {
		b.get("/signin/github")
	}
	if n := len(b.flows()); n > 9 {
		t.Errorf("%d cookies", n)
	}
	want(t, "the visit goes on", b.get("/github/callback?code=ada&state="+connect), http.StatusSeeOther)
}

// Who signs out leaves nothing behind that could sign them in again.
func TestSignOutForgetsWhatIsOpen(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	h.state(b, "/connect")
	b.get("/signin/github")
	b.script("/account/passkeys/begin", "{}")
	if len(b.flows()) != 3 {
		t.Fatalf("open: %v", b.flows())
	}
	b.send("/signout", map[string][]string{"sure": {"1"}})
	for name := range b.cookies {
		if strings.HasPrefix(name, "__Host-satchel") {
			t.Errorf("%s is left", name)
		}
	}
}
