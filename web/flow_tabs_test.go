package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/web"
)

// Two tabs sign in at once and return in any order. Each continues to its own address.
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
	must(t, w.AddPasskey(t.Context(), cli, store.Passkey{ID: []byte("adas"), User: w.ada.ID, Name: "phone", Credential: []byte("credential adas")}))
	want(t, "the third", b.script("/signin/passkey/finish", `{"response":"adas"}`), http.StatusOK)
	if left := b.flows(); len(left) > 0 {
		t.Errorf("cookies are left: %v", left)
	}
}

// Attack: during a sign-in or the linking of an account, a link on another site makes the
// browser return with a foreign state. It uses up none of the person's flows, and signs
// nobody in.
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
	// An attacker who learned the states cannot use them in another browser either.
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

// Attack: links on another site begin endless sign-ins. The cookies stay few, and none
// replaces a flow that the person began with a form.
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

// Signing out leaves nothing behind that could sign the person in again.
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

// Two tabs use passkeys at once, in any order. Each finishes its own ceremony.
func TestTwoTabsUsePasskeysAtOnce(t *testing.T) {
	for name, order := range map[string][2]int{"the first one first": {0, 1}, "the second one first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			begin := func(b *browser, target string) (tabs [2]string) {
				for i := range tabs {
					want(t, "begin", b.script(target, "{}"), http.StatusOK)
					tabs[i] = b.ceremony
				}
				return tabs
			}
			bob := w.as(w.bob)
			tabs := begin(bob, "/account/passkeys/begin")
			for _, i := range order {
				bob.ceremony = tabs[i]
				key := []string{"phone", "laptop"}[i]
				want(t, "add the "+key, bob.script("/account/passkeys/finish", `{"response":"`+key+`","name":"`+key+`"}`), http.StatusOK)
				want(t, "again", bob.script("/account/passkeys/finish", `{"response":"again","name":"again"}`), http.StatusForbidden)
			}
			keys, err := w.Passkeys(t.Context(), w.bob.ID)
			if err != nil || len(keys) != 2 {
				t.Errorf("%d passkeys, %v", len(keys), err)
			}
			b := w.browser()
			tabs = begin(b, "/signin/passkey/begin")
			for _, i := range order {
				b.ceremony = tabs[i]
				want(t, "sign in", b.script("/signin/passkey/finish", `{"response":"phone"}`), http.StatusOK)
			}
			if left := b.flows(); len(left) > 0 || b.who() != "bob" {
				t.Errorf("%q is signed in, and cookies are left: %v", b.who(), left)
			}
		})
	}
}

// Two tabs create a key each. Each shows its own, in any order.
func TestTwoTabsAreShownTheirOwn(t *testing.T) {
	for name, order := range map[string][2]int{"the first one first": {0, 1}, "the second one first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := w.as(w.ada)
			var tabs [2]string
			for i, key := range []string{"backup", "report"} {
				want(t, "make", b.send("/account/keys", url.Values{"space": {string(w.space.ID)}, "name": {key}, "days": {"30"}}), http.StatusSeeOther)
				tabs[i] = b.once
			}
			want(t, "and a link", b.send(linkFor(w.bob), nil), http.StatusSeeOther)
			for _, i := range order {
				a := b.get(tabs[i])
				want(t, tabs[i], a, http.StatusOK)
				mine, other := []string{"backup", "report"}[i], []string{"report", "backup"}[i]
				if !strings.Contains(a.body, mine) || strings.Contains(a.body, other) || !strings.Contains(a.body, `value="satchel_`) {
					t.Errorf("%s is not shown its own", mine)
				}
				want(t, "again", b.get(tabs[i]), http.StatusSeeOther)
			}
			want(t, "the link", b.get(b.once), http.StatusOK)
			if left := b.flows(); len(left) > 0 {
				t.Errorf("cookies are left: %v", left)
			}
		})
	}
}

// Attack: a tab finishes with an invalid name, another's, or one of another kind; it
// begins endless ceremonies; a link names what to show.
func TestAttackNamesOfTabs(t *testing.T) {
	w := newWorld(t)
	bob, eve := w.as(w.bob), w.as(w.eve)
	eve.script("/account/passkeys/begin", "{}")
	bob.script("/account/passkeys/begin", "{}")
	own := bob.ceremony
	for name, id := range map[string]string{"none": "x", "another's": eve.ceremony, "of what is shown": "shown", "long": strings.Repeat("x", 4000)} {
		bob.ceremony = id
		want(t, name, bob.script("/account/passkeys/finish", `{"response":"p","name":"p"}`), http.StatusBadRequest)
	}
	eve.ceremony = own
	want(t, "another's name", eve.script("/account/passkeys/finish", `{"response":"p","name":"p"}`), http.StatusBadRequest)
	maps.Copy(eve.cookies, bob.flows())
	want(t, "and another's cookie", eve.script("/account/passkeys/finish", `{"response":"p","name":"p"}`), http.StatusBadRequest)
	bob.ceremony = own
	want(t, "as a sign-in", bob.script("/signin/passkey/finish", `{"response":"p"}`), http.StatusBadRequest)
	want(t, "which used nothing up", bob.script("/account/passkeys/finish", `{"response":"p","name":"p"}`), http.StatusOK)

	bob.send("/account/keys", url.Values{"space": {string(w.space.ID)}, "name": {"key"}, "days": {"30"}})
	shown := bob.once
	for _, path := range []string{"/account/keys/made", "/account/keys/made?once=", "/account/keys/made?once=x", "/account/keys/made?once=" + own} {
		want(t, path, bob.get(path), http.StatusSeeOther)
	}
	want(t, "in another's browser", eve.get(shown), http.StatusSeeOther)
	want(t, "in its own", bob.get(shown), http.StatusOK)

	for range 30 {
		bob.script("/account/passkeys/begin", "{}")
	}
	if n := len(bob.flows()); n > 8 {
		t.Errorf("%d cookies", n)
	}
}

// A form that uses up one flow and stores another does not push out the oldest flow of
// another tab.
func TestKeptInThePlaceOfWhatWasUsedUp(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	b := a.as(a.ada)
	form := url.Values{"url": {"https://127.0.0.1/me.git"}, "token": {"canary-token"}}
	var last answer
	for range 8 {
		last = b.send(a.in("remote"), form)
	}
	before := b.flows()
	if len(before) != 8 {
		t.Fatalf("%d are open", len(before))
	}
	want(t, "again", b.send(a.in("remote"), url.Values{"url": form["url"], "kept": {keptField.FindStringSubmatch(last.body)[1]}}), http.StatusBadRequest)
	gone := 0
	for name := range before {
		if _, ok := b.flows()[name]; !ok {
			gone++
		}
	}
	if gone != 1 || len(b.flows()) != 8 {
		t.Errorf("%d are gone, %d open", gone, len(b.flows()))
	}
}
