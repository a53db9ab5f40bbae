package account

import (
	"time"

	"satchel/internal/space"
	"satchel/web"
)

// Cookies that remember which of the first steps a person skipped, and that they closed the
// list. Another browser shows the steps again.
const (
	localCookie   = "satchel-local"
	skipCookie    = "satchel-skip"
	dismissCookie = "satchel-steps"
	skipFor       = 365 * 24 * time.Hour
)

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

// steps returns the first steps of a new user. The connection of a client comes first, because
// the other steps are of no use without it. The list stays until every step is done or the person
// dismisses the list.
func (s *pages) steps(v *web.Visit, h homePage, called bool) ([]step, error) {
	if s.skipped(v, dismissCookie) {
		return nil, nil
	}
	st := step{Name: "connect", Title: "Connect a client", Text: "Connect Claude, ChatGPT, Cursor, VS Code or any other client that speaks MCP. Then your AI knows what is here.", Go: "/connect", Label: "Connect a client"}
	if called {
		st.Done, st.Text = true, "A client of yours has used your space."
	}
	out := []step{st}
	if h.Space == nil || h.Space.Role == space.Reader {
		return out, nil
	}
	base := "/spaces/" + string(h.Space.ID)
	st = step{Name: "bring", Title: "Import what you have", Text: "Import a repository, notes, or an export of another AI.", Go: base + "/bring", Label: "Import", Skip: "/start/skip", SkipLabel: "Start empty"}
	switch {
	case h.Brought:
		st.Done, st.Text = true, "Your space has its first content."
	case s.skipped(v, skipCookie):
		st.Done, st.Text = true, "You start empty. Your clients fill the space, and you can import at any time."
	}
	out = append(out, st)
	st = step{Name: "facts", Title: "Save the first facts", Text: "Answer three questions, such as what your AIs should call you. All your clients then know the answers.", Go: base + "/bring#questions", Label: "Answer"}
	if h.Known.Facts > 0 {
		st.Done, st.Text = true, "Your AIs know the first facts about you."
	}
	out = append(out, st)
	if h.Space.Role != space.Owner {
		return out, nil
	}
	_, made, err := s.App.App(v.R.Context())
	if err != nil {
		return nil, err
	}
	st = step{Name: "github", Title: "Keep a copy at GitHub (optional)", Text: "Everything is kept on this server. In a GitHub repository, each change is also a commit.",
		Go: web.SpacePath(h.Space.ID, "github"), Label: "Connect GitHub", Skip: "/start/local", SkipLabel: "Stay local"}
	switch {
	case h.Link != nil:
		st.Done, st.Text = true, "Kept in "+web.Shorten(h.Link.FullName, 100)+" at GitHub."
	case h.Push.URL != "":
		st.Done, st.Text = true, "Everything is also kept at a Git remote."
	case s.skipped(v, localCookie):
		st.Done, st.Text = true, "Everything stays on this server. You can connect GitHub at any time."
	case !made && !v.User.Admin:
		return out, nil // only an admin can set GitHub up
	case !made:
		st.Text, st.Label = "Everything is kept on this server. Set up GitHub once, and each person can keep a copy in a repository.", "Set up GitHub"
	}
	return append(out, st), nil
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

// dismissSteps handles POST /start/dismiss.
func (s *pages) dismissSteps(v *web.Visit) error {
	s.SetCookie(v.W, dismissCookie, "1", s.Now().Add(skipFor))
	return s.See(v, "/")
}
