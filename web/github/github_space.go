package github

import (
	"net/http"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// githubPage shows the state of a space's connection to GitHub.
type githubPage struct {
	Space  service.View
	Owner  bool
	Action string // path of the space's GitHub pages

	App    auth.GitHubApp
	Made   bool
	Link   auth.RepositoryLink
	Linked bool
	// Wrong describes a problem with the connection, and Way its solution.
	Wrong, Way string
	URL        string // address of the repository, as GitHub last reported
	Waiting    bool
	Since      time.Time // when the person asked for approval
	Push       web.RemoteView
	Held       int // number of the visitor's unsaved files; -1 if unknown
}

// showGitHub handles GET /spaces/{id}/github.
func (s *pages) showGitHub(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.githubState(v, m, http.StatusOK, "")
}

// githubState shows the state of a space's repository, and the given problem.
func (s *pages) githubState(v *web.Visit, m service.View, status int, problem string) error {
	ctx := v.R.Context()
	body := githubPage{Space: m, Owner: m.Role == space.Owner, Action: githubPath(m.ID), Held: s.PendingIn(v, m.ID)}
	var err error
	if body.App, body.Made, err = s.App.App(ctx); err != nil {
		return err
	}
	if body.Link, body.Linked, err = s.App.Linked(ctx, m.ID); err != nil {
		return err
	}
	if !body.Linked {
		if body.Since, body.Waiting, err = s.App.Waiting(ctx, m.ID); err != nil {
			return err
		}
	} else {
		body.Wrong, body.Way = web.TroubleOf(body.Link, "")
		if body.App.URL != "" {
			body.URL = body.App.URL + "/" + body.Link.FullName
		}
	}
	if body.Push, err = s.RemoteOf(v, m.ID); err != nil {
		return err
	}
	body.Push.Told = s.Webhooks // also before the space is connected
	return s.Page(v, status, "github", web.Page{
		Title: githubTitle(body), Label: m.Name, Space: &m, Current: "github", Styles: []string{"github.css"}, Body: body, Problem: problem,
		Done: web.DoneIn(v, githubDone(body)),
	})
}

func githubTitle(b githubPage) string {
	switch {
	case b.Linked:
		switch b.Link.State {
		case auth.LinkSuspended:
			return "The GitHub App is suspended"
		case auth.LinkRemoved:
			return "GitHub repository out of reach"
		case auth.LinkLost:
			return "Access to the GitHub repository was lost"
		}
		return "Connected to GitHub"
	case b.Made && b.Waiting:
		return "Waiting for approval at GitHub"
	}
	return "Connect this space to GitHub"
}

func githubPath(id space.SpaceID) string { return "/spaces/" + string(id) + "/github" }

// beginInstall handles POST /spaces/{id}/github/install. It redirects to GitHub's page
// where people install the App and choose its repositories.
func (s *pages) beginInstall(v *web.Visit) error {
	m, err := s.connectable(v, space.SpaceID(v.R.PathValue("id")))
	if err != nil {
		return err
	}
	state, err := s.hint(v, flowInstall, m.ID)
	if err != nil {
		return err
	}
	location, err := s.App.InstallURL(v.R.Context(), state)
	if err != nil {
		return s.githubProblem(v, m, err)
	}
	return s.SendToProvider(v, location)
}

// beginConnect handles POST /spaces/{id}/github/connect.
func (s *pages) beginConnect(v *web.Visit) error {
	m, err := s.connectable(v, space.SpaceID(v.R.PathValue("id")))
	if err != nil {
		return err
	}
	return s.toGitHub(v, m, nil)
}

// toGitHub sends the browser to GitHub to identify the person. If create is not nil, the
// repository is created after the return.
func (s *pages) toGitHub(v *web.Visit, m service.View, create *app.NewRepository) error {
	state := auth.NewSecret(auth.KindFlow).Reveal()
	location, data, err := s.App.Begin(v.R.Context(), s.URL(app.PathCallback), state)
	if err != nil {
		return s.githubProblem(v, m, err)
	}
	if err := s.KeepFlow(v, flowConnect, state, &githubFlow{Space: m.ID, Data: data, Create: create}); err != nil {
		return err
	}
	return s.SendToProvider(v, location)
}

// githubProblem shows an error from GitHub on the space's GitHub page, which offers the
// next step. It does not show an internal error but returns it.
func (s *pages) githubProblem(v *web.Visit, m service.View, err error) error {
	if fault.CodeOf(err) == fault.Internal {
		return err
	}
	return s.githubState(v, m, web.AsPage(err).Status, fault.PublicOf(err))
}

// setupPage is shown after a visit to GitHub that belongs to no flow of this session.
type setupPage struct {
	Spaces  []service.View // spaces that the visitor owns
	More    int
	Request bool // GitHub reports a request for an owner's approval
	Over    bool // the visit did not begin in this browser, or has expired
}

// afterInstall handles the return of a person who installed the App, changed its
// repositories or requested its approval. The query is only a hint: anybody can send a
// person here with any installation_id.
func (s *pages) afterInstall(v *web.Visit) error {
	f, ok, err := s.takeHint(v, flowInstall)
	if err != nil {
		return err
	}
	request := v.R.URL.Query().Get("setup_action") == "request"
	if !ok {
		return s.afterGitHub(v, http.StatusOK, setupPage{Request: request, Over: v.R.URL.Query().Has("state")})
	}
	return s.goOn(v, f, request)
}

// goOn continues a flow that this session began earlier.
func (s *pages) goOn(v *web.Visit, f githubFlow, request bool) error {
	m, err := s.connectable(v, f.Space)
	if err != nil {
		return err
	}
	if request {
		if err := s.App.AskApproval(v.R.Context(), m.ID, v.User.ID); err != nil {
			return s.githubProblem(v, m, err)
		}
		return s.See(v, githubPath(m.ID))
	}
	return s.toGitHub(v, m, nil)
}

func (s *pages) afterGitHub(v *web.Visit, status int, body setupPage) error {
	if v.In {
		all, err := s.Spaces(v)
		if err != nil {
			return err
		}
		for _, m := range all {
			if m.Role == space.Owner {
				body.Spaces = append(body.Spaces, m)
			}
		}
		body.Spaces, body.More = web.FirstOf(body.Spaces, false)
	}
	title := "Back from GitHub"
	switch {
	case body.Over:
		title = "This visit to GitHub has expired"
	case len(body.Spaces) > 0:
		title = "Choose a space to connect to GitHub"
	}
	return s.Page(v, status, "githubsetup", web.Page{Title: title, Styles: []string{"github.css"}, Body: body})
}

// finishGitHub handles the return of a person who authorized the App at GitHub.
func (s *pages) finishGitHub(v *web.Visit) error {
	q := v.R.URL.Query()
	if !q.Has("state") {
		// An owner's approval leads here, in the owner's browser.
		return s.afterGitHub(v, http.StatusOK, setupPage{Request: q.Get("setup_action") == "request"})
	}
	// If the App asks for authorization during installation, GitHub redirects here and not
	// to the setup page. No flow of this server expects the code in such a request, so the code
	// is not used.
	switch f, ok, err := s.takeHint(v, flowInstall); {
	case err != nil:
		return err
	case ok:
		return s.goOn(v, f, q.Get("setup_action") == "request")
	}
	var f githubFlow
	state, ok := web.StateIn(v.R)
	if ok {
		var err error
		if ok, err = s.TakeFlow(v, flowConnect, state, &f); err != nil {
			return err
		}
	}
	if !ok {
		return s.afterGitHub(v, http.StatusBadRequest, setupPage{Over: true})
	}
	m, err := s.connectable(v, f.Space)
	if err != nil {
		return err
	}
	if q.Has("error") {
		return s.githubState(v, m, http.StatusBadRequest, "GitHub did not authorize the App, so nothing was connected. You can try again.")
	}
	if len(q["code"]) != 1 || q.Get("code") == "" {
		return s.githubState(v, m, http.StatusBadRequest, "GitHub sent no authorization code, so nothing was connected. Try again.")
	}
	var found app.Found
	if f.Create != nil {
		found, err = s.App.FinishCreate(v.R.Context(), s.URL(app.PathCallback), f.Data, q, *f.Create)
	} else {
		found, err = s.App.Finish(v.R.Context(), s.URL(app.PathCallback), f.Data, q)
	}
	if err != nil {
		return s.githubProblem(v, m, err)
	}
	if found.Created != 0 && choosable(found, found.Created) {
		return s.linkFound(v, m, found, found.Created)
	}
	if err := s.KeepFlow(v, flowFound, string(m.ID), &githubFlow{Space: m.ID, Found: &found}); err != nil {
		return err
	}
	return s.See(v, githubPath(m.ID)+"/pick")
}

// checkRepository handles POST /spaces/{id}/github/check.
func (s *pages) checkRepository(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if _, err := s.App.Recheck(v.R.Context(), m.ID); err != nil {
		return s.githubProblem(v, m, err)
	}
	if _, err := s.Service.FetchRemote(v.R.Context(), v.Actor(), service.FetchRemoteInput{Space: service.SpaceRef{ID: m.ID}}); err != nil {
		return err
	}
	return s.See(v, githubPath(m.ID)+"?done=checked")
}

// unlinkRepository handles POST /spaces/{id}/github/disconnect.
func (s *pages) unlinkRepository(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if err := s.App.Unlink(v.R.Context(), v.User.ID, m.ID); err != nil {
		return s.githubProblem(v, m, err)
	}
	return s.See(v, githubPath(m.ID)+"?done=disconnected")
}

// githubDone returns the messages that fit the current state of the connection, so that an
// old address shows no outdated message.
func githubDone(b githubPage) map[string]string {
	if b.Linked {
		if b.Link.State != auth.LinkConnected {
			return nil // the page says what is wrong
		}
		return map[string]string{"checked": "The connection works. New changes at GitHub are being fetched."}
	}
	return map[string]string{"disconnected": "The repository was disconnected. The repository and the space keep their contents."}
}
