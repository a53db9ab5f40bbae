package apptest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// target is an account that somebody may install an app on, or ask to.
type target struct {
	Login, Note string
	Href        string
}

// installNew asks for the account, then for the repositories.
func (s *Server) installNew(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.app(r.PathValue("slug"))
	p := s.visitor(r)
	switch {
	case a == nil:
		s.page(w, r, http.StatusNotFound, "message", "Page not found", "There is no such app.")
		return
	case p == nil:
		s.toSignIn(w, r)
		return
	}
	state := r.Form.Get("state")
	id, err := strconv.ParseInt(r.Form.Get("target_id"), 10, 64)
	on := s.world.accounts[id]
	if err != nil || on == nil || !s.mayInstall(a, p, on) {
		var all []target
		for _, t := range s.targets(a, p) {
			v := target{Login: t.login, Href: r.URL.Path + "?" + url.Values{"target_id": {strconv.FormatInt(t.id, 10)}, "state": {state}}.Encode()}
			switch i := s.world.installed(a, t); {
			case i != nil && owns(p, t):
				v.Note, v.Href = "configure", s.manageURL(i)+"?"+url.Values{"state": {state}}.Encode()
			case i != nil:
				v.Note = "installed"
			case !owns(p, t):
				v.Note = "request"
			}
			all = append(all, v)
		}
		if len(all) == 0 {
			s.page(w, r, http.StatusNotFound, "message", "Page not found", "This app is private.")
			return
		}
		s.page(w, r, http.StatusOK, "targets", "Install "+a.name, object{"Targets": all, "App": a.name})
		return
	}
	if r.Method == http.MethodGet {
		s.page(w, r, http.StatusOK, "install", "Install "+a.name, object{
			"App": a.name, "On": on.login, "Target": id, "State": state, "Owner": owns(p, on), "All": true,
			"Repositories": s.choices(on, nil), "Action": r.URL.Path, "Permissions": a.manifest.Permissions, "Button": "Install",
		})
		return
	}
	if !owns(p, on) {
		s.request(w, r, a, on, p, state)
		return
	}
	all, repos, ok := chosen(r)
	if !ok {
		s.page(w, r, http.StatusUnprocessableEntity, "message", "Select at least one repository", "Go back and choose.")
		return
	}
	i, err := s.install(&s.world, a, on, p, all, repos)
	if err != nil {
		s.page(w, r, http.StatusUnprocessableEntity, "message", "Not installed", err.Error())
		return
	}
	s.afterInstall(w, r, i, "install", state)
}

func chosen(r *http.Request) (all bool, repos []int64, ok bool) {
	if r.Form.Get("selection") != "selected" {
		return true, nil, true
	}
	for _, v := range r.Form["repository"] {
		id, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return false, nil, false
		}
		repos = append(repos, id)
	}
	return false, repos, len(repos) > 0
}

func (s *Server) targets(a *app, p *account) (all []*account) {
	for _, t := range s.world.accounts {
		if s.mayInstall(a, p, t) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *account) int { return int(a.id - b.id) })
	return all
}

// mayInstall tells whether somebody may install the app on an account, or ask its
// owners to. A private app is for its owner's account alone.
func (s *Server) mayInstall(a *app, p, on *account) bool {
	return (owns(p, on) || on.members[p.id] != "") && (a.manifest.Public || a.owner == on)
}

type choice struct {
	ID      int64
	Name    string
	Checked bool
}

func (s *Server) choices(on *account, i *installation) (all []choice) {
	for _, r := range s.world.repos {
		if r.owner == on {
			all = append(all, choice{r.id, r.fullName(), i != nil && i.repos[r.id]})
		}
	}
	slices.SortFunc(all, func(a, b choice) int { return int(a.ID - b.ID) })
	return all
}

// request asks the organisation's owners, who know nothing of the state.
func (s *Server) request(w http.ResponseWriter, r *http.Request, a *app, on, p *account, state string) {
	s.world.pending = append(s.world.pending, &pending{id: s.world.id(), app: a, account: on, requester: p})
	v := url.Values{"setup_action": {"request"}, "state": {state}}
	s.toSetup(w, r, a, v, "Your request was sent", fmt.Sprintf("The owners of %s were asked to install %s.", on.login, a.name))
}

// afterInstall leads the browser back. An owner who approves a request has no
// state: they began nothing.
func (s *Server) afterInstall(w http.ResponseWriter, r *http.Request, i *installation, action, state string) {
	v := url.Values{"installation_id": {strconv.FormatInt(i.id, 10)}, "setup_action": {action}, "state": {state}}
	s.toSetup(w, r, i.app, v, "Installed", fmt.Sprintf("%s is installed on %s.", i.app.name, i.account.login))
}

func (s *Server) toSetup(w http.ResponseWriter, r *http.Request, a *app, v url.Values, title, message string) {
	if a.manifest.Setup == "" {
		s.page(w, r, http.StatusOK, "message", title, message)
		return
	}
	http.Redirect(w, r, withQuery(a.manifest.Setup, v), http.StatusFound)
}

// manage is where its owner configures an installation.
func (s *Server) manage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	i := s.world.installations[id]
	p := s.visitor(r)
	switch {
	case p == nil:
		s.toSignIn(w, r)
		return
	case err != nil || i == nil || !owns(p, i.account):
		s.page(w, r, http.StatusNotFound, "message", "Page not found", "There is no such installation of yours.")
		return
	}
	state := r.Form.Get("state")
	if r.Method == http.MethodPost {
		switch r.Form.Get("act") {
		case "suspend":
			s.suspend(&s.world, i, true)
		case "unsuspend":
			s.suspend(&s.world, i, false)
		case "uninstall":
			s.uninstall(&s.world, i)
			s.page(w, r, http.StatusOK, "message", "Uninstalled", i.app.name+" is gone from "+i.account.login+".")
			return
		default:
			all, repos, ok := chosen(r)
			if !ok {
				s.page(w, r, http.StatusUnprocessableEntity, "message", "Select at least one repository", "Go back and choose.")
				return
			}
			s.choose(&s.world, i, all, repos)
			if i.app.manifest.OnUpdate {
				s.afterInstall(w, r, i, "update", state)
				return
			}
		}
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusSeeOther)
		return
	}
	s.page(w, r, http.StatusOK, "manage", i.app.name+" on "+i.account.login, object{
		"App": i.app.name, "On": i.account.login, "Action": r.URL.Path, "State": state, "All": i.all, "Suspended": i.suspendedBy != nil,
		"Repositories": s.choices(i.account, i), "Permissions": i.permissions, "Owner": true, "Button": "Save",
	})
}

// requests lists what the members of an organisation ask its owners for.
func (s *Server) requestsPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.world.account(r.PathValue("org"))
	p := s.visitor(r)
	switch {
	case p == nil:
		s.toSignIn(w, r)
		return
	case on == nil || !owns(p, on):
		s.page(w, r, http.StatusNotFound, "message", "Page not found", "You do not own that organization.")
		return
	}
	var rows []object
	for _, q := range s.world.pending {
		if q.account != on {
			continue
		}
		if r.Method == http.MethodPost && r.Form.Get("request") == strconv.FormatInt(q.id, 10) {
			s.answerRequest(w, r, q, p)
			return
		}
		rows = append(rows, object{"ID": q.id, "App": q.app.name, "Requester": q.requester.login, "Repositories": s.choices(on, nil)})
	}
	s.page(w, r, http.StatusOK, "requests", "Requests to install apps on "+on.login, object{"Rows": rows, "Action": r.URL.Path})
}

func (s *Server) answerRequest(w http.ResponseWriter, r *http.Request, q *pending, p *account) {
	s.world.pending = slices.DeleteFunc(s.world.pending, func(other *pending) bool { return other == q })
	if r.Form.Get("act") != "approve" {
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusSeeOther)
		return
	}
	all, repos, ok := chosen(r)
	if !ok {
		all = true
	}
	i, err := s.install(&s.world, q.app, q.account, p, all, repos)
	if err != nil {
		s.page(w, r, http.StatusUnprocessableEntity, "message", "Not installed", err.Error())
		return
	}
	s.afterInstall(w, r, i, "install", "")
}
