package library

import (
	"cmp"
	"net/http"
	"net/url"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/render"
)

// Limits of the page of a sync.
const (
	runListed = 200
	runShown  = 25
	runLines  = 4000
	runBytes  = 512 << 10
)

// runPage is the page of what a sync changed.
type runPage struct {
	Source space.Source
	At     string
	Run    runRow
	Files  []runFile
	Count  int
	More   int // number of files that are not listed
}

type runFile struct {
	Name, Status, URL string
	Note              string // why no lines are shown, or the old name of a renamed file
	Diff              *render.Change
}

// completeRun returns the run with an id, and the commit of the complete run before it. A run is
// complete if it succeeded and made a commit. runs begins with the newest.
func completeRun(runs []space.SyncRun, id string) (run space.SyncRun, from space.CommitID, ok bool) {
	for _, r := range runs {
		switch complete := r.Commit != "" && r.State == space.SyncReady; {
		case complete && ok:
			return run, r.Commit, true
		case complete && r.ID == id:
			run, ok = r, true
		}
	}
	return run, "", ok
}

// showRun handles GET /library/sources/{source}/runs/{run}.
func (s *pages) showRun(v *web.Visit) error {
	ctx, id := v.R.Context(), v.R.PathValue("source")
	managed, err := s.Service.OpenSyncedSource(ctx, v.Actor(), id)
	if err != nil {
		return web.Gone(err)
	}
	st, err := s.Service.ListSyncRuns(ctx, v.Actor(), service.ListSyncRunsInput{ID: id})
	if err != nil {
		return web.Gone(err)
	}
	run, from, ok := completeRun(st.Runs, v.R.PathValue("run"))
	if !ok {
		return web.ErrGone
	}
	files, total, err := managed.Changes(ctx, from, run.Commit, "", runListed)
	if err != nil {
		return web.Gone(err)
	}
	body := runPage{Source: managed.Source, At: sourceAt(id), Count: total, More: total - len(files)}
	body.Run = runRow{SyncRun: run, Changes: changesText(run.SyncCounts)}
	lines, budget := 0, render.NewBudget()
	for n, f := range files {
		row := runFile{Name: web.ShownPath(f.Path, 150), Status: "changed"}
		switch f.Status {
		case space.Added:
			row.Status = "added"
		case space.Deleted:
			row.Status = "deleted"
		}
		if f.Status != space.Deleted && run.Commit == managed.Source.Commit {
			row.URL = sharedURL(managed.Source, f.Path)
		}
		switch {
		case n >= runShown || lines >= runLines:
			row.Note = "Its lines are not shown on this page."
		case f.Size > runBytes:
			row.Note = "The file is too large for its lines to be shown."
		default:
			patch, err := managed.FilePatch(ctx, f)
			if err != nil {
				return err
			}
			d := render.Patch(patch, budget)
			lines += len(d.Rows)
			switch {
			case d.Binary:
				row.Note = "The file is not text."
			case len(d.Rows) == 0:
				row.Note = "The file is empty."
			default:
				row.Diff = &d
			}
		}
		body.Files = append(body.Files, row)
	}
	return s.Page(v, http.StatusOK, "sourcerun", web.Page{Title: "Update of " + web.Shorten(cmp.Or(managed.Source.Title, id), 80), Wide: true, Current: "library", Styles: []string{"files.css", "publishing.css", "sources.css"}, Body: body})
}

// dryRunPage is the page of what a sync would change.
type dryRunPage struct {
	Source  space.Source
	At      string
	Changes string
	Files   []runFile
	More    int
	Skipped []skippedRow
	Shrinks bool // a person must confirm the sync
}

// dryRun handles POST /library/sources/{source}/dry-run.
func (s *pages) dryRun(v *web.Visit) error {
	return s.Work(v, func(v *web.Visit) error {
		id := v.R.PathValue("source")
		x, err := s.Service.SyncSource(v.R.Context(), v.Actor(), service.SyncSourceInput{ID: id, DryRun: true})
		if err != nil {
			return s.refused(v, err)
		}
		if x.DryRun == nil {
			return web.ErrGone // only sources that follow an upstream have a dry run
		}
		body := dryRunPage{Source: x.Source, At: sourceAt(id), Changes: wouldText(x.DryRun.SyncCounts), Skipped: skippedRows(x.DryRun.Skipped)}
		body.Shrinks = 2*x.DryRun.Deleted > x.DryRun.Files-x.DryRun.Added+x.DryRun.Deleted
		for _, c := range x.DryRun.Changes {
			row := runFile{Name: web.ShownPath(c.Path, 150), Status: "changed"}
			switch {
			case c.From != "":
				row.Status, row.Note = "renamed", "from "+web.ShownPath(c.From, 150)
			case c.Status == space.Added:
				row.Status = "added"
			case c.Status == space.Deleted:
				row.Status = "deleted"
			}
			body.Files = append(body.Files, row)
		}
		body.More = x.DryRun.Added + x.DryRun.Changed + x.DryRun.Deleted + x.DryRun.Renamed - len(body.Files)
		title := "What an update of " + web.Shorten(x.Title, 60) + " would change"
		return s.Page(v, http.StatusOK, "sourcedryrun", web.Page{Title: title, Wide: true, Current: "library", Styles: []string{"files.css", "sources.css"}, Scripts: []string{"sources.js"}, Body: body})
	})
}

// addressOf returns text if it is an address that a browser opens, or else "".
func addressOf(text string) string {
	if u, err := url.Parse(text); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		return text
	}
	return ""
}
