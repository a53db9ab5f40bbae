package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// Reviews are what AIs changed in the files that instruct every AI, which a person
// confirms or undoes. Errors are faults.
type Reviews interface {
	// Waiting returns what nobody has decided about at head.
	Waiting(ctx context.Context, id space.SpaceID) ([]Review, error)
	// Keep confirms, and Undo takes back, what a person saw; a fault.Conflict
	// where that is not at the path any more.
	Keep(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID) error
	Undo(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID, m space.Meta) (space.Commit, error)
	// Decided returns the latest decisions, newest first.
	Decided(ctx context.Context, id space.SpaceID, limit int) ([]ReviewDecision, error)
}

// Review is a file that waits for a person.
type Review struct {
	Path space.Path
	Blob space.BlobID // empty: the file was deleted
	// Commit made it so, and Base is the last commit that a person knows.
	Commit, Base space.CommitID
	Tool, Client string
	When         time.Time
}

// ReviewDecision is what somebody decided.
type ReviewDecision struct {
	Path   space.Path
	Client string
	Kept   bool // else it was undone
	By     space.UserID
	At     time.Time
}

// routeReviews adds what confirms an AI's changes.
func (s *Server) routeReviews(add adder) {
	add("GET /spaces/{id}/reviews", LimitPage, signedIn, s.showReviews)
	add("POST /spaces/{id}/reviews/keep", LimitPage, signedIn, s.keepReview)
	add("POST /spaces/{id}/reviews/undo", LimitPage, signedIn, s.undoReview)
}

// reviewItem is a file that waits, as pages show it.
type reviewItem struct {
	Path    space.Path
	Shown   string
	Blob    space.BlobID
	Client  string
	Tool    string
	When    time.Time
	Deleted bool
	New     bool
	URL     string // of the file
	Commit  string // its page
	Lines   []diffLine
	Cut     bool   // the difference is longer
	Compare string // the whole difference
	Problem string // why there is no difference
}

// diffLine is a line of a difference. Kind is "add", "del", "at" or "".
type diffLine struct{ Kind, Mark, Text string }

const (
	reviewsShown  = 10  // on a page
	reviewLines   = 60  // of one difference
	decisionShown = 10  // decisions
	longestLine   = 300 // characters of a line that is shown
)

// reviewItems returns the first of what waits, and how many there are.
func (s *Server) reviewItems(ctx context.Context, m store.Membership) ([]reviewItem, int, error) {
	if s.o.Reviews == nil {
		return nil, 0, nil
	}
	list, err := s.o.Reviews.Waiting(ctx, m.ID)
	if err != nil {
		return nil, 0, err
	}
	var out []reviewItem
	for _, r := range list[:min(len(list), reviewsShown)] {
		out = append(out, s.reviewItem(ctx, m, r))
	}
	return out, len(list) - len(out), nil
}

func (s *Server) reviewItem(ctx context.Context, m store.Membership, r Review) reviewItem {
	it := reviewItem{
		Path: r.Path, Shown: shorten(string(r.Path), 120), Blob: r.Blob, Client: shorten(r.Client, 60), Tool: shorten(r.Tool, 40), When: r.When,
		Deleted: r.Blob == "", URL: tools.FileURL("", m.ID, string(r.Path)), Commit: inSpace(m.ID, "commits/"+string(r.Commit)),
	}
	if r.Base != "" {
		it.Compare = inSpace(m.ID, "compare?"+urlQuery("from", string(r.Base), "path", string(r.Path)))
	}
	patch, err := s.o.History.Patch(ctx, m.ID, r.Base, "", r.Path)
	if err != nil {
		it.Problem = "The difference cannot be shown here: " + fault.PublicOf(err)
		return it
	}
	it.New = strings.Contains(patch, "\nnew file mode ") && !it.Deleted
	it.Lines, it.Cut = diffLines(patch, reviewLines)
	if len(it.Lines) == 0 {
		it.Problem = "It is no text, or differs in nothing that can be shown."
	}
	return it
}

// diffLines returns the first lines of the hunks of a unified diff.
func diffLines(patch string, most int) (out []diffLine, cut bool) {
	in := false
	for line := range strings.SplitSeq(strings.TrimSuffix(patch, "\n"), "\n") {
		if strings.HasPrefix(line, "@@ ") {
			in = true
			line = "@@"
		}
		if !in || line == "" || line[0] == '\\' {
			continue
		}
		if len(out) == most {
			return out, true
		}
		d := diffLine{Mark: line[:1], Text: shortLine(line[1:])}
		switch line[0] {
		case '+':
			d.Kind = "add"
		case '-':
			d.Kind = "del"
		case '@':
			if len(out) == 0 {
				continue
			}
			d = diffLine{Kind: "at", Text: "…"}
		}
		out = append(out, d)
	}
	return out, false
}

// shortLine keeps the space at a line's beginning, which shorten does not.
func shortLine(line string) string {
	body := strings.TrimLeft(line, " \t")
	indent := strings.ReplaceAll(line[:len(line)-len(body)], "\t", "    ")
	return indent[:min(len(indent), 40)] + shorten(body, longestLine)
}

// waitingIn tells how many files of a space wait for the visitor: none where they
// may only read it.
func (s *Server) waitingIn(v *visit, m *store.Membership) int {
	if s.o.Reviews == nil || m == nil || m.Role == space.Reader {
		return 0
	}
	list, err := s.o.Reviews.Waiting(v.r.Context(), m.ID)
	if err != nil {
		return 0 // a page that is about something else goes without
	}
	return len(list)
}

// reviewPage is what waits in a space, and what was decided.
type reviewPage struct {
	Space   store.Membership
	Action  string
	May     bool
	Reviews []reviewItem
	More    int
	Decided []decisionItem
	Said    string // what was just decided
}

type decisionItem struct {
	ReviewDecision
	Shown, Who string
}

// showReviews is GET /spaces/{id}/reviews.
func (s *Server) showReviews(v *visit) error {
	m, err := s.membership(v)
	if err != nil {
		return err
	}
	return s.reviewsPage(v, m, page{})
}

func (s *Server) reviewsPage(v *visit, m store.Membership, p page) (err error) {
	ctx := v.r.Context()
	body := reviewPage{Space: m, Action: "/spaces/" + string(m.ID), May: m.Role != space.Reader}
	if body.Reviews, body.More, err = s.reviewItems(ctx, m); err != nil {
		return err
	}
	switch v.r.URL.Query().Get("done") {
	case "kept":
		body.Said = "Kept. Nobody is asked about this version again."
	case "undone":
		body.Said = "Undone. The version that you knew is back."
	}
	if s.o.Reviews != nil {
		list, err := s.o.Reviews.Decided(ctx, m.ID, decisionShown)
		if err != nil {
			return err
		}
		members, err := s.o.Accounts.Members(ctx, m.ID)
		if err != nil {
			return err
		}
		names := map[space.UserID]string{}
		for _, o := range members {
			names[o.User] = o.Name
		}
		for _, d := range list {
			d.Client = shorten(d.Client, 60)
			body.Decided = append(body.Decided, decisionItem{ReviewDecision: d, Shown: shorten(string(d.Path), 120), Who: names[d.By]})
		}
	}
	p.Title, p.Wide, p.Current, p.Space, p.Styles, p.Body = "What AIs changed in their instructions", true, "activity", &m, []string{"activity.css"}, body
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusConflict
	}
	return s.page(v, status, "review", p)
}

// reviewed reads which content the form is about.
func reviewed(v *visit) (space.Path, space.BlobID, error) {
	p, err := space.ParsePath(v.r.PostFormValue("path"))
	if err != nil {
		return "", "", errGone
	}
	b := space.BlobID(v.r.PostFormValue("blob"))
	if b != "" && !b.Valid() {
		return "", "", errGone
	}
	return p, b, nil
}

// keepReview is POST /spaces/{id}/reviews/keep.
func (s *Server) keepReview(v *visit) error {
	return s.decide(v, "kept", func(m store.Membership, p space.Path, b space.BlobID) error {
		return s.o.Reviews.Keep(v.r.Context(), m.ID, v.user.ID, p, b)
	})
}

// undoReview is POST /spaces/{id}/reviews/undo.
func (s *Server) undoReview(v *visit) error {
	return s.decide(v, "undone", func(m store.Membership, p space.Path, b space.BlobID) error {
		_, err := s.o.Reviews.Undo(v.r.Context(), m.ID, v.user.ID, p, b, v.meta("web", "Undo what an AI changed in "+string(p)))
		return err
	})
}

func (s *Server) decide(v *visit, done string, act func(store.Membership, space.Path, space.BlobID) error) error {
	m, err := s.writable(v)
	if err != nil {
		return err
	}
	p, b, err := reviewed(v)
	if err != nil {
		return err
	}
	if s.o.Reviews == nil {
		return errGone
	}
	switch err := act(m, p, b); fault.CodeOf(err) {
	case "":
		return s.see(v, inSpace(m.ID, "reviews?done="+done))
	case fault.Conflict:
		return s.reviewsPage(v, m, page{Problem: fault.PublicOf(err)})
	default:
		return err
	}
}
