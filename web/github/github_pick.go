package github

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"satchel/auth/github/app"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// maxPicks is the maximum number of repositories on a page. The filter finds the others.
const maxPicks = 50

// pickPage is the list of repositories to choose from.
type pickPage struct {
	Space  service.View
	Action string
	App    string // the name of the App
	Login  string // the person's name at GitHub

	Query   string
	Filter  bool // the list is long enough for a filter
	Repos   []pickable
	All     int // number of repositories to choose from
	Matches int // number of repositories that match the filter
	Cut     bool
	Refused []app.Repository // archived, or read-only for the person

	Installations []app.Installation
	// Creates reports whether the App may create repositories. New is the address of
	// GitHub's own page to create one.
	Creates      bool
	Owners       []string
	New, NewName string
	Pending      string // why the new repository is not in the list
}

type pickable struct {
	app.Repository
	Taken bool          // another space uses the repository
	By    *service.View // the space that uses the repository, if the visitor owns the space
}

// choosable reports whether a repository is in the list and not archived, and whether the
// person may push to it.
func choosable(f app.Found, id int64) bool {
	return slices.ContainsFunc(f.Repositories, func(r app.Repository) bool { return r.ID == id && r.Push && !r.Archived })
}

// found returns the space in the path, and the repositories that this person may connect.
// The server has stored GitHub's list, and a request can only choose from that list. open is
// SeeFlow or TakeFlow. ok is false if there is no stored list.
func (s *pages) found(v *web.Visit, open func(v *web.Visit, kind web.FlowKind, of string, f web.AnyFlow) (bool, error)) (m service.View, f githubFlow, ok bool, err error) {
	m, err = s.connectable(v, space.SpaceID(v.R.PathValue("id")))
	if err != nil {
		return m, f, false, err
	}
	ok, err = open(v, flowFound, string(m.ID), &f)
	if err != nil || !ok || f.Space != m.ID || f.Found == nil {
		return m, f, false, err
	}
	return m, f, true, nil
}

// pickOver asks a person whose list has expired to start again.
func (s *pages) pickOver(v *web.Visit, m service.View) error {
	return s.githubState(v, m, http.StatusBadRequest, "The list of repositories has expired: it is kept for ten minutes and for one choice. Nothing was changed. Start again.")
}

// pickRepository handles GET /spaces/{id}/github/pick.
func (s *pages) pickRepository(v *web.Visit) error {
	m, f, ok, err := s.found(v, s.SeeFlow)
	if err != nil {
		return err
	}
	if !ok {
		return s.See(v, githubPath(m.ID))
	}
	return s.showPick(v, http.StatusOK, m, f, "", "")
}

// pick shows the list again, and stores it for another choice.
func (s *pages) pick(v *web.Visit, status int, m service.View, kept githubFlow, problem, field string) error {
	if err := s.KeepFlow(v, flowFound, string(m.ID), &kept); err != nil {
		return err
	}
	return s.showPick(v, status, m, kept, problem, field)
}

func (s *pages) showPick(v *web.Visit, status int, m service.View, kept githubFlow, problem, field string) error {
	f := *kept.Found
	a, _, err := s.App.App(v.R.Context())
	if err != nil {
		return err
	}
	body := pickPage{Space: m, Action: githubPath(m.ID), App: a.Name, Login: f.Login, Installations: f.Installations, Cut: f.Cut, Creates: a.Creates, NewName: newName(v, m)}
	taken, err := s.App.Taken(v.R.Context(), m.ID)
	if err != nil {
		return err
	}
	mine, err := s.Spaces(v)
	if err != nil {
		return err
	}
	body.Query = web.Shorten(v.R.URL.Query().Get("q"), 100)
	needle := strings.ToLower(body.Query)
	for _, r := range f.Repositories {
		if !r.Push || r.Archived {
			body.Refused = append(body.Refused, r)
			continue
		}
		body.All++
		if !strings.Contains(strings.ToLower(r.FullName), needle) {
			continue
		}
		if body.Matches++; len(body.Repos) < maxPicks {
			p := pickable{Repository: r}
			var by space.SpaceID
			if by, p.Taken = taken[r.ID]; p.Taken {
				if i := slices.IndexFunc(mine, func(o service.View) bool { return o.ID == by && o.Role == space.Owner }); i >= 0 {
					p.By = &mine[i]
				}
			}
			body.Repos = append(body.Repos, p)
		}
	}
	body.Filter = body.All > 10 || body.Query != ""
	for _, in := range f.Installations {
		if !in.Suspended && !slices.Contains(body.Owners, in.Account) {
			body.Owners = append(body.Owners, in.Account)
		}
	}
	if a.URL != "" {
		body.New = a.URL + "/new?" + url.Values{"name": {body.NewName}, "visibility": {"private"}, "description": {"What my AI clients know, kept by Satchel"}}.Encode()
	}
	if f.Created != 0 && !choosable(f, f.Created) {
		body.Pending = "GitHub created the repository, but the App has no access to the repository yet. Add the repository where the App is installed, then refresh the list."
	}
	title := "Choose a GitHub repository"
	switch {
	case len(f.Installations) == 0:
		title = "Install the GitHub App first"
	case body.All == 0:
		title = "No repository you can push to"
	}
	return s.Page(v, status, "githubpick", web.Page{Title: title, Label: m.Name, Space: &m, Current: "github", Styles: []string{"github.css"}, Body: body, Problem: problem, Field: field})
}

// linkRepository handles POST /spaces/{id}/github/pick. It accepts one id from the list
// that the server stored.
func (s *pages) linkRepository(v *web.Visit) error {
	m, f, ok, err := s.found(v, s.TakeFlow)
	if err != nil {
		return err
	}
	if !ok {
		return s.pickOver(v, m)
	}
	chosen := v.R.PostForm["repository"]
	if len(chosen) != 1 {
		return s.pick(v, http.StatusBadRequest, m, f, "Choose one repository.", "repositories")
	}
	id, err := strconv.ParseInt(chosen[0], 10, 64)
	if err != nil || !choosable(*f.Found, id) {
		return s.pick(v, http.StatusBadRequest, m, f, "Choose one of the repositories of this list.", "repositories")
	}
	return s.linkFound(v, m, *f.Found, id)
}

// linkFound connects a repository. It also changes the secret of the session, because the
// session has more rights from now on.
func (s *pages) linkFound(v *web.Visit, m service.View, f app.Found, id int64) error {
	if _, err := s.App.Link(v.R.Context(), v.User.ID, m.ID, f, id); err != nil {
		return s.githubProblem(v, m, err)
	}
	if err := s.RotateSession(v); err != nil {
		return err
	}
	return s.See(v, githubPath(m.ID))
}

// repositoryName matches the names of repositories at GitHub.
var repositoryName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
})

// newName returns the suggested name of a new repository.
func newName(v *web.Visit, m service.View) string {
	if name := v.R.PostFormValue("name"); name != "" {
		return web.Shorten(name, 100)
	}
	if m.Name != "" && m.Name != v.User.Name && repositoryName().MatchString(m.Name) {
		return m.Name
	}
	return "satchel"
}

// beginCreate handles POST /spaces/{id}/github/create. The person signs in at GitHub once
// more, because the server stores no token.
func (s *pages) beginCreate(v *web.Visit) error {
	m, f, ok, err := s.found(v, s.TakeFlow)
	if err != nil {
		return err
	}
	if !ok {
		return s.pickOver(v, m)
	}
	a, made, err := s.App.App(v.R.Context())
	if err != nil {
		return err
	}
	if !made || !a.Creates {
		return fault.New(fault.Forbidden, "This server's GitHub App is not allowed to create repositories. Create one at GitHub, and choose it here.")
	}
	form := v.R.PostForm
	n := app.NewRepository{Owner: form.Get("owner"), Name: strings.TrimSpace(form.Get("name")), Private: form.Get("visibility") != "public", Description: "What my AI clients know, kept by Satchel"}
	if !repositoryName().MatchString(n.Name) || n.Name == "." || n.Name == ".." {
		return s.pick(v, http.StatusBadRequest, m, f, "Use only letters, digits, dots, hyphens and underscores in the repository’s name.", "name")
	}
	known := slices.ContainsFunc(f.Found.Installations, func(in app.Installation) bool { return !in.Suspended && in.Account == n.Owner })
	switch {
	case n.Owner == f.Found.Login:
		n.Owner = ""
	case !known:
		return s.pick(v, http.StatusBadRequest, m, f, "Choose who owns the repository.", "owner")
	}
	return s.toGitHub(v, m, &n)
}
