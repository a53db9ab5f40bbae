package apptest

import (
	"crypto/rsa"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// account is a person or an organisation.
type account struct {
	id        int64
	login     string
	name      string
	org       bool
	suspended bool
	// members of an organisation, by id: "admin" (an owner) or "member"; and what
	// every member may do with its repositories: none, read, write or admin.
	members map[int64]string
	base    string
	created time.Time
}

// repository is one with its git directory, which stays where it is whatever the
// repository is called.
type repository struct {
	id            int64
	owner         *account
	name          string
	description   string
	private       bool
	collaborators map[int64]string // read, triage, write, maintain or admin
	created       time.Time
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

// app is a GitHub App.
type app struct {
	id           int64
	slug         string
	name         string
	owner        *account
	clientID     string
	clientSecret string
	hookSecret   string
	key          *rsa.PrivateKey
	manifest     manifest
	created      time.Time
	authorized   map[int64]bool // people who authorised it
}

// installation is an app's on an account.
type installation struct {
	id          int64
	app         *app
	account     *account
	all         bool
	repos       map[int64]bool
	suspendedBy *account
	suspendedAt time.Time
	permissions map[string]string
	created     time.Time
}

// pending is a member's request to install an app on an organisation.
type pending struct {
	id        int64
	app       *app
	account   *account
	requester *account
}

// code is an authorization code, or one of a manifest, for one use.
type code struct {
	app                 *app
	person              *account
	redirect, challenge string
	expires             time.Time
}

// token is what reaches the API: a person's, or an installation's.
type token struct {
	app          *app
	person       *account
	installation *installation
	permissions  map[string]string
	repos        []int64 // nil: all of the installation
	expires      time.Time
}

type world struct {
	next          int64
	accounts      map[int64]*account
	repos         map[int64]*repository
	apps          map[int64]*app
	installations map[int64]*installation
	pending       []*pending
	manifests     map[string]draft
	manifestCodes map[string]code
	codes         map[string]code
	tokens        map[string]*token
	sessions      map[string]int64
	deliveries    []Delivery
	revoked       int
	issued        []string               // every token that was ever given out
	moved         map[string]*repository // by the names that they had
}

type draft struct {
	manifest string
	state    string
	org      string
}

func newWorld() world {
	return world{
		next: 1000, accounts: map[int64]*account{}, repos: map[int64]*repository{}, apps: map[int64]*app{},
		installations: map[int64]*installation{}, manifests: map[string]draft{}, manifestCodes: map[string]code{},
		codes: map[string]code{}, tokens: map[string]*token{}, sessions: map[string]int64{}, moved: map[string]*repository{},
	}
}

func (w *world) id() int64 { w.next += 7; return w.next }

func (w *world) account(login string) *account {
	for _, a := range w.accounts {
		if strings.EqualFold(a.login, login) {
			return a
		}
	}
	return nil
}

func (w *world) repo(fullName string) *repository {
	for _, r := range w.repos {
		if strings.EqualFold(r.fullName(), fullName) {
			return r
		}
	}
	return nil
}

func (w *world) app(slug string) *app {
	for _, a := range w.apps {
		if a.slug == slug {
			return a
		}
	}
	return nil
}

func (w *world) client(id string) *app {
	for _, a := range w.apps {
		if a.clientID == id {
			return a
		}
	}
	return nil
}

func (w *world) installed(a *app, on *account) *installation {
	for _, i := range w.installations {
		if i.app == a && i.account == on {
			return i
		}
	}
	return nil
}

// must finds what a test names.
func must[T any](v *T, what string) *T {
	if v == nil {
		panic(fmt.Sprintf("apptest: there is no %s", what))
	}
	return v
}

// ranks are the permissions, from least to most.
var ranks = [...]string{"none", "read", "triage", "write", "maintain", "admin"}

func rank(permission string) int { return max(0, slices.Index(ranks[:], permission)) }

// permission is what a person may do with a repository.
func (w *world) permission(p *account, r *repository) string {
	best := "none"
	if !r.private {
		best = "read"
	}
	raise := func(to string) {
		if rank(to) > rank(best) {
			best = to
		}
	}
	if r.owner == p {
		raise("admin")
	}
	switch r.owner.members[p.id] {
	case "admin":
		raise("admin")
	case "member":
		raise(r.owner.base)
	}
	raise(r.collaborators[p.id])
	return best
}

// repositories are those that an installation reaches, by id.
func (w *world) repositories(i *installation) []*repository {
	var all []*repository
	for _, id := range slices.Sorted(maps.Keys(w.repos)) {
		if r := w.repos[id]; r.owner == i.account && (i.all || i.repos[id]) {
			all = append(all, r)
		}
	}
	return all
}

// sees tells whether a person finds the installation among theirs: it is on their
// account, on an organisation of theirs in whatever role, or reaches a repository
// on which they collaborate.
func (w *world) sees(p *account, i *installation) bool {
	return i.account == p || i.account.members[p.id] != "" ||
		slices.ContainsFunc(w.repositories(i), func(r *repository) bool { return r.collaborators[p.id] != "" })
}

// owns tells whether a person may install and configure apps on an account.
func owns(p, on *account) bool { return p == on || on.members[p.id] == "admin" }
