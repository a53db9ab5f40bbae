package apptest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// with runs f under the lock.
func (s *Server) with(f func(w *world)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.world)
}

// AddPerson makes a person and returns their id.
func (s *Server) AddPerson(login string) (id int64) {
	s.with(func(w *world) {
		id = w.id()
		w.accounts[id] = &account{id: id, login: login, name: strings.ToUpper(login[:1]) + login[1:], created: s.now()}
	})
	return id
}

// AddOrg makes an organisation with its members by login, "admin" (an owner) or
// "member", whose members may do base with its repositories ("none", "read",
// "write", "admin"), and returns its id.
func (s *Server) AddOrg(login, base string, members map[string]string) (id int64) {
	s.with(func(w *world) {
		id = w.id()
		o := &account{id: id, login: login, org: true, base: base, members: map[int64]string{}, created: s.now()}
		w.accounts[id] = o
		for m, role := range members {
			o.members[must(w.account(m), m).id] = role
		}
	})
	return id
}

// SetRole makes somebody a member of an organisation: "admin", "member", or "" for
// not a member any more.
func (s *Server) SetRole(org, login, role string) {
	s.with(func(w *world) {
		o, p := must(w.account(org), org), must(w.account(login), login)
		if role == "" {
			delete(o.members, p.id)
			return
		}
		o.members[p.id] = role
	})
}

// Repository is one to make.
type Repository struct {
	Owner, Name, Description string
	Private                  bool
	Empty                    bool              // without a first commit
	Collaborators            map[string]string // by login: read, triage, write, maintain or admin
}

// AddRepository makes a repository, with a first commit of README.md on main, and
// returns its id.
func (s *Server) AddRepository(r Repository) int64 {
	var id int64
	s.with(func(w *world) {
		id = s.makeRepository(w, must(w.account(r.Owner), r.Owner), r.Name, r.Description, r.Private).id
		for login, permission := range r.Collaborators {
			w.repos[id].collaborators[must(w.account(login), login).id] = permission
		}
	})
	if !r.Empty {
		s.Push(r.Owner+"/"+r.Name, map[string]string{"README.md": "# " + r.Name + "\n"})
	}
	return id
}

func (s *Server) makeRepository(w *world, owner *account, name, description string, private bool) *repository {
	r := &repository{id: w.id(), owner: owner, name: name, description: description, private: private, collaborators: map[int64]string{}, created: s.now()}
	w.repos[r.id] = r
	if err := initRepository(s.gitDir(r)); err != nil {
		panic(err)
	}
	return r
}

// SetPermission lets somebody do what permission says with a repository, "" for
// not a collaborator any more.
func (s *Server) SetPermission(repo, login, permission string) {
	s.with(func(w *world) {
		r, p := must(w.repo(repo), repo), must(w.account(login), login)
		if permission == "" {
			delete(r.collaborators, p.id)
			return
		}
		r.collaborators[p.id] = permission
	})
}

// RenameRepository gives a repository another name, and its webhook.
func (s *Server) RenameRepository(repo, name string) {
	s.with(func(w *world) {
		r := must(w.repo(repo), repo)
		old := r.name
		w.moved[strings.ToLower(r.fullName())] = r
		r.name = name
		s.repositoryEvent(w, "renamed", r, map[string]any{"changes": map[string]any{"repository": map[string]any{"name": map[string]any{"from": old}}}})
	})
}

// TransferRepository gives a repository to another account. It leaves the
// installations of the old one.
func (s *Server) TransferRepository(repo, to string) {
	s.with(func(w *world) {
		r, o := must(w.repo(repo), repo), must(w.account(to), to)
		for _, i := range w.installations {
			delete(i.repos, r.id)
		}
		w.moved[strings.ToLower(r.fullName())] = r
		r.owner = o
		s.repositoryEvent(w, "transferred", r, nil)
	})
}

// DeleteRepository deletes one.
func (s *Server) DeleteRepository(repo string) {
	s.with(func(w *world) {
		r := must(w.repo(repo), repo)
		s.repositoryEvent(w, "deleted", r, nil)
		delete(w.repos, r.id)
		maps.DeleteFunc(w.moved, func(_ string, m *repository) bool { return m == r })
		for _, i := range w.installations {
			delete(i.repos, r.id)
		}
		os.RemoveAll(s.gitDir(r))
	})
}

// RenameAccount gives a person or an organisation another login.
func (s *Server) RenameAccount(login, to string) {
	s.with(func(w *world) {
		a := must(w.account(login), login)
		a.login = to
		for _, i := range w.installations {
			if i.account == a {
				s.send(w, i.app, "installation_target", map[string]any{
					"action": "renamed", "account": s.simpleUser(a), "installation": map[string]any{"id": i.id, "node_id": nodeID("installation", i.id)},
					"target_type": i.account.kind(), "changes": map[string]any{"login": map[string]any{"from": login}},
				})
			}
		}
	})
}

// DeletePerson deletes somebody's account, with what they may do. Their login is
// free again.
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
		for name, t := range w.tokens {
			if t.person == p {
				delete(w.tokens, name)
			}
		}
	})
}

// Installing is an installation to make without a browser.
type Installing struct {
	App, Account, By string
	Repositories     []string // owner/name; nil for all
}

// Install installs an app and returns the installation's id.
func (s *Server) Install(in Installing) (id int64) {
	s.with(func(w *world) {
		a, on, by := must(w.app(in.App), in.App), must(w.account(in.Account), in.Account), must(w.account(in.By), in.By)
		var repos []int64
		for _, name := range in.Repositories {
			repos = append(repos, must(w.repo(name), name).id)
		}
		i, err := s.install(w, a, on, by, in.Repositories == nil, repos)
		if err != nil {
			panic(err)
		}
		id = i.id
	})
	return id
}

func (s *Server) install(w *world, a *app, on, by *account, all bool, repos []int64) (*installation, error) {
	if w.installed(a, on) != nil {
		return nil, fmt.Errorf("apptest: %s is installed on %s", a.slug, on.login)
	}
	if !owns(by, on) {
		return nil, fmt.Errorf("apptest: %s may not install on %s", by.login, on.login)
	}
	i := &installation{id: w.id(), app: a, account: on, all: all, repos: map[int64]bool{}, permissions: maps.Clone(a.manifest.Permissions), created: s.now()}
	for _, id := range repos {
		if r := w.repos[id]; r == nil || r.owner != on {
			return nil, fmt.Errorf("apptest: no repository %d of %s", id, on.login)
		}
		i.repos[id] = true
	}
	w.installations[i.id] = i
	w.pending = slices.DeleteFunc(w.pending, func(p *pending) bool { return p.app == a && p.account == on })
	s.installationEvent(w, "created", i, by, nil)
	return i, nil
}

// Choose changes which repositories an installation reaches; none for all.
func (s *Server) Choose(installation int64, repositories ...string) {
	s.with(func(w *world) {
		i := must(w.installations[installation], "installation")
		var ids []int64
		for _, name := range repositories {
			ids = append(ids, must(w.repo(name), name).id)
		}
		s.choose(w, i, len(ids) == 0, ids)
	})
}

func (s *Server) choose(w *world, i *installation, all bool, repos []int64) {
	before := w.repositories(i)
	i.all, i.repos = all, map[int64]bool{}
	for _, id := range repos {
		i.repos[id] = true
	}
	now := w.repositories(i)
	without := func(a, b []*repository) (rest []*repository) {
		for _, r := range a {
			if !slices.Contains(b, r) {
				rest = append(rest, r)
			}
		}
		return rest
	}
	if gone := without(before, now); len(gone) > 0 {
		s.repositoriesEvent(w, "removed", i, nil, gone)
	}
	if come := without(now, before); len(come) > 0 {
		s.repositoriesEvent(w, "added", i, come, nil)
	}
}

// Suspend suspends an installation, and Unsuspend ends that.
func (s *Server) Suspend(installation int64) {
	s.with(func(w *world) { s.suspend(w, must(w.installations[installation], "installation"), true) })
}

// Unsuspend ends a suspension.
func (s *Server) Unsuspend(installation int64) {
	s.with(func(w *world) { s.suspend(w, must(w.installations[installation], "installation"), false) })
}

func (s *Server) suspend(w *world, i *installation, yes bool) {
	if !yes {
		i.suspendedBy = nil
		s.installationEvent(w, "unsuspend", i, i.account, nil)
		return
	}
	i.suspendedBy, i.suspendedAt = i.account, s.now()
	s.installationEvent(w, "suspend", i, i.account, nil)
}

// Uninstall deletes an installation, and its tokens with it.
func (s *Server) Uninstall(installation int64) {
	s.with(func(w *world) { s.uninstall(w, must(w.installations[installation], "installation")) })
}

func (s *Server) uninstall(w *world, i *installation) {
	repos := w.repositories(i)
	delete(w.installations, i.id)
	for name, t := range w.tokens {
		if t.installation == i {
			delete(w.tokens, name)
		}
	}
	s.installationEvent(w, "deleted", i, i.account, repos)
}

// DeleteApp deletes an app with its installations.
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

// Deauthorize ends somebody's authorization of an app, and their tokens.
func (s *Server) Deauthorize(slug, login string) {
	s.with(func(w *world) {
		a, p := must(w.app(slug), slug), must(w.account(login), login)
		delete(a.authorized, p.id)
		for name, t := range w.tokens {
			if t.app == a && t.person == p {
				delete(w.tokens, name)
			}
		}
		s.send(w, a, "github_app_authorization", map[string]any{"action": "revoked", "sender": s.simpleUser(p)})
	})
}

// Tokens are those of people that are good, and how many installation tokens are.
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

// gitDir is where a repository is.
func (s *Server) gitDir(r *repository) string {
	return filepath.Join(s.dir, fmt.Sprintf("%d.git", r.id))
}
