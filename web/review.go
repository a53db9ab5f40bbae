package web

import (
	"context"
	"html/template"
	"net/http"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Reviews are what AIs changed in the files that instruct every AI, which a person
// confirms or undoes. Errors are faults.
type Reviews interface {
	// Waiting returns what differs from what a person last knew, as far as is known:
	// behind reports that the history is being looked through still. It never takes
	// long, and where ctx is over it tells at once what is known.
	Waiting(ctx context.Context, id space.SpaceID) (list []space.Review, behind bool, err error)
	// Keep confirms, and Undo takes back, what a person saw; a fault.Conflict
	// where that is not at the path any more.
	Keep(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID, mode space.Mode) error
	Undo(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID, mode space.Mode, m space.Meta) (space.Commit, error)
	// Decisions returns the latest decisions, newest first.
	Decisions(ctx context.Context, id space.SpaceID, limit int) ([]space.ReviewDecision, error)
}

// routeReviews adds what confirms an AI's changes.
func (s *Site) routeReviews() {
	s.Handle("GET /spaces/{id}/reviews", LimitPage, SignedIn, s.showReviews)
	s.Handle("POST /spaces/{id}/reviews/keep", LimitPage, SignedIn, s.keepReview)
	s.Handle("POST /spaces/{id}/reviews/undo", LimitPage, SignedIn, s.undoReview)
}

// reviewItem is a file that waits, as pages show it.
type reviewItem struct {
	Path    space.Path
	Shown   string
	Blob    space.BlobID
	Mode    int
	Client  string
	Tool    string
	How     string // in which it was made, where no client made it
	Claims  bool   // it says that it was made here, which is not so
	When    time.Time
	Deleted bool
	New     bool
	URL     string // of the file
	Commit  string // its page
	Lines   []diffLine
	// Whole reports that all that differs is shown, so that it can be kept.
	Whole    bool
	Unshown  *unshown // tells of what is not shown, so that it can be kept all the same
	Alone    string   // a page of this file alone, where more of it is shown
	Edit     string
	Compare  string // the whole difference
	Problem  string // why there is no difference
	ModeNote string // what the file is besides its text
	Taken    bool   // something is in its place, which Undo deletes
}

// diffLine is a line of a difference. Kind is "add", "del", "at" or "".
type diffLine struct {
	Kind string
	Text template.HTML
}

const (
	reviewsShown  = 10        // on a page, with what is different
	reviewsNamed  = 100       // on a page, by name
	reviewLines   = 500       // of all differences of a page
	aloneLines    = 1500      // of a difference on a page of its own
	reviewBytes   = 64 << 10  // of all lines of a page
	aloneBytes    = 512 << 10 // of all lines of a page of one difference
	decisionShown = 10        // decisions
)

// reviewPage is what waits in a space, and what was decided.
type reviewPage struct {
	Space   store.Membership
	Action  string
	May     bool
	Reviews []reviewItem
	Others  []reviewLink // what waits after these, by name
	More    int          // that are not even named
	Before  string       // the page of those before
	Next    string       // the page of those after
	Behind  bool         // the history is being looked through
	Only    space.Path   // the file that the page is of alone
	Decided []decisionItem
	Said    string // what was just decided
}

type decisionItem struct {
	space.ReviewDecision
	Shown, Who string
}

// showReviews is GET /spaces/{id}/reviews.
func (s *Site) showReviews(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.reviewsPage(v, m, Page{})
}

func (s *Site) reviewsPage(v *Visit, m store.Membership, p Page) (err error) {
	ctx := v.R.Context()
	body := reviewPage{Space: m, Action: "/spaces/" + string(m.ID), May: m.Role != space.Reader}
	if text := v.R.URL.Query().Get("path"); text != "" {
		if body.Only, err = space.ParsePath(text); err != nil {
			return ErrGone
		}
	}
	if err := s.addReviews(v, &body); err != nil {
		return err
	}
	switch v.R.URL.Query().Get("done") {
	case "kept":
		body.Said = "Kept. Nobody is asked about this version again."
	case "undone":
		body.Said = "Undone. The version that you knew is back; a file that was new is gone, and its history stays."
	}
	if s.Reviews != nil {
		list, err := s.Reviews.Decisions(ctx, m.ID, decisionShown)
		if err != nil {
			return err
		}
		members, err := s.Accounts.Members(ctx, m.ID)
		if err != nil {
			return err
		}
		names := map[space.UserID]string{}
		for _, o := range members {
			names[o.User] = o.Name
		}
		for _, d := range list {
			d.Client = Shorten(d.Client, 60)
			body.Decided = append(body.Decided, decisionItem{ReviewDecision: d, Shown: ShownPath(d.Path, WholePath), Who: names[d.By]})
		}
	}
	p.Title, p.Wide, p.Current, p.Space, p.Styles, p.Body = "What AIs changed in their instructions", true, "activity", &m, []string{"activity.css"}, body
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusConflict
	}
	return s.Page(v, status, "review", p)
}

// reviewed reads which content the form is about.
func reviewed(v *Visit) (p space.Path, b space.BlobID, mode space.Mode, err error) {
	p, err = space.ParsePath(v.R.PostFormValue("path"))
	if err != nil {
		return "", "", 0, ErrGone
	}
	b = space.BlobID(v.R.PostFormValue("blob"))
	if b != "" && !b.Valid() {
		return "", "", 0, ErrGone
	}
	switch v.R.PostFormValue("mode") {
	case "", "0":
	case "1":
		mode = space.Executable
	case "2":
		mode = space.Symlink
	default:
		return "", "", 0, ErrGone
	}
	return p, b, mode, nil
}

// keepReview is POST /spaces/{id}/reviews/keep.
func (s *Site) keepReview(v *Visit) error {
	return s.decide(v, "kept", func(m store.Membership, p space.Path, b space.BlobID, mode space.Mode) error {
		return s.Reviews.Keep(v.R.Context(), m.ID, v.User.ID, p, b, mode)
	})
}

// undoReview is POST /spaces/{id}/reviews/undo.
func (s *Site) undoReview(v *Visit) error {
	return s.decide(v, "undone", func(m store.Membership, p space.Path, b space.BlobID, mode space.Mode) error {
		_, err := s.Reviews.Undo(v.R.Context(), m.ID, v.User.ID, p, b, mode, v.Meta(space.ToolWebUndo, "Undo what an AI changed in "+ShownPath(p, WholePath)))
		return err
	})
}

func (s *Site) decide(v *Visit, done string, act func(store.Membership, space.Path, space.BlobID, space.Mode) error) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	p, b, mode, err := reviewed(v)
	if err != nil {
		return err
	}
	if s.Reviews == nil {
		return ErrGone
	}
	switch err := act(m, p, b, mode); fault.CodeOf(err) {
	case "":
		return s.See(v, SpacePath(m.ID, "reviews?done="+done))
	case fault.Conflict:
		return s.reviewsPage(v, m, Page{Problem: fault.PublicOf(err)})
	default:
		return err
	}
}
