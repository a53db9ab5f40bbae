package account

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// Cookies that remember which of the first steps a person skipped. Another browser shows
// the steps again.
const (
	localCookie = "satchel-local"
	skipCookie  = "satchel-skip"
	skipFor     = 365 * 24 * time.Hour
)

// Limits of lists on the first page.
const (
	homeClients = 4
	homeCommits = 5
	homeOthers  = 4
)

// homePage is the overview. It contains the first steps until the person has done them.
type homePage struct {
	Name  string
	Space *service.View
	Steps []step
	Left  int // count of steps to do
	Kept  bool

	// Overview reports whether a client was ever used. From then on the page is an overview.
	Overview bool
	Joined   *service.View // the space to which the visitor was just invited
	Clients  []client
	More     int
	Commits  []change
	Brought  bool // there is a commit that the server did not create itself
	Push     web.RemoteView
	Held     int // count of the visitor's files that could not be committed; -1 if unknown
	Link     *auth.RepositoryLink
	// Wrong describes a problem with the connection, and Way its solution.
	Wrong, Way string
	Others     []service.View // the person's other spaces
	// MoreOthers counts the spaces that the list omits.
	MoreOthers int
	Links      recentLinks
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

type step struct {
	Name  string
	Title string
	Text  string
	Done  bool
	Next  bool // the step to do now
	// Go is the address where the person does the step, and Label is the text of its
	// button. Skip is the address that skips the step.
	Go, Label       string
	Skip, SkipLabel string
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
	body.Overview = called
	if body.Space != nil {
		if err := s.homeSpace(v, &body); err != nil {
			return err
		}
	}
	s.homeOthers(v, all, &body)
	body.Steps = s.steps(v, body, called)
	for i := range body.Steps {
		if !body.Steps[i].Done {
			if body.Left == 0 {
				body.Steps[i].Next = true
			}
			body.Left++
		}
	}
	title := "Welcome, " + web.Shorten(body.Name, 60)
	if body.Overview {
		title = "Your Satchel"
	}
	return s.Page(v, http.StatusOK, "home", web.Page{Title: title, Wide: body.Overview, Current: "home", Styles: []string{"connect.css"}, Body: body})
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
		body.Wrong, body.Way = web.TroubleOf(l)
	}
	if body.Push, err = s.RemoteOf(v, id); err != nil {
		return err
	}
	list, err := body.Space.Log(ctx, space.LogQuery{Limit: homeCommits})
	if err != nil && fault.CodeOf(err) != fault.NotFound { // NotFound: the space has no commits
		return err
	}
	for _, c := range list {
		body.Brought = body.Brought || c.Tool != "" && c.Tool != "sync" && c.Tool != "satchel"
		subject, _, _ := strings.Cut(c.Message, "\n")
		body.Commits = append(body.Commits, change{ID: c.ID, Subject: web.Shorten(subject, 100), By: web.MakerOf(c), Client: web.Shorten(c.Client, 60), Time: c.Time})
	}
	return nil
}

// steps returns the first steps of a new user.
func (s *pages) steps(v *web.Visit, h homePage, called bool) []step {
	out := []step{{Name: "in", Title: "Sign in", Text: "You are signed in as " + v.User.Name + ".", Done: true}}
	if h.Space != nil && h.Space.Role != space.Reader {
		base := "/spaces/" + string(h.Space.ID)
		if h.Space.Role == space.Owner {
			st := step{Name: "github", Title: "Choose where it is kept", Text: "Connect a GitHub repository that keeps everything as commits of your own, or keep it on this server.",
				Go: web.SpacePath(h.Space.ID, "github"), Label: "Connect GitHub", Skip: "/start/local", SkipLabel: "Stay local"}
			switch {
			case h.Wrong != "" && !called:
				st.Text, st.Label, st.Skip = h.Wrong+" "+h.Way, "Put it right", ""
			case h.Link != nil:
				st.Done, st.Text = true, "Kept in "+web.Shorten(h.Link.FullName, 100)+" at GitHub."
			case h.Push.URL != "":
				st.Done, st.Text = true, "Also kept at a remote."
			case s.skipped(v, localCookie) || called:
				st.Done, st.Text = true, "It stays on this server. You can connect GitHub at any time."
			}
			out = append(out, st)
		}
		st := step{Name: "bring", Title: "Bring what you have", Text: "Import a repository, upload notes, or answer three questions that become the first facts.",
			Go: base + "/bring", Label: "Bring it", Skip: "/start/skip", SkipLabel: "Continue without"}
		switch {
		case h.Brought:
			st.Done, st.Text = true, "Your space has its first content."
		case s.skipped(v, skipCookie) || called:
			st.Done, st.Text = true, "Nothing so far. Your clients fill it as you go, and you can bring more at any time."
		}
		out = append(out, st)
	}
	st := step{Name: "connect", Title: "Connect a client", Text: "Claude, ChatGPT, Cursor, VS Code or any other client that speaks MCP.", Go: "/connect", Label: "Connect a client"}
	if called {
		st.Done, st.Text = true, "A client of yours has used your space."
	}
	return append(out, st)
}

func (s *pages) skipped(v *web.Visit, name string) bool {
	return len(v.R.CookiesNamed(s.CookieName(name))) > 0
}

// stayLocal handles POST /start/local.
func (s *pages) stayLocal(v *web.Visit) error {
	s.SetCookie(v.W, localCookie, "1", s.Now().Add(skipFor))
	return s.See(v, "/")
}

// skipBringing handles POST /start/skip.
func (s *pages) skipBringing(v *web.Visit) error {
	s.SetCookie(v.W, skipCookie, "1", s.Now().Add(skipFor))
	return s.See(v, "/")
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
