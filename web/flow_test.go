package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
)

const hub = "https://github.com"

// callback is the address to which the provider sends a browser back.
func callback(code, state string) string {
	return "/signin/github/callback?code=" + code + "&state=" + state
}

func withGitHub(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.github.known = map[string]auth.ExternalIdentity{
		"ada":    {Issuer: hub, Subject: "1", Login: "ada-l"},
		"eve":    {Issuer: hub, Subject: "2", Login: "eve-il"},
		"grace":  {Issuer: hub, Subject: "3", Login: "grace", Email: "grace@listed.test"},
		"nobody": {Issuer: hub, Subject: "4", Login: "<b>nobody</b>"},
		"broken": {Issuer: hub},
	}
	must(t, w.LinkIdentity(t.Context(), cli, store.Identity{User: w.ada.ID, Issuer: hub, Subject: "1", Label: "ada-l"}))
	return w
}

func TestSignInWithProvider(t *testing.T) {
	w := withGitHub(t)
	b := w.browser()
	begun := b.get("/signin/github?return=%2Faccount")
	want(t, "begin", begun, http.StatusSeeOther)
	if got := begun.location(); !strings.Contains(got, url.QueryEscape(issuer+"/signin/github/callback")) {
		t.Errorf("it leads to %s", got)
	}
	a := b.get(callback("ada", stateOf(t, begun)))
	want(t, "finish", a, http.StatusSeeOther)
	if a.location() != issuer+"/account" || b.who() != "ada" {
		t.Errorf("%q is signed in at %s", b.who(), a.location())
	}
	if left := b.flows(); len(left) > 0 {
		t.Errorf("cookies are left: %v", left)
	}
}

func TestProviderLetsNewPeopleIn(t *testing.T) {
	w := withGitHub(t)
	b := w.browser()
	want(t, "who is listed", b.get(callback("grace", stateOf(t, b.get("/signin/github")))), http.StatusSeeOther)
	if b.who() != "grace" {
		t.Errorf("%q is signed in", b.who())
	}
	b = w.browser()
	a := b.get(callback("nobody", stateOf(t, b.get("/signin/github"))))
	want(t, "who is not", a, http.StatusForbidden)
	if !strings.Contains(a.body, "invite") || strings.Contains(a.body, "<b>nobody") || b.signedIn() {
		t.Errorf("the page: %s", a.body)
	}
	b = w.browser()
	want(t, "who has no subject", b.get(callback("broken", stateOf(t, b.get("/signin/github")))), http.StatusUnauthorized)
	b = w.browser()
	want(t, "who did not agree there", b.get("/signin/github/callback?error=access_denied&state="+stateOf(t, b.get("/signin/github"))), http.StatusUnauthorized)
}

// Attacks on a sign-in in progress. None of them may sign anybody in.
func TestForgedFlows(t *testing.T) {
	for name, attack := range map[string]func(w *world, b *browser, state string) answer{
		"no state":       func(_ *world, b *browser, _ string) answer { return b.get("/signin/github/callback?code=eve") },
		"an empty state": func(_ *world, b *browser, _ string) answer { return b.get(callback("eve", "")) },
		"two states":     func(_ *world, b *browser, s string) answer { return b.get(callback("eve", s) + "&state=" + s) },
		"a made-up state": func(_ *world, b *browser, _ string) answer {
			return b.get(callback("eve", auth.NewSecret(auth.KindFlow).Reveal()))
		},
		"the cookie as state": func(_ *world, b *browser, _ string) answer {
			return b.get(callback("eve", b.onlyFlow()))
		},
		"no cookie": func(_ *world, b *browser, s string) answer {
			b.forget()
			return b.get(callback("eve", s))
		},
		"a made-up cookie": func(_ *world, b *browser, s string) answer {
			b.plant(auth.NewSecret(auth.KindFlow).Reveal())
			return b.get(callback("eve", s))
		},
		"login CSRF: the attacker's state in another browser": func(w *world, b *browser, _ string) answer {
			mine := w.browser()
			s := stateOf(w.t, mine.get("/signin/github"))
			return b.get(callback("eve", s))
		},
		"the attacker's flow in the cookie of one's own": func(w *world, b *browser, s string) answer {
			mine := w.browser()
			mine.get("/signin/github")
			b.plant(mine.onlyFlow())
			return b.get(callback("eve", s))
		},
		"in another browser without a flow": func(w *world, b *browser, s string) answer {
			b.forget()
			return b.get(callback("eve", s))
		},
		"expired": func(w *world, b *browser, s string) answer {
			w.pass(10*time.Minute + time.Second)
			return b.get(callback("eve", s))
		},
		"of a passkey": func(w *world, b *browser, s string) answer {
			other := w.browser()
			other.script("/signin/passkey/begin", "{}")
			b.plant(other.onlyFlow())
			return b.get(callback("eve", s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withGitHub(t)
			must(t, w.LinkIdentity(t.Context(), cli, store.Identity{User: w.eve.ID, Issuer: hub, Subject: "2"}))
			b := w.browser()
			a := attack(w, b, stateOf(t, b.get("/signin/github")))
			want(t, "answer", a, http.StatusBadRequest)
			checkPage(t, "answer", a)
			if b.who() != "" {
				t.Errorf("%q is signed in", b.who())
			}
		})
	}
	t.Run("used again", func(t *testing.T) {
		w := withGitHub(t)
		b := w.browser()
		s := stateOf(t, b.get("/signin/github"))
		kept := b.flows()
		want(t, "once", b.get(callback("ada", s)), http.StatusSeeOther)
		b = w.browser()
		b.cookies = kept
		want(t, "twice", b.get(callback("ada", s)), http.StatusBadRequest)
	})
}

func TestLink(t *testing.T) {
	w := withGitHub(t)
	b := w.as(w.bob)
	before := b.cookies["__Host-satchel"]
	a := b.send("/account/link/github", nil)
	want(t, "begin", a, http.StatusOK)
	if !strings.Contains(a.body, `http-equiv="refresh"`) {
		t.Error("the page does not go on by itself")
	}
	want(t, "finish", b.get(callback("grace", stateOf(t, a))), http.StatusSeeOther)
	ids, err := w.Identities(t.Context(), w.bob.ID)
	if err != nil || len(ids) != 1 || ids[0].Subject != "3" || ids[0].Label != "grace" {
		t.Fatalf("linked: %+v, %v", ids, err)
	}
	if b.cookies["__Host-satchel"] == before || b.who() != "bob" {
		t.Error("the session keeps its secret")
	}
	old := w.browser()
	old.cookies["__Host-satchel"] = before
	if old.signedIn() {
		t.Error("the secret from before is good")
	}
	// Other people's flows remain theirs.
	want(t, "ada's", b.get(callback("ada", stateOf(t, b.send("/account/link/github", nil)))), http.StatusConflict)
}

// Attack: a sign-in is linked to an account by somebody other than the person who began
// it.
func TestForgedLinks(t *testing.T) {
	for name, change := range map[string]func(w *world, b *browser){
		"signed out":           func(_ *world, b *browser) { delete(b.cookies, "__Host-satchel") },
		"another is signed in": func(w *world, b *browser) { b.cookies["__Host-satchel"] = w.as(w.eve).cookies["__Host-satchel"] },
		"another session of the person": func(w *world, b *browser) {
			b.cookies["__Host-satchel"] = w.as(w.bob).cookies["__Host-satchel"]
		},
		"the session is over": func(w *world, b *browser) {
			_, err := w.EndOtherSessions(w.t.Context(), cli, w.bob.ID, "")
			must(w.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withGitHub(t)
			b := w.as(w.bob)
			s := stateOf(t, b.send("/account/link/github", nil))
			change(w, b)
			want(t, "finish", b.get(callback("grace", s)), http.StatusBadRequest)
			for _, u := range []store.User{w.bob, w.eve} {
				if ids, err := w.Identities(t.Context(), u.ID); err != nil || len(ids) > 0 {
					t.Errorf("%s has %+v, %v", u.Name, ids, err)
				}
			}
		})
	}
}

func TestPasskeys(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.bob)
	before := b.cookies["__Host-satchel"]
	want(t, "begin", b.script("/account/passkeys/begin", "{}"), http.StatusOK)
	a := b.script("/account/passkeys/finish", `{"response":"bobs","name":"Phone\u202e","return":"/account"}`)
	want(t, "finish", a, http.StatusOK)
	if a.body != `{"location":"`+issuer+`/account"}` || b.cookies["__Host-satchel"] == before {
		t.Errorf("%s, or the session keeps its secret", a.body)
	}
	keys, err := w.Passkeys(t.Context(), w.bob.ID)
	if err != nil || len(keys) != 1 || keys[0].Name != "Phone" {
		t.Fatalf("keys: %+v %v", keys, err)
	}
	in := w.browser()
	want(t, "begin to sign in", in.script("/signin/passkey/begin", "{}"), http.StatusOK)
	want(t, "sign in", in.script("/signin/passkey/finish", `{"response":"bobs"}`), http.StatusOK)
	if in.who() != "bob" {
		t.Fatalf("%q is signed in", in.who())
	}
	// A ceremony can be used once.
	again := w.browser()
	again.script("/signin/passkey/begin", "{}")
	kept := again.flows()
	want(t, "once", again.script("/signin/passkey/finish", `{"response":"bobs"}`), http.StatusOK)
	again = w.browser()
	again.cookies = kept
	want(t, "twice", again.script("/signin/passkey/finish", `{"response":"bobs"}`), http.StatusBadRequest)

	for name, try := range map[string]func(b *browser) answer{
		"one that is not known": func(b *browser) answer { return b.script("/signin/passkey/finish", `{"response":"else"}`) },
		"as a form":             func(b *browser) answer { return b.send("/signin/passkey/finish", url.Values{"response": {"bobs"}}) },
		"no JSON":               func(b *browser) answer { return b.script("/signin/passkey/finish", `{`) },
	} {
		b := w.browser()
		b.script("/signin/passkey/begin", "{}")
		if a := try(b); a.StatusCode != http.StatusUnauthorized && a.StatusCode != http.StatusBadRequest || b.signedIn() {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	// Attack: a ceremony that one person began ends in another's session.
	b.script("/account/passkeys/begin", "{}")
	eve := w.as(w.eve)
	maps.Copy(eve.cookies, b.flows())
	want(t, "another's ceremony", eve.script("/account/passkeys/finish", `{"response":"eves"}`), http.StatusBadRequest)
	want(t, "which goes on where it began", b.script("/account/passkeys/finish", `{"response":"tablet","name":"Tablet"}`), http.StatusOK)
	// Attack: a ceremony for a sign-in ends as one that adds a passkey.
	other := w.browser()
	other.script("/signin/passkey/begin", "{}")
	b.script("/account/passkeys/begin", "{}")
	b.plant(other.onlyFlow())
	want(t, "another ceremony", b.script("/account/passkeys/finish", `{"response":"x"}`), http.StatusBadRequest)
}
