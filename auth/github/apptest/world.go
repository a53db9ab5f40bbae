package apptest

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// account is a person or an organization.
type account struct {
	id      int64
	login   string
	org     bool
	members map[int64]string // roles in an organization: "admin" (an owner) or "member"
	base    string           // every member's permission for the organization's repositories
}

// repository keeps its git directory when its name changes.
type repository struct {
	id                int64
	owner             *account
	name, description string
	private           bool
	collaborators     map[int64]string // their permissions: read, triage, write, maintain or admin
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

type app struct {
	id                                 int64
	slug                               string
	owner                              *account
	clientID, clientSecret, hookSecret string
	key                                *rsa.PrivateKey
	manifest                           manifest
	authorized                         map[int64]bool // the people who authorized it
}

type installation struct {
	id          int64
	app         *app
	account     *account
	all         bool
	repos       map[int64]bool
	suspended   time.Time // zero if it is not suspended
	permissions map[string]string
}

// pending is a member's request to install an app on an organization.
type pending struct {
	id                 int64
	app                *app
	account, requester *account
}

// code is an authorization code or a code of a manifest, for one use.
type code struct {
	app                 *app
	person              *account
	redirect, challenge string
	expires             time.Time
}

// token is the token of a person or of an installation.
type token struct {
	app          *app
	person       *account
	installation *installation
	permissions  map[string]string
	repos        []int64 // IDs of repositories; nil means all of the installation
	expires      time.Time
}

func (t *token) allows(permission, level string) bool {
	return rank(t.permissions[permission]) >= rank(level)
}

type world struct {
	next                 int64
	accounts             map[int64]*account
	repos                map[int64]*repository
	apps                 map[int64]*app
	installations        map[int64]*installation
	pending              []*pending
	drafts               map[string]draft
	manifestCodes, codes map[string]code
	tokens               map[string]*token
	sessions             map[string]int64
	deliveries           []Delivery
	revoked              int
	issued               []string               // every token that the server returned
	moved                map[string]*repository // repositories by their old names
}

// draft is a manifest for which the owner has not pressed Create yet.
type draft struct{ manifest, state, org string }

func newWorld() world {
	return world{
		next: 1000, accounts: map[int64]*account{}, repos: map[int64]*repository{}, apps: map[int64]*app{},
		installations: map[int64]*installation{}, drafts: map[string]draft{}, manifestCodes: map[string]code{},
		codes: map[string]code{}, tokens: map[string]*token{}, sessions: map[string]int64{}, moved: map[string]*repository{},
	}
}

func (w *world) id() int64 { w.next += 7; return w.next }

func find[T any](all map[int64]*T, is func(*T) bool) *T {
	for _, v := range all {
		if is(v) {
			return v
		}
	}
	return nil
}

// sorted returns the values, sorted by id.
func sorted[T any](all map[int64]*T) (list []*T) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[id])
	}
	return list
}

func (w *world) account(login string) *account {
	return find(w.accounts, func(a *account) bool { return strings.EqualFold(a.login, login) })
}

func (w *world) repo(fullName string) *repository {
	return find(w.repos, func(r *repository) bool { return strings.EqualFold(r.fullName(), fullName) })
}

func (w *world) app(slug string) *app {
	return find(w.apps, func(a *app) bool { return a.slug == slug })
}

func (w *world) client(id string) *app {
	return find(w.apps, func(a *app) bool { return a.clientID == id })
}

func (w *world) installed(a *app, on *account) *installation {
	return find(w.installations, func(i *installation) bool { return i.app == a && i.account == on })
}

// must returns v. If v is nil, it panics with a message that names what.
func must[T any](v *T, what any) *T {
	if v == nil {
		panic(fmt.Sprintf("apptest: there is no %v", what))
	}
	return v
}

// secrets returns the tokens that the server returned, and the secrets of its apps. Tests search
// for them to find leaks.
func (w *world) secrets() []string {
	all := slices.Clone(w.issued)
	for _, a := range w.apps {
		all = append(all, a.clientSecret, strings.Split(a.pem(), "\n")[1])
		if a.hookSecret != "" {
			all = append(all, a.hookSecret)
		}
	}
	return all
}

// rank orders permissions from least to most.
func rank(permission string) int {
	return max(0, slices.Index([]string{"none", "read", "triage", "write", "maintain", "admin"}, permission))
}

// permission returns a person's permission for a repository.
func (w *world) permission(p *account, r *repository) string {
	all := []string{"none", r.collaborators[p.id]}
	if !r.private {
		all = append(all, "read")
	}
	if owns(p, r.owner) {
		all = append(all, "admin")
	} else if r.owner.members[p.id] == "member" {
		all = append(all, r.owner.base)
	}
	return slices.MaxFunc(all, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}

// repositories returns the repositories of an installation, sorted by id.
func (w *world) repositories(i *installation) []*repository {
	return slices.DeleteFunc(sorted(w.repos), func(r *repository) bool { return r.owner != i.account || !i.all && !i.repos[r.id] })
}

// reaches reports whether a token gives access to a repository. For a person's token, both
// the person and an installation must have access.
func (w *world) reaches(t *token, r *repository) bool {
	if t.person == nil {
		return slices.Contains(w.repositories(t.installation), r) && (t.repos == nil || slices.Contains(t.repos, r.id))
	}
	return w.permission(t.person, r) != "none" && find(w.installations, func(i *installation) bool {
		return i.app == t.app && i.suspended.IsZero() && slices.Contains(w.repositories(i), r)
	}) != nil
}

// sees reports whether GitHub lists the installation to a person. It does so if the
// installation is on the person's account or on an organization of which they are a member,
// or if it includes a repository of which they are a collaborator.
func (w *world) sees(p *account, i *installation) bool {
	return i.account == p || i.account.members[p.id] != "" ||
		slices.ContainsFunc(w.repositories(i), func(r *repository) bool { return r.collaborators[p.id] != "" })
}

// owns reports whether a person may install and configure apps on an account.
func owns(p, on *account) bool { return p == on || on.members[p.id] == "admin" }

// AddPerson creates a person, and returns their id.
func (s *Server) AddPerson(login string) int64 {
	return read(s, func(w *world) int64 {
		a := &account{id: w.id(), login: login}
		w.accounts[a.id] = a
		return a.id
	})
}

// ID returns the id of a person or an organization.
func (s *Server) ID(login string) int64 {
	return read(s, func(w *world) int64 { return must(w.account(login), login).id })
}

// AddOrg creates an organization, and returns its id. members maps logins to the role "admin"
// (an owner) or "member". base is the members' permission for the organization's repositories.
func (s *Server) AddOrg(login, base string, members map[string]string) int64 {
	return read(s, func(w *world) int64 {
		o := &account{id: w.id(), login: login, org: true, base: base, members: map[int64]string{}}
		w.accounts[o.id] = o
		for m, role := range members {
			o.members[must(w.account(m), m).id] = role
		}
		return o.id
	})
}

// set sets a role, or deletes the entry if the role is empty.
func set(roles map[int64]string, id int64, role string) {
	roles[id] = role
	if role == "" {
		delete(roles, id)
	}
}

// SetRole sets a person's role in an organization. "" ends the membership.
func (s *Server) SetRole(org, login, role string) {
	s.with(func(w *world) { set(must(w.account(org), org).members, must(w.account(login), login).id, role) })
}

// SetPermission sets a collaborator's permission for a repository. "" removes the collaborator.
func (s *Server) SetPermission(repo, login, permission string) {
	s.with(func(w *world) {
		set(must(w.repo(repo), repo).collaborators, must(w.account(login), login).id, permission)
	})
}

// Repository describes a repository for AddRepository.
type Repository struct {
	Owner, Name   string
	Private       bool
	Collaborators map[string]string // permissions by login
}

// AddRepository creates a repository with README.md on main, and returns its id.
func (s *Server) AddRepository(r Repository) (id int64) {
	s.with(func(w *world) {
		made := s.makeRepository(w, must(w.account(r.Owner), r.Owner), r.Name, "", r.Private)
		for login, permission := range r.Collaborators {
			made.collaborators[must(w.account(login), login).id] = permission
		}
		id = made.id
	})
	s.Push(r.Owner+"/"+r.Name, map[string]string{"README.md": "# " + r.Name + "\n"})
	return id
}

func (s *Server) makeRepository(w *world, owner *account, name, description string, private bool) *repository {
	r := &repository{id: w.id(), owner: owner, name: name, description: description, private: private, collaborators: map[int64]string{}}
	w.repos[r.id] = r
	if err := initRepository(s.gitDir(r)); err != nil {
		panic(err)
	}
	return r
}

func (s *Server) gitDir(r *repository) string {
	return filepath.Join(s.dir, fmt.Sprintf("%d.git", r.id))
}

// RenameRepository changes the name of a repository.
func (s *Server) RenameRepository(repo, name string) {
	s.with(func(w *world) {
		r := must(w.repo(repo), repo)
		w.moved[strings.ToLower(r.fullName())] = r
		changes := object{"repository": object{"name": object{"from": r.name}}}
		r.name = name
		s.toApps(w, "repository", r, object{"action": "renamed", "changes": changes})
	})
}

// TransferRepository transfers a repository to another account. Installations on the old
// account lose it.
func (s *Server) TransferRepository(repo, to string) {
	s.with(func(w *world) {
		r, o := must(w.repo(repo), repo), must(w.account(to), to)
		for _, i := range w.installations {
			delete(i.repos, r.id)
		}
		w.moved[strings.ToLower(r.fullName())] = r
		r.owner = o
		s.toApps(w, "repository", r, object{"action": "transferred"})
	})
}

// DeleteRepository deletes a repository.
func (s *Server) DeleteRepository(repo string) {
	s.with(func(w *world) {
		r := must(w.repo(repo), repo)
		s.toApps(w, "repository", r, object{"action": "deleted"})
		delete(w.repos, r.id)
		maps.DeleteFunc(w.moved, func(_ string, m *repository) bool { return m == r })
		os.RemoveAll(s.gitDir(r))
	})
}

// RenameAccount changes the login of a person or an organization.
func (s *Server) RenameAccount(login, to string) {
	s.with(func(w *world) { must(w.account(login), login).login = to })
}

// DeletePerson deletes a person's account. The login is free again.
func (s *Server) DeletePerson(login string) {
	s.with(func(w *world) {
		p := must(w.account(login), login)
		delete(w.accounts, p.id)
		for _, a := range w.accounts {
			delete(a.members, p.id)
		}
		for _, r := range w.repos {
			delete(r.collaborators, p.id)
		}
		w.endTokens(func(t *token) bool { return t.person == p })
	})
}

func (w *world) endTokens(which func(*token) bool) {
	maps.DeleteFunc(w.tokens, func(_ string, t *token) bool { return which(t) })
}

// Installing describes an installation for Install.
type Installing struct {
	App, Account, By string
	Repositories     []string // owner/name; nil for all
}

// Install installs an app without a browser, and returns the installation's id.
func (s *Server) Install(in Installing) int64 {
	return read(s, func(w *world) int64 {
		i, err := s.install(w, must(w.app(in.App), in.App), must(w.account(in.Account), in.Account), must(w.account(in.By), in.By),
			in.Repositories == nil, w.ids(in.Repositories))
		if err != nil {
			panic(err)
		}
		return i.id
	})
}

func (w *world) ids(repositories []string) (ids []int64) {
	for _, name := range repositories {
		ids = append(ids, must(w.repo(name), name).id)
	}
	return ids
}

func (s *Server) install(w *world, a *app, on, by *account, all bool, repos []int64) (*installation, error) {
	if w.installed(a, on) != nil || !owns(by, on) {
		return nil, fmt.Errorf("apptest: %s may not install %s on %s now", by.login, a.slug, on.login)
	}
	i := &installation{id: w.id(), app: a, account: on, all: all, repos: map[int64]bool{}, permissions: maps.Clone(a.manifest.Permissions)}
	for _, id := range repos {
		if r := w.repos[id]; r == nil || r.owner != on {
			return nil, fmt.Errorf("apptest: no repository %d of %s", id, on.login)
		}
		i.repos[id] = true
	}
	w.installations[i.id] = i
	w.pending = slices.DeleteFunc(w.pending, func(p *pending) bool { return p.app == a && p.account == on })
	s.installationEvent(w, "created", i)
	return i, nil
}

// installation runs f with the installation that a test names.
func (s *Server) installation(id int64, f func(w *world, i *installation)) {
	s.with(func(w *world) { f(w, must(w.installations[id], "installation")) })
}

// Choose changes the repositories of an installation. It chooses all if none are given.
func (s *Server) Choose(id int64, repositories ...string) {
	s.installation(id, func(w *world, i *installation) { s.choose(w, i, len(repositories) == 0, w.ids(repositories)) })
}

func (s *Server) choose(w *world, i *installation, all bool, repos []int64) {
	before := w.repositories(i)
	i.all, i.repos = all, map[int64]bool{}
	for _, id := range repos {
		i.repos[id] = true
	}
	now := w.repositories(i)
	without := func(a, b []*repository) []*repository {
		return slices.DeleteFunc(slices.Clone(a), func(r *repository) bool { return slices.Contains(b, r) })
	}
	s.repositoriesEvent(w, "removed", i, without(before, now))
	s.repositoriesEvent(w, "added", i, without(now, before))
}

// Suspend suspends an installation.
func (s *Server) Suspend(installation int64) { s.installation(installation, s.suspend) }

func (s *Server) suspend(w *world, i *installation) {
	i.suspended = s.now()
	s.installationEvent(w, "suspend", i)
}

// Unsuspend ends a suspension.
func (s *Server) Unsuspend(installation int64) { s.installation(installation, s.unsuspend) }

func (s *Server) unsuspend(w *world, i *installation) {
	i.suspended = time.Time{}
	s.installationEvent(w, "unsuspend", i)
}

// Uninstall deletes an installation and its tokens.
func (s *Server) Uninstall(installation int64) { s.installation(installation, s.uninstall) }

func (s *Server) uninstall(w *world, i *installation) {
	delete(w.installations, i.id)
	w.endTokens(func(t *token) bool { return t.installation == i })
	s.installationEvent(w, "deleted", i)
}

// DeleteApp deletes an app and its installations.
func (s *Server) DeleteApp(slug string) {
	s.with(func(w *world) {
		a := must(w.app(slug), slug)
		for _, i := range w.installations {
			if i.app == a {
				s.uninstall(w, i)
			}
		}
		delete(w.apps, a.id)
	})
}

// Deauthorize ends a person's authorization of an app, and their tokens.
func (s *Server) Deauthorize(slug, login string) {
	s.with(func(w *world) {
		a, p := must(w.app(slug), slug), must(w.account(login), login)
		delete(a.authorized, p.id)
		w.endTokens(func(t *token) bool { return t.app == a && t.person == p })
		s.send(w, a, "github_app_authorization", object{"action": "revoked", "sender": s.simpleUser(p)})
	})
}

// Tokens returns the counts of valid tokens of people and of installations.
func (s *Server) Tokens() (people, installations int) {
	s.with(func(w *world) {
		for _, t := range w.tokens {
			switch {
			case !t.expires.After(s.now()):
			case t.person != nil:
				people++
			default:
				installations++
			}
		}
	})
	return people, installations
}

// Revoked returns how many tokens of people were revoked by apps.
func (s *Server) Revoked() int { return read(s, func(w *world) int { return w.revoked }) }

type manifest struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Hook struct {
		URL    string `json:"url"`
		Active *bool  `json:"active"`
	} `json:"hook_attributes"`
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

// parseManifest parses a manifest. It refuses what GitHub's page refuses.
func parseManifest(text string) (m manifest, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	addresses := append([]string{m.URL}, m.Callbacks...)
	for _, optional := range []string{m.Redirect, m.Setup, m.Hook.URL} {
		if optional != "" {
			addresses = append(addresses, optional)
		}
	}
	for _, a := range addresses {
		if u, err := url.Parse(a); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return m, fmt.Errorf("%q must be a valid URL", a)
		}
	}
	highest := map[string]string{"contents": "write", "metadata": "read", "administration": "write", "workflows": "write", "emails": "read"}
	for name, level := range m.Permissions {
		if level != "read" && level != "write" || rank(level) > rank(highest[name]) {
			return m, fmt.Errorf("default permission %s: %s is not valid", name, level)
		}
	}
	for _, e := range m.Events {
		if !slices.Contains([]string{"push", "repository"}, e) {
			return m, fmt.Errorf("unsupported event %s", e)
		}
	}
	switch {
	case len(m.Callbacks) > 10:
		return m, fmt.Errorf("there are more than 10 callback URLs")
	case m.OnInstall:
		return m, fmt.Errorf("setup URL is unavailable when requesting OAuth during installation")
	case len(m.Name) > 34:
		return m, fmt.Errorf("name is too long")
	}
	return m, nil
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

func slugOf(name string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

func makeApp(w *world, owner *account, m manifest) *app {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	if m.Permissions == nil {
		m.Permissions = map[string]string{}
	}
	m.Permissions["metadata"] = "read"
	if m.Events == nil {
		m.Events = []string{}
	}
	secret := func() string { return strings.ToLower(fresh("") + fresh(""))[:40] }
	a := &app{
		id: w.id(), slug: slugOf(m.Name), owner: owner, clientID: "Iv23li" + fresh("")[:14], clientSecret: secret(),
		key: key, manifest: m, authorized: map[int64]bool{},
	}
	if m.Hook.URL != "" {
		a.hookSecret = secret()
	}
	w.apps[a.id] = a
	return a
}

func (a *app) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.key)}))
}

// App is an app with its secrets.
type App struct {
	ID                                int64
	ClientID, Slug, Name, Owner       string
	HTMLURL                           string
	ClientSecret, PrivateKey, Webhook string
}

// AddApp creates an app from a manifest, without a browser.
func (s *Server) AddApp(owner string, manifestJSON []byte) App {
	m, err := parseManifest(string(manifestJSON))
	if err != nil {
		panic(err)
	}
	return read(s, func(w *world) App { return s.describe(makeApp(w, must(w.account(owner), owner), m)) })
}

// App returns an app by its slug.
func (s *Server) App(slug string) App {
	return read(s, func(w *world) App { return s.describe(must(w.app(slug), slug)) })
}

func (s *Server) describe(a *app) App {
	return App{
		ID: a.id, ClientID: a.clientID, Slug: a.slug, Name: a.manifest.Name, Owner: a.owner.login, HTMLURL: s.appURL(a),
		ClientSecret: a.clientSecret, PrivateKey: a.pem(), Webhook: a.hookSecret,
	}
}
