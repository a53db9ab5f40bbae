package account

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/auth"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// Limits of lists on the first page.
const (
	homeClients = 4
	homeCommits = 5
	homeHistory = 100 // commits that are searched for a first import
	homeOthers  = 4
)

// homePage is the first page. It contains the first steps until the person has done them.
type homePage struct {
	Name  string
	Space *service.View
	Steps []step
	Left  int  // number of steps to do
	Kept  bool // the person just answered the questions of the first steps
	// Optional reports whether only the step about GitHub is left.
	Optional bool

	// Overview reports whether a client was ever used or the person dismissed the first
	// steps. From then on the page is an overview.
	Overview bool
	Joined   *service.View // the space to which the visitor was just invited
	Clients  []client
	More     int
	Commits  []change
	Brought  bool // a client, the pages or a command made one of the last homeHistory commits
	Push     web.RemoteView
	Held     int // number of the visitor's files that could not be committed; -1 if unknown
	Link     *auth.RepositoryLink
	// Wrong describes a problem with the connection to GitHub, and Way its solution.
	Wrong, Way string
	Others     []service.View // the person's other spaces
	// MoreOthers counts the spaces that the list omits.
	MoreOthers int
	Links      recentLinks
	Known      known
	Week       week
	Needs      []need
	// Waiting are the spaces with changes by AIs that wait for the person's review.
	Waiting []waitingSpace
}

// waitingSpace is a space with files that wait for the visitor's review.
type waitingSpace struct {
	service.View
	Files int
}

// change is a commit in a list.
type change struct {
	ID      space.CommitID
	Subject string
	By      string // as returned by web.MakerOf
	Client  string
	Time    time.Time
}

// home handles GET /.
func (s *pages) home(v *web.Visit) error {
	if !v.In {
		return s.See(v, "/signin")
	}
	ctx := v.R.Context()
	body := homePage{Name: v.User.Display, Kept: v.R.URL.Query().Has("kept")}
	if body.Name == "" {
		body.Name = v.User.Name
	}
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	body.Space = ownSpace(all)
	if body.Links, err = s.recentLinks(v); err != nil {
		return err
	}
	look, stop := context.WithTimeout(ctx, s.WaitingTime)
	defer stop()
	for _, m := range all[:min(len(all), web.SpacesShown)] {
		if n := web.Waiting(look, &m); n > 0 {
			body.Waiting = append(body.Waiting, waitingSpace{m, n})
		}
	}
	clients, err := s.clientsOf(v)
	if err != nil {
		return err
	}
	for _, c := range clients {
		if !c.LastUsed.IsZero() {
			body.Clients = append(body.Clients, c)
		}
	}
	slices.SortStableFunc(body.Clients, func(a, b client) int { return b.LastUsed.Compare(a.LastUsed) })
	called := len(body.Clients) > 0
	if !called {
		if called, err = s.Accounts.EverUsed(ctx, v.User.ID); err != nil {
			return err
		}
	}
	if n := len(body.Clients) - homeClients; n > 0 {
		body.Clients, body.More = body.Clients[:homeClients], n
	}
	body.Overview = called || s.skipped(v, dismissCookie)
	if body.Space != nil {
		if err := s.homeSpace(v, &body); err != nil {
			return err
		}
	}
	s.homeOthers(v, all, &body)
	if body.Needs, err = s.needsOf(v, body, clients); err != nil {
		return err
	}
	if body.Steps, err = s.steps(v, body, called); err != nil {
		return err
	}
	for i := range body.Steps {
		if !body.Steps[i].Done {
			if body.Left == 0 {
				body.Steps[i].Next = true
			}
			body.Left++
			body.Optional = body.Left == 1 && body.Steps[i].Name == "github"
		}
	}
	if body.Left == 0 {
		body.Steps = nil
	}
	title := "Welcome, " + web.Shorten(body.Name, 60)
	if body.Overview {
		title = "Your Satchel"
	}
	return s.Page(v, http.StatusOK, "home", web.Page{Title: title, Current: "home", Styles: []string{"connect.css", "home.css"}, Body: body})
}

// homeOthers lists the spaces other than the page's own. A space that the visitor has just
// joined comes first.
func (s *pages) homeOthers(v *web.Visit, all []service.View, body *homePage) {
	if i := slices.IndexFunc(all, web.JoinedIn(v.R.URL.Query())); i >= 0 {
		body.Joined = &all[i]
		body.Others = append(body.Others, all[i])
	}
	for _, m := range all {
		if own := body.Space != nil && m.ID == body.Space.ID; !own && (body.Joined == nil || m.ID != body.Joined.ID) {
			body.Others = append(body.Others, m)
		}
	}
	if n := len(body.Others) - homeOthers; n > 0 {
		body.Others, body.MoreOthers = body.Others[:homeOthers], n
	}
}

func (s *pages) homeSpace(v *web.Visit, body *homePage) (err error) {
	ctx, id := v.R.Context(), body.Space.ID
	body.Held = s.PendingIn(v, id)
	l, ok, err := s.App.Linked(ctx, id)
	if err != nil {
		return err
	}
	if ok {
		body.Link = &l
		body.Wrong, body.Way = web.TroubleOf(l, auth.AtGitHubTab)
	}
	if body.Push, err = s.RemoteOf(v, id); err != nil {
		return err
	}
	if body.Known, err = s.knownOf(ctx, *body.Space); err != nil {
		return err
	}
	if body.Overview {
		if body.Week, err = s.weekOf(ctx, *body.Space); err != nil {
			return err
		}
	}
	list, err := body.Space.Log(ctx, space.LogQuery{Limit: homeHistory})
	if err := unlessEmpty(err); err != nil {
		return err
	}
	body.Brought = slices.ContainsFunc(list, func(c space.Commit) bool { return c.Tool != "" && c.Tool != "sync" && c.Tool != "satchel" })
	for _, c := range list[:min(len(list), homeCommits)] {
		subject, _, _ := strings.Cut(c.Message, "\n")
		body.Commits = append(body.Commits, change{ID: c.ID, Subject: web.Shorten(subject, 100), By: web.MakerOf(c), Client: web.Shorten(space.ClientName(c.Client), 60), Time: c.Time})
	}
	return nil
}

// ownSpace returns the space of the first steps: the first one that the visitor owns, or
// else the first one that they can change, or else the first one.
func ownSpace(all []service.View) *service.View {
	for _, role := range []space.Role{space.Owner, space.Editor, space.Reader} {
		if i := slices.IndexFunc(all, func(m service.View) bool { return m.Role == role }); i >= 0 {
			return &all[i]
		}
	}
	return nil
}
