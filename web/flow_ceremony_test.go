package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
)

const (
	finishIn  = "/signin/passkey/finish"
	finishAdd = "/account/passkeys/finish"
	flowTime  = 10*time.Minute + time.Second // until every ceremony has expired
)

// One tab signs in again while another adds a passkey. Both succeed.
func TestATabSignsInWhileAnotherAddsAPasskey(t *testing.T) {
	w := newWorld(t)
	must(t, w.AddPasskey(t.Context(), cli, store.Passkey{ID: []byte("bobs"), User: w.bob.ID, Name: "phone", Credential: []byte("credential bobs")}))
	b := w.browser()
	b.script("/signin/passkey/begin", "{}")
	in := b.ceremony
	b.cookies["__Host-satchel"] = w.as(w.bob).cookies["__Host-satchel"]
	b.script("/account/passkeys/begin", "{}")
	add, before := b.ceremony, b.cookies["__Host-satchel"]
	b.ceremony = in
	want(t, "sign in", b.script(finishIn, `{"response":"bobs"}`), http.StatusOK)
	if b.cookies["__Host-satchel"] == before {
		t.Error("attack: the session keeps the secret that it had before the sign-in")
	}
	b.ceremony = add
	want(t, "add", b.script(finishAdd, `{"response":"new","name":"new"}`), http.StatusOK)
	if keys, err := w.Passkeys(t.Context(), w.bob.ID); err != nil || len(keys) != 2 {
		t.Errorf("%d passkeys, %v", len(keys), err)
	}
}

// Attack: somebody else signs in in the same browser while a tab waits for a passkey.
// Neither is signed in as the other or gets the other's passkey.
func TestAttackACeremonyAcrossPeople(t *testing.T) {
	w := newWorld(t)
	must(t, w.AddPasskey(t.Context(), cli, store.Passkey{ID: []byte("bobs"), User: w.bob.ID, Name: "phone", Credential: []byte("credential bobs")}))
	b := w.browser()
	b.script("/signin/passkey/begin", "{}")
	b.cookies["__Host-satchel"] = w.as(w.eve).cookies["__Host-satchel"]
	a := b.script(finishIn, `{"response":"bobs"}`)
	want(t, "sign in", a, http.StatusConflict)
	if b.who() != "eve" || !strings.Contains(a.body, "eve signed in here in another tab") {
		t.Errorf("%q is signed in: %s", b.who(), a.body)
	}
	b.script("/account/passkeys/begin", "{}")
	b.cookies["__Host-satchel"] = w.as(w.bob).cookies["__Host-satchel"]
	want(t, "add", b.script(finishAdd, `{"response":"x","name":"x"}`), http.StatusForbidden)
	for _, u := range []store.User{w.bob, w.eve} {
		if keys, err := w.Passkeys(t.Context(), u.ID); err != nil || len(keys) > 1 || u.ID == w.eve.ID && len(keys) > 0 {
			t.Errorf("%s has %+v, %v", u.Name, keys, err)
		}
	}
	b.cookies["__Host-satchel"] = ""
	want(t, "signed out", b.script(finishAdd, `{"response":"x","name":"x"}`), http.StatusUnauthorized)
}

// Attack: a ceremony replaces the form token only if its name comes from a page of the
// server and its secret from this browser.
func TestAttackACeremonyInPlaceOfAToken(t *testing.T) {
	for _, finish := range []string{finishAdd, finishIn} {
		w := newWorld(t)
		must(t, w.AddPasskey(t.Context(), cli, store.Passkey{ID: []byte("bobs"), User: w.bob.ID, Name: "phone", Credential: []byte("credential bobs")}))
		b, other := w.as(w.bob), w.as(w.bob)
		begin := strings.TrimSuffix(finish, "finish") + "begin"
		b.script(begin, "{}")
		own, before := b.ceremony, maps.Clone(b.cookies)
		other.script(begin, "{}")
		post := func(b *browser, ceremony string, change ...func(*http.Request)) answer {
			return b.request("POST", finish, `{"ceremony":`+quote(ceremony)+`,"response":"bobs","name":"n"}`, append(change, func(r *http.Request) {
				r.Header.Set("Content-Type", "application/json")
			})...)
		}
		head := func(k, v string) func(*http.Request) {
			return func(r *http.Request) {
				r.Header.Del("Origin")
				r.Header.Del("Sec-Fetch-Site")
				r.Header.Set(k, v)
			}
		}
		for name, try := range map[string]func() answer{
			"without a name":               func() answer { return post(b, "") },
			"a made-up name":               func() answer { return post(b, "x") },
			"a name of another browser's":  func() answer { return post(b, other.ceremony) },
			"the name in another browser":  func() answer { return post(other, own) },
			"from another site":            func() answer { return post(b, own, head("Sec-Fetch-Site", "cross-site")) },
			"from a sibling of the domain": func() answer { return post(b, own, head("Sec-Fetch-Site", "same-site")) },
			"of another origin":            func() answer { return post(b, own, head("Origin", "https://evil.test")) },
			"as a form of another page": func() answer {
				return b.request("POST", finish, url.Values{"ceremony": {own}, "response": {"bobs"}}.Encode())
			},
		} {
			want(t, finish+" "+name, try(), http.StatusForbidden)
			if !maps.Equal(b.cookies, before) {
				t.Errorf("%s %s changed the cookies", finish, name)
			}
		}
		// Beginning a ceremony still needs the token.
		want(t, "begin without a token", b.request("POST", begin, "{}", func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }), http.StatusForbidden)
		b.w.pass(flowTime)
		want(t, finish+" late", post(b, own), http.StatusForbidden)
	}
}
