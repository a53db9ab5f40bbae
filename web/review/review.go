// Package review serves the pages where a person reviews the changes of AIs to files that
// instruct every AI.
package review

import (
	"embed"
	"html/template"
	"net/http"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct {
	*web.Site
	long *longPatches
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site, newLongPatches()}
	s.Handle("GET /spaces/{id}/reviews", web.LimitPage, web.SignedIn, s.showReviews)
	s.Handle("POST /spaces/{id}/reviews/keep", web.LimitPage, web.SignedIn, s.keepReview)
	s.Handle("POST /spaces/{id}/reviews/undo", web.LimitPage, web.SignedIn, s.undoReview)
	return s.AddTemplates(templates)
}

// item is a waiting file as a page shows it.
type item struct {
	Path    space.Path
	Shown   string
	Blob    space.BlobID
	Mode    int
	Client  string
	How     string // how the change was made, if not by a client
	Claims  bool   // the change claims, without proof, that it was made here
	When    time.Time
	Deleted bool
	New     bool
	URL     string // the address of the file
	Commit  string // the address of the commit
	Lines   []diffLine
	// Whole reports whether the page shows the whole difference. Then the visitor can keep
	// the file.
	Whole    bool
	Unshown  *unshown // describes the part that the page does not show, so that the visitor can still keep the file
	Alone    string   // the address of a page with only this file, which shows more
	Edit     string
	Compare  string // the address of the whole difference
	Problem  string // why the difference is missing or incomplete
	ModeNote string // describes a change of the mode
	Taken    bool   // something else is at the file's path now, and Undo deletes that
}

// diffLine is a line of a difference. Kind is "add", "del", "at" or "".
type diffLine struct {
	Kind string
	Text template.HTML
}

const (
	reviewsShown  = 10        // number of files that a page shows with their differences
	reviewsNamed  = 100       // number of further files that a page lists by name
	reviewLines   = 500       // number of lines of all differences of a page
	aloneLines    = 1500      // number of lines of a difference on its own page
	reviewBytes   = 64 << 10  // size of all lines of a page
	aloneBytes    = 512 << 10 // size of all lines on the page of one difference
	decisionShown = 10
)

// reviewPage lists the waiting files of a space and the recent decisions.
type reviewPage struct {
	Space   service.View
	Action  string
	May     bool
	Reviews []item
	Others  []reviewLink // the next files, by name
	More    int          // number of files that are not listed
	Before  string       // the address of the previous page
	Next    string       // the address of the next page
	Behind  bool         // the search of the history is not complete
	Only    space.Path   // the only file on the page; "" for all files
	Decided []decisionItem
	Said    string // confirms the decision
}

type decisionItem struct {
	space.ReviewDecision
	Shown string
}

// showReviews handles GET /spaces/{id}/reviews.
func (s *pages) showReviews(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.reviewsPage(v, m, web.Page{})
}

func (s *pages) reviewsPage(v *web.Visit, m service.View, p web.Page) (err error) {
	ctx := v.R.Context()
	body := reviewPage{Space: m, Action: "/spaces/" + string(m.ID), May: m.Role != space.Reader}
	if text := v.R.URL.Query().Get("path"); text != "" {
		if body.Only, err = space.ParsePath(text); err != nil {
			return web.ErrGone
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
	list, err := s.Service.ListReviewDecisions(ctx, v.Actor(), service.ListReviewDecisionsInput{Space: service.SpaceRef{ID: m.ID}, Limit: decisionShown})
	if err != nil {
		return err
	}
	for _, d := range list {
		d.Client = web.Shorten(d.Client, 60)
		body.Decided = append(body.Decided, decisionItem{d, web.ShownPath(d.Path, web.WholePath)})
	}
	current := "activity"
	if len(body.Reviews) > 0 {
		current = "reviews" // the sidebar has an entry while changes wait
	}
	p.Title, p.Wide, p.Current, p.Space, p.Styles, p.Body = "Changes to confirm", true, current, &m, []string{"activity.css"}, body
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusConflict
	}
	return s.Page(v, status, "review", p)
}

// reviewed reads the version that a form concerns.
func reviewed(v *web.Visit, m service.View) (in service.DecideReviewInput, err error) {
	in.Space.ID, in.Blob = m.ID, space.BlobID(v.R.PostFormValue("blob"))
	if in.Path, err = space.ParsePath(v.R.PostFormValue("path")); err != nil || in.Blob != "" && !in.Blob.Valid() {
		return in, web.ErrGone
	}
	switch v.R.PostFormValue("mode") {
	case "", "0":
	case "1":
		in.Mode = space.Executable
	case "2":
		in.Mode = space.Symlink
	default:
		return in, web.ErrGone
	}
	return in, nil
}

// keepReview handles POST /spaces/{id}/reviews/keep.
func (s *pages) keepReview(v *web.Visit) error {
	return s.decide(v, "kept", func(in service.DecideReviewInput) error {
		_, err := s.Service.KeepReview(v.R.Context(), v.Actor(), in)
		return err
	})
}

// undoReview handles POST /spaces/{id}/reviews/undo.
func (s *pages) undoReview(v *web.Visit) error {
	return s.decide(v, "undone", func(in service.DecideReviewInput) error {
		_, err := s.Service.UndoReview(v.R.Context(), v.Actor(), in)
		return err
	})
}

func (s *pages) decide(v *web.Visit, done string, act func(service.DecideReviewInput) error) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	in, err := reviewed(v, m)
	if err != nil {
		return err
	}
	switch err := act(in); fault.CodeOf(err) {
	case "":
		return s.See(v, web.SpacePath(m.ID, "reviews?done="+done))
	case fault.Conflict:
		return s.reviewsPage(v, m, web.Page{Problem: fault.PublicOf(err)})
	default:
		return err
	}
}
