package apptest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// manifest is what an app is made from.
type manifest struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	Hook        hook              `json:"hook_attributes"`
	Redirect    string            `json:"redirect_url"`
	Callbacks   []string          `json:"callback_urls"`
	Setup       string            `json:"setup_url"`
	Description string            `json:"description"`
	Public      bool              `json:"public"`
	Events      []string          `json:"default_events"`
	Permissions map[string]string `json:"default_permissions"`
	OnInstall   bool              `json:"request_oauth_on_install"`
	OnUpdate    bool              `json:"setup_on_update"`
}

type hook struct {
	URL    string `json:"url"`
	Active *bool  `json:"active"`
}

func (m manifest) events() []string {
	if m.Events == nil {
		return []string{}
	}
	return m.Events
}

// manifestLife is how long the code of a manifest is good.
const manifestLife = time.Hour

// permissionNames are those that an app may ask for here, with the highest level.
var permissionNames = map[string]string{
	"contents": "write", "metadata": "read", "administration": "write", "workflows": "write", "emails": "read", "members": "read",
	"pull_requests": "write", "issues": "write",
}

var events = []string{"push", "repository", "installation_target", "member", "public", "create", "delete"}

// parseManifest says what is wrong with a manifest, as GitHub's page does.
func (s *Server) parseManifest(text string) (m manifest, problems []string) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, []string{"The manifest could not be read: " + err.Error()}
	}
	web := func(name, value string, required bool) {
		u, err := url.Parse(value)
		if value == "" && !required {
			return
		}
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			problems = append(problems, fmt.Sprintf("%s must be a valid URL", name))
		}
	}
	web("url", m.URL, true)
	web("redirect_url", m.Redirect, false)
	web("setup_url", m.Setup, false)
	web("hook url", m.Hook.URL, m.Hook.Active != nil && *m.Hook.Active)
	if len(m.Callbacks) > 10 {
		problems = append(problems, "There may be up to 10 callback URLs")
	}
	for _, c := range m.Callbacks {
		web("callback_urls", c, true)
	}
	if m.OnInstall {
		problems = append(problems, "Setup URL is unavailable when requesting OAuth during installation")
	}
	if len(m.Name) > 34 {
		problems = append(problems, "Name is too long (maximum is 34 characters)")
	}
	for name, level := range m.Permissions {
		if top, ok := permissionNames[name]; !ok || level != "read" && level != "write" || rank(level) > rank(top) {
			problems = append(problems, fmt.Sprintf("Default permission %s: %s is not valid", name, level))
		}
	}
	for _, e := range m.Events {
		if !strings.Contains(" "+strings.Join(events, " ")+" ", " "+e+" ") {
			problems = append(problems, fmt.Sprintf("Default events: unsupported event %s", e))
		}
	}
	return m, problems
}

// newApp is the page at which somebody makes an app. A manifest arrives by a form
// of another site, to which no cookie is sent: it is kept, and the browser asked
// to come back for it.
func (s *Server) newApp(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	org := r.PathValue("org")
	q := r.URL.Query()
	if r.Method == http.MethodPost && !q.Has("draft") {
		key := fresh("")
		s.world.manifests[key] = draft{manifest: r.PostForm.Get("manifest"), state: q.Get("state"), org: org}
		http.Redirect(w, r, r.URL.Path+"?draft="+key, http.StatusSeeOther)
		return
	}
	d, found := s.world.manifests[q.Get("draft")]
	if !found || d.org != org {
		s.page(w, r, http.StatusNotFound, "message", "Page not found", "There is no manifest.")
		return
	}
	p := s.visitor(r)
	if p == nil {
		s.toSignIn(w, r)
		return
	}
	owner := p
	if org != "" {
		if owner = s.world.account(org); owner == nil || !owns(p, owner) {
			s.page(w, r, http.StatusNotFound, "message", "Page not found", "You do not own that organization.")
			return
		}
	}
	m, problems := s.parseManifest(d.manifest)
	if len(problems) > 0 {
		s.page(w, r, http.StatusUnprocessableEntity, "message", "Invalid GitHub App configuration", strings.Join(problems, ". "))
		return
	}
	name := m.Name
	if r.Method == http.MethodPost {
		name = strings.TrimSpace(r.PostForm.Get("name"))
	}
	taken := name == "" || s.world.app(slugOf(name)) != nil
	if r.Method == http.MethodGet || taken {
		if taken && name != "" {
			name += "-" + strings.ToLower(fresh("")[:4])
		}
		s.page(w, r, http.StatusOK, "manifest", "Create GitHub App", object{"Name": name, "Owner": owner.login, "Manifest": m, "Action": r.URL.RequestURI()})
		return
	}
	m.Name = name
	delete(s.world.manifests, q.Get("draft"))
	a := s.makeApp(&s.world, owner, m)
	c := fresh("")
	s.world.manifestCodes[c] = code{app: a, expires: s.now().Add(manifestLife)}
	if m.Redirect == "" {
		s.page(w, r, http.StatusOK, "message", "Created", a.slug)
		return
	}
	http.Redirect(w, r, withQuery(m.Redirect, url.Values{"code": {c}, "state": {d.state}}), http.StatusFound)
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

func slugOf(name string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

func (s *Server) makeApp(w *world, owner *account, m manifest) *app {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	if m.Permissions == nil {
		m.Permissions = map[string]string{}
	}
	m.Permissions["metadata"] = "read"
	a := &app{
		id: w.id(), slug: slugOf(m.Name), name: m.Name, owner: owner, clientID: "Iv23li" + fresh("")[:14],
		clientSecret: strings.ToLower(fresh("") + fresh(""))[:40], key: key, manifest: m, created: s.now(), authorized: map[int64]bool{},
	}
	if m.Hook.URL != "" {
		a.hookSecret = strings.ToLower(fresh("") + fresh(""))[:40]
	}
	w.apps[a.id] = a
	return a
}

func (a *app) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.key)}))
}

// convert gives an app that was made from a manifest to whom the code was given.
func (s *Server) convert(c *call) answer {
	key := c.PathValue("code")
	found, known := c.w.manifestCodes[key]
	delete(c.w.manifestCodes, key)
	if !known || !found.expires.After(s.now()) || c.w.apps[found.app.id] == nil {
		return notFound
	}
	v := s.integration(c.w, found.app)
	v["client_secret"], v["pem"], v["webhook_secret"] = found.app.clientSecret, found.app.pem(), nil
	if found.app.hookSecret != "" {
		v["webhook_secret"] = found.app.hookSecret
	}
	return answer{status: http.StatusCreated, body: v}
}

// App is an app with its secrets.
type App struct {
	ID                                int64
	ClientID, Slug, Name, Owner       string
	HTMLURL                           string
	ClientSecret, PrivateKey, Webhook string
}

// AddApp makes an app from a manifest without a browser.
func (s *Server) AddApp(owner string, manifestJSON []byte) (made App) {
	m, problems := s.parseManifest(string(manifestJSON))
	if len(problems) > 0 {
		panic(fmt.Sprintf("apptest: %v", problems))
	}
	s.with(func(w *world) { made = s.describe(s.makeApp(w, must(w.account(owner), owner), m)) })
	return made
}

// App returns an app by its slug.
func (s *Server) App(slug string) (found App) {
	s.with(func(w *world) { found = s.describe(must(w.app(slug), slug)) })
	return found
}

func (s *Server) describe(a *app) App {
	return App{
		ID: a.id, ClientID: a.clientID, Slug: a.slug, Name: a.name, Owner: a.owner.login, HTMLURL: s.appURL(a),
		ClientSecret: a.clientSecret, PrivateKey: a.pem(), Webhook: a.hookSecret,
	}
}
