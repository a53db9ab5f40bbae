package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/oauth"
	"satchel/auth/passkey"
	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/pages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer   = "https://satchel.test"
	redirect = "https://client.test/callback"
)

var cli = store.Actor{Via: "command line"}

// world is a server with a real service and a real authorization server. Its clock stands
// still until a test moves it.
type world struct {
	*store.Store
	t       *testing.T
	service *servicetest.World
	db      *database.DB
	git     *gitstore.Store
	dir     string // of the spaces
	server  *web.Site
	made    web.Options // of which the server is
	running service.Running
	oauth   *oauth.Server
	github  *fakeProvider
	post    *fakeMail
	origin  *origin
	// screen judges the contents and the messages of commits, if it is set.
	screen func(p space.Path, content []byte) error

	mu    sync.Mutex
	now   time.Time
	ended []string // what lost its right
	limit string   // what is limited

	ada, bob, eve store.User // an admin, a member of ada's space, and neither
	space, evil   store.Space
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func newWorld(t *testing.T, with ...func(*web.Options)) *world {
	t.Helper()
	return newWorldOf(t, servicetest.Setup{}, with...)
}

// newWorldOf is newWorld with other engines.
func newWorldOf(t *testing.T, s servicetest.Setup, with ...func(*web.Options)) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), github: &fakeProvider{label: "GitHub"}, post: &fakeMail{sent: make(chan string, 9)}, origin: &origin{t: t, dir: t.TempDir()}}
	s.Accounts = func(o *store.Options) { o.Flush = time.Hour }
	s.Remotes = func(o *remotes.Options) {
		w.origin.Store, w.origin.client = o.Git.(*gitstore.Store), o.Transport.(*transport.Client)
		o.Git, o.Transport, o.Credentials = w.origin, w.origin, w.origin
	}
	change := s.Git
	s.Git = func(o *gitstore.Options) {
		o.Screen = func(_ context.Context, _ space.SpaceID, p space.Path, content []byte, _ func() ([]byte, error)) error {
			if w.screen == nil {
				return nil
			}
			return w.screen(p, content)
		}
		if change != nil {
			change(o)
		}
	}
	limits := s.Service
	s.Service = func(o *service.Options) {
		o.Allow, o.MembersInvite = auth.AllowList{Domains: []string{"listed.test"}}, true
		if limits != nil {
			limits(o)
		}
	}
	w.service = servicetest.Empty(t, w.clock, s)
	w.Store, w.db, w.git, w.dir = w.service.Accounts, w.service.DB, w.service.Git, w.service.Options.SpacesDir
	var err error
	w.oauth, err = oauth.New(oauth.Options{Issuer: issuer, Resource: issuer + "/mcp", Store: w.Store, Now: w.clock})
	must(t, err)
	t.Cleanup(w.oauth.Close)
	o := web.Options{
		Issuer: issuer, MCPURL: issuer + "/mcp", Accounts: w.Store, OAuth: w.oauth, Service: w.service.Service, GitHub: w.github, Mail: w.post, Passkeys: fakePasskeys{},
		Address: func(*http.Request) string { return "192.0.2.7" }, Now: w.clock, WaitingTime: time.Hour,
		Limit: func(_ *http.Request, what string) (time.Duration, bool) { return 90 * time.Second, what != w.limit },
	}
	for _, f := range with {
		f(&o)
	}
	if o.App == nil {
		o.App, err = app.New(app.Options{Store: w.Store, Public: o.Issuer})
		must(t, err)
		t.Cleanup(o.App.Close)
	}
	w.made = o
	w.server, err = pages.New(o)
	must(t, err)
	t.Cleanup(w.server.Close)
	w.attach(func(r *service.Running) {
		*r = service.Running{
			PagesURL: o.Issuer, LinkMade: w.server.NotifyOfLink,
			UserRemoved:   func(context.Context, space.UserID) { w.ended = append(w.ended, "person") },
			GrantsRevoked: func() { w.ended = append(w.ended, "grant") },
			MemberChanged: func(_ context.Context, _ space.UserID, _ space.SpaceID, role space.Role) {
				w.ended = append(w.ended, "member "+string(role))
			},
		}
	})

	w.ada, w.space = w.user("ada", true)
	w.bob, _ = w.user("bob", false)
	w.eve, w.evil = w.user("eve", false)
	must(t, w.AddMember(t.Context(), cli, w.space.ID, w.bob.ID, space.Reader))
	must(t, w.RegisterClient(t.Context(), auth.Client{ID: "client", Kind: auth.ClientRegistered, Name: "Clara", RedirectURIs: []string{redirect, "http://127.0.0.1/callback", "claraapp://done"}, Created: w.now}))
	return w
}

// attach changes the parts of a running server.
func (w *world) attach(change func(*service.Running)) {
	change(&w.running)
	w.service.Attach(w.running)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) user(name string, admin bool) (store.User, store.Space) {
	w.t.Helper()
	u, sp, err := w.CreateUser(w.t.Context(), cli, store.NewUser{Name: name, Admin: admin, Email: name + "@example.com"})
	must(w.t, err)
	w.begin(sp.ID)
	return u, sp
}

// addPasskey gives a person a passkey.
func (w *world) addPasskey(u store.User) {
	w.t.Helper()
	must(w.t, w.AddPasskey(w.t.Context(), cli, store.Passkey{ID: []byte("key of " + u.Name), User: u.ID, Name: "phone", Credential: []byte("credential of " + u.Name)}))
}

// newSpace creates another space for a user.
func (w *world) newSpace(owner store.User, name string) store.Space {
	w.t.Helper()
	sp, err := w.CreateSpace(w.t.Context(), cli, owner.ID, space.NewSpaceID(), name)
	must(w.t, err)
	w.begin(sp.ID)
	return sp
}

// begin creates the repository of a space, without files.
func (w *world) begin(id space.SpaceID) {
	w.t.Helper()
	_, err := w.git.Create(w.t.Context(), id, space.ChangeSet{}, space.Meta{Author: space.Person{Name: "Satchel", Email: "satchel@localhost"}, Message: "Begin", Tool: "satchel", Time: w.clock().Add(-time.Hour)})
	must(w.t, err)
}

// fakeProvider identifies a person by a code: the identity of that name.
type fakeProvider struct {
	label string
	known map[string]auth.ExternalIdentity
}

func (p *fakeProvider) Label() string { return p.label }

func (p *fakeProvider) Begin(_ context.Context, redirectURI, state string) (string, []byte, error) {
	return "https://provider.test/authorize?" + url.Values{"state": {state}, "redirect_uri": {redirectURI}}.Encode(), []byte("verifier"), nil
}

func (p *fakeProvider) Finish(_ context.Context, redirectURI string, flow []byte, q url.Values) (auth.ExternalIdentity, error) {
	if string(flow) != "verifier" || redirectURI != issuer+"/signin/github/callback" {
		return auth.ExternalIdentity{}, errors.New("another flow")
	}
	c, ok := p.known[q.Get("code")]
	if !ok {
		return auth.ExternalIdentity{}, fault.New(fault.Unauthenticated, "GitHub does not know you.")
	}
	return c, nil
}

type fakeMail struct{ sent chan string }

func (m *fakeMail) Send(_ context.Context, to, subject, text string) error {
	m.sent <- to + "\n" + subject + "\n" + text
	return nil
}

// fakePasskeys accepts a response that is the name of a credential. The real service is
// tested in a browser.
type fakePasskeys struct{}

func (fakePasskeys) BeginRegistration(u passkey.User) ([]byte, []byte, error) {
	return []byte(`{"publicKey":{}}`), append([]byte("add "), u.ID...), nil
}

func (fakePasskeys) FinishRegistration(u passkey.User, flow, response []byte) ([]byte, []byte, error) {
	var id string
	if err := json.Unmarshal(response, &id); err != nil || string(flow) != "add "+string(u.ID) {
		return nil, nil, fault.New(fault.Invalid, "Another ceremony.")
	}
	return []byte(id), []byte("credential " + id), nil
}

func (fakePasskeys) BeginSignIn() ([]byte, []byte, error) {
	return []byte(`{"publicKey":{}}`), []byte("in"), nil
}

func (fakePasskeys) FinishSignIn(flow, response []byte, find func(id, handle []byte) (passkey.User, error)) ([]byte, []byte, error) {
	var id string
	if err := json.Unmarshal(response, &id); err != nil || string(flow) != "in" {
		return nil, nil, fault.New(fault.Invalid, "Another ceremony.")
	}
	u, err := find([]byte(id), nil)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range u.Credentials {
		if string(c) == "credential "+id {
			return []byte(id), c, nil
		}
	}
	return nil, nil, fault.New(fault.Unauthenticated, "Another's passkey.")
}

// browser keeps cookies and sends what a browser sends with forms of the server.
type browser struct {
	w       *world
	cookies map[string]string

	once     string // the address to which an act led last that shows something once
	ceremony string // of passkeys, which was begun last
	// pages are the tokens that the page of each ceremony had when it was begun.
	pages map[string]string
}

func (w *world) browser() *browser {
	return &browser{w: w, cookies: map[string]string{}, pages: map[string]string{}}
}

func isFlow(cookie string) bool {
	return strings.HasPrefix(cookie, "__Host-satchel-flow-") || strings.HasPrefix(cookie, "__Host-satchel-signin-")
}

// flows returns the cookies of the browser's open flows.
func (b *browser) flows() map[string]string {
	out := maps.Clone(b.cookies)
	maps.DeleteFunc(out, func(name, value string) bool { return value == "" || !isFlow(name) })
	return out
}

// forget drops the flows.
func (b *browser) forget() {
	maps.DeleteFunc(b.cookies, func(name, _ string) bool { return isFlow(name) })
}

// plant puts the secret of the only flow of another browser into each flow cookie of this
// one.
func (b *browser) plant(secret string) {
	for name := range b.flows() {
		b.cookies[name] = secret
	}
}

// onlyFlow returns the secret of the browser's only flow.
func (b *browser) onlyFlow() string {
	b.w.t.Helper()
	all := slices.Collect(maps.Values(b.flows()))
	if len(all) != 1 {
		b.w.t.Fatalf("%d flows are open", len(all))
	}
	return all[0]
}

// as returns a browser in which the user is signed in.
func (w *world) as(u store.User) *browser {
	w.t.Helper()
	secret, _, err := w.StartSession(w.t.Context(), store.NewSession{User: u.ID, Method: "link", Agent: "Mozilla/5.0 (X11; Linux) Firefox/140.0", Address: "192.0.2.1"})
	must(w.t, err)
	b := w.browser()
	b.cookies["__Host-satchel"] = secret.Reveal()
	return b
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

func (a answer) location() string { return a.Header.Get("Location") }

func (b *browser) request(method, target, body string, change ...func(*http.Request)) answer {
	b.w.t.Helper()
	r := httptest.NewRequest(method, issuer+target, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", issuer)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for k, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	for _, f := range change {
		f(r)
	}
	rec := httptest.NewRecorder()
	b.w.server.Handler().ServeHTTP(rec, r)
	res := rec.Result()
	for _, c := range res.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	if to, err := res.Location(); err == nil && to.Query().Has("once") {
		b.once = to.RequestURI()
	}
	data, err := io.ReadAll(res.Body)
	must(b.w.t, err)
	return answer{res, string(data)}
}

func (b *browser) get(target string, change ...func(*http.Request)) answer {
	b.w.t.Helper()
	return b.request(http.MethodGet, target, "", change...)
}

// withoutToken returns a page without its form token, which differs in each answer.
func withoutToken(body string) string { return formToken.ReplaceAllString(body, "") }

var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

// token returns the token of the browser's forms; "" if nobody is signed in.
func (b *browser) token() string {
	b.w.t.Helper()
	if m := formToken.FindStringSubmatch(b.get("/nothing").body); m != nil {
		return m[1]
	}
	return ""
}

// send posts a form with the token of the session.
func (b *browser) send(target string, form url.Values, change ...func(*http.Request)) answer {
	b.w.t.Helper()
	all := url.Values{"form": {b.token()}}
	for k, v := range form {
		all[k] = v
	}
	return b.request(http.MethodPost, target, all.Encode(), change...)
}

// script posts JSON like the script, which finishes its ceremony with the token of the
// page that began it.
func (b *browser) script(target, body string) answer {
	b.w.t.Helper()
	token := b.token()
	if old, ok := b.pages[b.ceremony]; ok && strings.HasSuffix(target, "/finish") {
		token = old
	}
	if rest, ok := strings.CutPrefix(body, "{\"response\""); ok && b.ceremony != "" {
		body = `{"ceremony":` + quote(b.ceremony) + `,"response"` + rest
	}
	a := b.request(http.MethodPost, target, body, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Satchel-Form", token)
	})
	var begun struct{ Ceremony string }
	if strings.HasSuffix(target, "/begin") && json.Unmarshal([]byte(a.body), &begun) == nil {
		b.ceremony = begun.Ceremony
		b.pages[b.ceremony] = token
	}
	return a
}

func (b *browser) signedIn() bool { return b.get("/account").StatusCode == http.StatusOK }

// who returns the signed-in user, as the pages show it.
func (b *browser) who() string {
	m := regexp.MustCompile(`Sign out<span class="unseen"> ([^<]*)<`).FindStringSubmatch(b.get("/account").body)
	if m == nil {
		return ""
	}
	return m[1]
}

func want(t *testing.T, what string, a answer, status int) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s: got %d %s, want %d: %s", what, a.StatusCode, a.location(), status, heading(a.body))
	}
}

var h1 = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)

func heading(body string) string {
	if m := h1.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return "no heading"
}

// link creates a one-time sign-in link for a user.
func (w *world) link(u store.User) string {
	w.t.Helper()
	s, err := w.CreateLink(w.t.Context(), cli, u.ID, "link", time.Hour)
	must(w.t, err)
	return "/signin/link/" + s.Reveal()
}

// request returns an authorization request of the client, with changes.
func request(changes ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {"client"}, "redirect_uri": {redirect}, "state": {"s t+/=&"}, "scope": {"read write"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "resource": {issuer + "/mcp"},
	}
	for i := 0; i+1 < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
	}
	return "/oauth/authorize?" + q.Encode()
}

// bare leaves only links to sign in with.
func bare(o *web.Options) { o.GitHub, o.OIDC, o.Passkeys, o.Mail = nil, nil, nil, nil }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// stateOf returns the state with which an answer sends a browser to the provider.
func stateOf(t *testing.T, a answer) string {
	t.Helper()
	location := a.location()
	if location == "" {
		if m := regexp.MustCompile(`href="(https://provider[^"]*)"`).FindStringSubmatch(a.body); m != nil {
			location = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	u, err := url.Parse(location)
	if err != nil || u.Host != "provider.test" {
		t.Fatalf("%d: it does not lead to the provider: %s %s", a.StatusCode, location, heading(a.body))
	}
	return url.QueryEscape(u.Query().Get("state"))
}

func withoutOAuth(o *web.Options) { o.OAuth = nil }

const verifier = "verifier-of-a-length-that-the-rfc-asks-for-0123456789"

// challenge is the challenge for the verifier (RFC 7636 section 4.2).
func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
