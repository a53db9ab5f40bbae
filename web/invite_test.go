package web_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/pages"
)

// invitation creates an invitation to ada's space.
func (w *world) invitation(role space.Role) string {
	w.t.Helper()
	s, _, err := w.CreateInvitation(w.t.Context(), cli, store.NewInvitation{By: w.ada.ID, Space: w.space.ID, Role: role, Note: "<i>Grace</i>", Lifetime: time.Hour})
	must(w.t, err)
	return "/invite/" + s.Reveal()
}

func (w *world) role(u store.User) space.Role {
	w.t.Helper()
	all, err := w.Members(w.t.Context(), w.space.ID)
	must(w.t, err)
	for _, m := range all {
		if m.User == u.ID {
			return m.Role
		}
	}
	return ""
}

func TestNewPersonJoins(t *testing.T) {
	w := newWorld(t)
	path := w.invitation(space.Editor)
	b := w.browser()
	for range 2 {
		a := b.get(path)
		want(t, "to look at it", a, http.StatusOK)
		checkPage(t, "to look at it", a)
		for _, s := range []string{"<strong>ada</strong> invites you", "to read and change it", "&lt;i&gt;Grace", "Join with GitHub"} {
			if !strings.Contains(a.body, s) {
				t.Errorf("the page lacks %q", s)
			}
		}
	}
	for name, problem := range map[string]string{"": "Choose a user name.", "Grace Hopper": "is not a valid name", "eve": "already exists", "<script>": "is not a valid name"} {
		a := b.send(path, url.Values{"name": {name}})
		want(t, name, a, http.StatusBadRequest)
		if !strings.Contains(a.body, problem) || strings.Contains(a.body, "<script>") || !strings.Contains(a.body, `aria-invalid="true"`) {
			t.Errorf("%q: %s", name, a.body)
		}
		checkPage(t, name, a)
	}
	a := b.send(path, url.Values{"name": {"grace"}})
	want(t, "join", a, http.StatusSeeOther)
	if a.location() != issuer+"/welcome?return=%2F%3Fjoined%3D"+string(w.space.ID) || b.who() != "grace" {
		t.Errorf("%q is at %s", b.who(), a.location())
	}
	a = b.get(strings.TrimPrefix(a.location(), issuer))
	checkPage(t, "welcome", a)
	if !strings.Contains(a.body, "You have joined the space") || !strings.Contains(a.body, `href="/?joined=`+string(w.space.ID)+`"`) {
		t.Error("it does not say to which space, or does not lead on to it")
	}
	if !strings.Contains(a.body, "Create a passkey") || !strings.Contains(a.body, "Sign in with GitHub from now on") {
		t.Error("no way to come back is offered")
	}
	u, err := w.FindUser(t.Context(), "grace")
	must(t, err)
	if w.role(u) != space.Editor {
		t.Errorf("grace is %q", w.role(u))
	}
	want(t, "again", w.browser().send(path, url.Values{"name": {"mallory"}}), http.StatusNotFound)
	want(t, "to look at it after", w.browser().get(path), http.StatusNotFound)
}

// A person who is invited while a client waits for their consent continues to the client,
// and never to another site.
func TestNewPersonGoesOn(t *testing.T) {
	w := newWorld(t)
	for to, leads := range map[string]string{request(): request(), "/welcome": "", "//evil.test": ""} {
		b := w.browser()
		b.get("/signin?return=" + url.QueryEscape(to)) // which is where an authorization request leads
		if to == request() {
			a := b.send(w.invitation(space.Reader), url.Values{"name": {"on-the-way"}})
			want(t, "join", a, http.StatusSeeOther)
			to = a.location()
		} else {
			b = w.as(w.ada)
			to = "/welcome?return=" + url.QueryEscape(to)
		}
		a := b.get(strings.TrimPrefix(to, issuer))
		want(t, to, a, http.StatusOK)
		if leads != "" && !strings.Contains(html.UnescapeString(a.body), `href="`+leads+`"`) || strings.Contains(a.body, "evil.test") {
			t.Errorf("%s: %s", to, a.body)
		}
	}
}

func TestSignedInPersonJoins(t *testing.T) {
	w := newWorld(t)
	path := w.invitation(space.Reader)
	b := w.as(w.eve)
	a := b.get(path)
	if !strings.Contains(a.body, "Accept as eve") || !strings.Contains(a.body, "Use another account") || strings.Contains(a.body, `name="name"`) {
		t.Errorf("the page: %s", a.body)
	}
	a = b.send(path, nil)
	want(t, "accept", a, http.StatusSeeOther)
	if a.location() != issuer+"/?joined="+string(w.space.ID) || w.role(w.eve) != space.Reader {
		t.Errorf("eve is %q, at %s", w.role(w.eve), a.location())
	}
	// A signed-in person cannot begin to join with a provider.
	a = b.send(w.invitation(space.Editor)+"/with/github", url.Values{"name": {"x"}})
	if !strings.HasPrefix(a.location(), issuer+"/invite/") {
		t.Errorf("it leads to %s", a.location())
	}
}

// People cannot accept their own invitations, which would use them up.
func TestOwnInvitation(t *testing.T) {
	w := newWorld(t)
	secret, _, err := w.CreateInvitation(t.Context(), cli, store.NewInvitation{By: w.ada.ID, Note: "for Grace", Lifetime: time.Hour})
	must(t, err)
	fromCommand, _, err := w.CreateInvitation(t.Context(), cli, store.NewInvitation{Space: w.space.ID, Role: space.Reader, Lifetime: time.Hour})
	must(t, err)
	for name, path := range map[string]string{
		"to her space": w.invitation(space.Editor), "to the server": "/invite/" + secret.Reveal(), "to her space, of a command": "/invite/" + fromCommand.Reveal(),
	} {
		b := w.as(w.ada)
		a := b.get(path)
		want(t, name, a, http.StatusOK)
		checkPage(t, name, a)
		if !strings.Contains(a.body, "This is your own invite. Send its link to the person you are inviting.") || strings.Contains(a.body, "Accept as") {
			t.Errorf("%s: the page: %s", name, a.body)
		}
		want(t, name+", sent all the same", b.send(path, nil), http.StatusConflict)
		if a := w.as(w.eve).get(path); !strings.Contains(a.body, "Accept as eve") {
			t.Errorf("%s: it is used up", name)
		}
	}
}

func TestJoinWithProvider(t *testing.T) {
	w := withGitHub(t)
	path := w.invitation(space.Editor)
	b := w.browser()
	want(t, "without a name", b.send(path+"/with/github", nil), http.StatusBadRequest)
	a := b.send(path+"/with/github", url.Values{"name": {"hopper"}})
	want(t, "begin", a, http.StatusOK)
	want(t, "finish", b.get(callback("nobody", stateOf(t, a))), http.StatusSeeOther)
	if b.who() != "hopper" {
		t.Fatalf("%q is signed in", b.who())
	}
	u, err := w.UserByIdentity(t.Context(), hub, "4")
	if err != nil || u.Name != "hopper" || w.role(u) != space.Editor {
		t.Errorf("%+v, %v", u, err)
	}
	// A person who already is a user is asked as that user.
	path = w.invitation(space.Editor)
	b = w.browser()
	a = b.get(callback("ada", stateOf(t, b.send(path+"/with/github", url.Values{"name": {"second"}}))))
	if a.location() != issuer+path || b.who() != "ada" {
		t.Errorf("%q is at %s", b.who(), a.location())
	}
}

// If many people open one link at once, one joins, and the others do not become users.
func TestOneInvitationLetsOneIn(t *testing.T) {
	w := newWorld(t)
	path := w.invitation(space.Editor)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for i := range 10 {
		wg.Go(func() {
			a := w.browser().request("POST", path, "name=n"+string(rune('a'+i)))
			mu.Lock()
			defer mu.Unlock()
			got[a.StatusCode]++
		})
	}
	wg.Wait()
	if got[http.StatusSeeOther] != 1 {
		t.Errorf("answers: %v", got)
	}
	users, err := w.ListUsers(t.Context())
	if err != nil || len(users) != 4 {
		t.Errorf("%d users: %v", len(users), err)
	}
}

// Attack: somebody else uses the invitation in another process after it was checked. The
// person who came too late does not become a user.
func TestInvitationGoneMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		code  string
		users int
	}{"a new person": {"nobody", 3}, "a new person without a provider": {"", 3}} {
		t.Run(name, func(t *testing.T) {
			w := withGitHub(t)
			path := w.invitation(space.Editor)
			w.meanwhile(func() {
				_, err := w.AcceptInvitation(t.Context(), cli, strings.TrimPrefix(path, "/invite/"), w.eve.ID)
				must(t, err)
			})
			b := w.browser()
			var a answer
			if tt.code == "" {
				a = b.send(path, url.Values{"name": {"late"}})
			} else {
				a = b.get(callback(tt.code, stateOf(t, b.send(path+"/with/github", url.Values{"name": {"late"}}))))
			}
			want(t, "join", a, http.StatusNotFound)
			if users, err := w.ListUsers(t.Context()); err != nil || len(users) != tt.users || b.signedIn() {
				t.Errorf("%d users, %v", len(users), err)
			}
		})
	}
}

func TestInvitationFromASpace(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	a := b.send("/spaces/"+string(w.space.ID)+"/invite", url.Values{"role": {"reader"}, "note": {"for Grace"}})
	want(t, "invite", a, http.StatusSeeOther)
	want(t, "to look is to use nothing up", b.request("HEAD", b.once, ""), http.StatusNotFound)
	a = b.get(b.once)
	want(t, "the link", a, http.StatusOK)
	checkPage(t, "invite", a)
	if strings.Contains(a.body, "on this machine only") {
		t.Error("a link with a public address opens everywhere")
	}
	if again := b.get(b.once); again.StatusCode != http.StatusNotFound || strings.Contains(again.body, "satchel_iv_") {
		t.Errorf("it is shown again: %d", again.StatusCode)
	}
	i := strings.Index(a.body, issuer+"/invite/satchel_iv_")
	if i < 0 {
		t.Fatalf("no link: %s", a.body)
	}
	link, _, _ := strings.Cut(a.body[i+len(issuer):], `"`)
	if body := b.get("/spaces/" + string(w.space.ID) + "/members").body; !strings.Contains(body, "for Grace") || strings.Contains(body, link) {
		t.Error("it is not listed, or with its secret")
	}
	want(t, "join", w.as(w.eve).send(link, nil), http.StatusSeeOther)
	if w.role(w.eve) != space.Reader {
		t.Errorf("eve is %q", w.role(w.eve))
	}
}

// Losing access ends everything at once, including requests in progress.
func TestLosingARightEnds(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	in := "/spaces/" + string(w.space.ID) + "/members/" + string(w.bob.ID)
	b.send(in+"/role", url.Values{"role": {"editor"}})
	if w.role(w.bob) != space.Editor || !slices.Equal(w.ended, []string{"member editor"}) {
		t.Errorf("bob is %q, ended %q", w.role(w.bob), w.ended)
	}
	b.send(in+"/role", url.Values{"role": {"reader"}})
	b.send(in+"/remove", nil)
	if w.role(w.bob) != "" || !slices.Equal(w.ended[1:], []string{"member reader", "member "}) {
		t.Errorf("bob is %q, ended %q", w.role(w.bob), w.ended)
	}
	g, _, err := w.CreateKey(t.Context(), cli, store.NewKey{User: w.ada.ID, Space: w.space.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "k"})
	must(t, err)
	b.send("/account/grants/revoke", url.Values{"id": {string(g.ID)}})
	if !slices.Equal(w.ended[3:], []string{"grant"}) {
		t.Errorf("after a key was revoked: %q", w.ended)
	}
	his := w.as(w.bob)
	b.send("/admin/people/"+string(w.bob.ID)+"/remove", nil)
	if his.signedIn() || !slices.Equal(w.ended[4:], []string{"person"}) {
		t.Errorf("removed bob is signed in: %v, ended %q", his.signedIn(), w.ended)
	}
}

// The secret of a key is on one page, once, and is not cached.
func TestKeyIsShownOnce(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.bob)
	a := b.send("/account/keys", url.Values{"space": {string(w.space.ID)}, "name": {"script <x>"}, "days": {"30"}, "write": {"1"}})
	want(t, "make", a, http.StatusSeeOther)
	a = b.get(strings.TrimPrefix(a.location(), issuer))
	want(t, "show", a, http.StatusOK)
	checkPage(t, "make", a)
	i := strings.Index(a.body, `value="satchel_`)
	if i < 0 {
		t.Fatal("the key is not shown")
	}
	secret, _, _ := strings.Cut(a.body[i+len(`value="`):], `"`)
	p, err := w.Verify(t.Context(), secret)
	if err != nil || p.User != w.bob.ID || p.Space != w.space.ID || len(p.Scopes) != 1 {
		t.Errorf("the key is worth %+v, %v", p, err)
	}
	w.pass(29 * 24 * time.Hour)
	if _, err := w.Verify(t.Context(), secret); err != nil {
		t.Errorf("within its time: %v", err)
	}
	if body := w.as(w.bob).get("/account/keys").body; strings.Contains(body, secret) || !strings.Contains(body, "script &lt;x&gt;") {
		t.Error("the list shows the secret, or not the key")
	}
	w.pass(2 * 24 * time.Hour)
	if body := w.as(w.bob).get("/account/keys").body; strings.Contains(body, "script &lt;x&gt;") {
		t.Error("the list shows a key that is over")
	}
}

func TestNewNeedsAnOrigin(t *testing.T) {
	w := newWorld(t)
	for _, bad := range []string{"", "satchel.test", "ftp://satchel.test", "https://satchel.test/path", "https://u@satchel.test", "https://satchel.test?x", "https://"} {
		if s, err := pages.New(web.Options{Issuer: bad, Accounts: w.Store, Service: w.made.Service, App: w.made.App}); err == nil {
			s.Close()
			t.Errorf("%q is taken", bad)
		}
	}
	for name, without := range map[string]func(*web.Options){
		"Accounts": func(o *web.Options) { o.Accounts = nil }, "Service": func(o *web.Options) { o.Service = nil }, "App": func(o *web.Options) { o.App = nil },
	} {
		o := w.made
		without(&o)
		if _, err := pages.New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
