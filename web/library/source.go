package library

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// sourcePage is the page of a source that follows an upstream.
type sourcePage struct {
	Source  space.Source
	Sync    space.Sync
	Manages bool   // the visitor may change the source
	Reads   bool   // the visitor may read the source; not every admin may
	At      string // the address of the page
	State   stateView
	Key     string // see syncKey
	Step    string // what the running sync is doing
	Updates bool   // the source follows an upstream
	Problem string
	Advice  string
	Fix     string // see fixOf; "" for those who may not change the source

	// The following fields are for those who may change the source.
	Kind, Every, Licence, Size string
	Upstream                   string // link to the upstream; "" if browsers cannot open it
	Audience                   string
	Skipped                    []skippedRow
	Runs                       []runRow
	Unchanged                  bool // the first of Runs is an update that found no changes
	MoreRuns                   int
	Uploads                    uploadBody
}

type runRow struct {
	space.SyncRun
	State   stateView
	Changes string
	Diff    string   // address of the changes; "" if there are none
	Names   []string // names of the first changed files, if all files are uploaded
	More    int      // number of the other changed files
}

// managedPages adds the pages of sources that follow an upstream.
func (s *pages) managedPages() {
	const at = "/library/sources/{source}"
	s.Handle("GET "+at, web.LimitPage, web.SignedIn, s.showSource)
	s.Handle("GET "+at+"/events", web.LimitPage, web.SignedIn, s.sourceEvents)
	s.Handle("POST "+at+"/sync", web.LimitPage, web.SignedIn, s.startSync)
	s.Handle("POST "+at+"/dry-run", web.LimitPage, web.SignedIn, s.dryRun)
	s.HandleLarge("POST "+at+"/upload", maxUploads, s.canManage, s.upload)
	s.Handle("POST "+at+"/files/remove", web.LimitPage, web.SignedIn, s.removeUpload)
	s.Handle("POST "+at+"/cancel", web.LimitPage, web.SignedIn, s.cancelSync)
	s.Handle("POST "+at+"/schedule", web.LimitPage, web.SignedIn, s.setSchedule)
	s.Handle("GET "+at+"/runs/{run}", web.LimitPage, web.SignedIn, s.showRun)
	s.Handle("GET "+at+"/change", web.LimitPage, web.SignedIn, s.showChange)
	s.Handle("POST "+at+"/change", web.LimitPage, web.SignedIn, s.changeSource)
	s.Handle("GET "+at+"/remove", web.LimitPage, web.SignedIn, s.showRemove)
	s.Handle("POST "+at+"/remove", web.LimitPage, web.SignedIn, s.removeSource)
	s.Handle("GET /library/add", web.LimitPage, web.SignedIn, s.showAdd)
	s.Handle("POST /library/add/upload", web.LimitPage, web.SignedIn, s.addUploads)
	s.Handle("POST /library/add/preview", web.LimitPage, web.SignedIn, s.previewSource)
	s.Handle("POST /library/add", web.LimitPage, web.SignedIn, s.addSource)
}

// sourceAt returns the address of the page of a source.
func sourceAt(id string) string { return "/library/sources/" + url.PathEscape(id) }

// showSource handles GET /library/sources/{source}.
func (s *pages) showSource(v *web.Visit) error {
	body, err := s.sourceOf(v)
	if err != nil {
		return err
	}
	p := s.pageOf(body)
	added, started := "The source is added.", "" // the page's state says how an update ended
	if body.Sync.Running != nil || body.Sync.Checked.IsZero() {
		added, started = "The source is added. Its first update starts now.", "The update has started."
	}
	p.Done = web.DoneIn(v, map[string]string{
		"added": added, "changed": "Saved.", "started": started, "canceled": "The update is canceled.",
		"created": "The source is added. Upload its first files.", "uploaded": "The files are uploaded.", "removed": "The file is removed.",
		"paused": "From now on, the source is updated only on request.", "resumed": "An update starts now.",
	})
	return s.Page(v, http.StatusOK, "source", p)
}

// pageOf returns the page of a source.
func (s *pages) pageOf(body *sourcePage) web.Page {
	return web.Page{
		Title: web.Shorten(body.Source.Title, 80), Current: "library", Styles: []string{"files.css", "publishing.css", "sources.css"},
		Scripts: []string{"sources.js"}, Body: body,
	}
}

// sourceOf reads the source in the path. Sources that do not follow an upstream have no such page.
func (s *pages) sourceOf(v *web.Visit) (*sourcePage, error) {
	ctx, id := v.R.Context(), v.R.PathValue("source")
	st, err := s.Service.ListSyncRuns(ctx, v.Actor(), service.ListSyncRunsInput{ID: id})
	if err != nil {
		return nil, web.Gone(err)
	}
	body := &sourcePage{Sync: st, Manages: st.Manages, At: sourceAt(st.Source), State: stateOfSync(st), Key: syncKey(st), Step: stepText(st.Running), Updates: st.Kind != space.SourceUpload, Problem: problemWords(st)}
	snapshot, err := s.Service.OpenSource(ctx, v.Actor(), id)
	switch {
	case err == nil:
		body.Source, body.Reads = snapshot.Source, true
		if body.Licence, err = snapshot.LicenceOf(ctx); err != nil {
			return nil, err
		}
	case fault.CodeOf(err) != fault.NotFound || !body.Manages:
		return nil, web.Gone(err)
	default:
		managed, err := s.Service.OpenSyncedSource(ctx, v.Actor(), id)
		if err != nil {
			return nil, web.Gone(err)
		}
		body.Source = managed.Source
	}
	if body.Source.Title == "" {
		body.Source.Title = id
	}
	if !body.Manages {
		return body, nil
	}
	body.Fix = fixOf(st)
	if st.Problem != "" && st.Running == nil {
		body.Advice = advice(st)
	}
	if body.Kind, err = s.kindTitle(v, st.Kind); err != nil {
		return nil, err
	}
	body.Every, body.Size, body.Audience = scheduleWords(st), bytesize.Text(body.Source.Bytes), audienceOf(body.Source)
	body.Upstream = addressOf(st.Upstream)
	if i := slices.IndexFunc(st.Runs, func(r space.SyncRun) bool { return r.State == space.SyncReady }); i >= 0 {
		body.Skipped = skippedRows(st.Runs[i].Skipped)
	}
	shown, more := web.FirstOf(st.Runs, v.R.URL.Query().Has("all"))
	body.MoreRuns = more
	if len(shown) > 0 && shown[0].State != space.SyncReady && st.Problem == "" && st.Checked.After(shown[0].Ended) {
		// The last listed update failed, but a later one found all well.
		body.Unchanged = true
		body.Runs = append(body.Runs, runRow{SyncRun: space.SyncRun{Started: st.Checked}, State: stateWord(space.SyncReady), Changes: "No file changed"})
	}
	for _, r := range shown {
		row := runRow{SyncRun: r, State: stateWord(r.State)}
		if row.State.Tone != "good" && (len(body.Runs) > 0 || st.Problem == "") {
			row.State.Tone = "over" // needs nobody's attention
		}
		switch r.State {
		case space.SyncStopped:
			row.State.Word, row.Problem = "Stopped for a confirmation", missingText(r.SyncCounts)
		case space.SyncReady:
			row.State.Word, row.Changes = "Updated", changesText(r.SyncCounts)
			if r.Differs() && r.Commit != "" {
				row.Diff = body.At + "/runs/" + url.PathEscape(r.ID)
			}
		}
		body.Runs = append(body.Runs, row)
	}
	body.Uploads = s.uploadsOf(body)
	if body.Uploads.Only() {
		err = s.nameUploads(v, body)
	}
	return body, err
}

// kindTitle returns the name of a kind for people.
func (s *pages) kindTitle(v *web.Visit, kind space.SourceKind) (string, error) {
	info, err := s.kindOf(v, kind)
	return info.Title, err
}

// kindOf describes a kind. A kind that this server does not know has no settings.
func (s *pages) kindOf(v *web.Visit, kind space.SourceKind) (space.SourceKindInfo, error) {
	all, err := s.Service.ListSourceKinds(v.R.Context(), v.Actor(), service.None{})
	if err != nil {
		return space.SourceKindInfo{}, err
	}
	if i := slices.IndexFunc(all, func(k space.SourceKindInfo) bool { return k.Kind == kind }); i >= 0 {
		return all[i], nil
	}
	return space.SourceKindInfo{Kind: kind, Title: web.Shorten(string(kind), 40)}, nil
}

// audienceOf says who reads a source.
func audienceOf(x space.Source) string {
	switch n := len(x.Readers); {
	case x.Everybody:
		return "Everybody on this server"
	case n == 0 && x.Owner != "":
		return x.Owner
	case n == 0:
		return "Nobody"
	case n > 5:
		return strings.Join(x.Readers[:5], ", ") + ", …"
	default:
		return strings.Join(x.Readers, ", ")
	}
}

// progressEvent is the progress of a sync in a stream.
type progressEvent struct {
	Text  string `json:"text"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

// sourceEvents handles GET /library/sources/{source}/events. It sends the event progress while a
// sync runs, and the event state when the page must be loaded again. The request contains the
// syncKey of the page.
func (s *pages) sourceEvents(v *web.Visit) error {
	id := v.R.PathValue("source")
	st, err := s.Service.ListSyncRuns(v.R.Context(), v.Actor(), service.ListSyncRunsInput{ID: id})
	if err != nil {
		return web.Gone(err)
	}
	key, shown := v.R.URL.Query().Get("key"), progressEvent{}
	return s.Follow(v, st.Space, func(ctx context.Context) (string, any, error) {
		now, err := s.Service.WaitForSync(ctx, v.Actor(), service.WaitForSyncInput{ID: id, Differs: func(st space.Sync) bool {
			return syncKey(st) != key || progressOf(st) != shown
		}})
		if err != nil {
			return "", nil, err
		}
		changed := syncKey(now) != key
		key, shown = syncKey(now), progressOf(now)
		if changed {
			return "state", stateOfSync(now).Word, nil
		}
		return "progress", shown, nil
	})
}

func progressOf(st space.Sync) progressEvent {
	if st.Running == nil {
		return progressEvent{}
	}
	return progressEvent{stepText(st.Running), st.Running.Done, st.Running.Total}
}

// act answers after an action on a source. It redirects to the page of the source, which confirms
// the action, or shows the error above that page.
func (s *pages) act(v *web.Visit, done string, err error) error {
	if err == nil {
		return s.See(v, sourceAt(v.R.PathValue("source"))+"?done="+done)
	}
	return s.refused(v, err)
}

// refused shows why an action on a source was refused.
func (s *pages) refused(v *web.Visit, err error) error {
	if fault.CodeOf(err) == fault.NotFound && fault.FieldOf(err) == "" {
		// The source is gone, or its upstream is. In the second case, the page still exists.
		if _, gone := s.Service.ListSyncRuns(v.R.Context(), v.Actor(), service.ListSyncRunsInput{ID: v.R.PathValue("source")}); gone != nil {
			return web.Gone(gone)
		}
	}
	if fault.CodeOf(err) == fault.Forbidden || fault.CodeOf(err) == fault.Internal || errors.Is(err, context.Canceled) {
		return err
	}
	body, failed := s.sourceOf(v)
	if failed != nil {
		return failed
	}
	p := s.pageOf(body)
	p.Problem = fault.PublicOf(err)
	return s.Page(v, statusOf(err), "source", p)
}

// statusOf returns the status of a page that shows an error about what the visitor entered. This
// includes the errors of an upstream, because the visitor entered its address.
func statusOf(err error) int {
	if web.IsRefusal(err) {
		return web.AsPage(err).Status
	}
	return http.StatusUnprocessableEntity
}

// startSync handles POST /library/sources/{source}/sync. The form may have reset=yes or
// confirm=yes.
func (s *pages) startSync(v *web.Visit) error {
	in := service.SyncSourceInput{ID: v.R.PathValue("source"), Reset: v.R.PostFormValue("reset") == "yes", Confirm: v.R.PostFormValue("confirm") == "yes", Background: true}
	_, err := s.Service.SyncSource(v.R.Context(), v.Actor(), in)
	return s.act(v, "started", err)
}

// cancelSync handles POST /library/sources/{source}/cancel.
func (s *pages) cancelSync(v *web.Visit) error {
	_, err := s.Service.CancelSync(v.R.Context(), v.Actor(), service.CancelSyncInput{ID: v.R.PathValue("source")})
	return s.act(v, "canceled", err)
}

// setSchedule handles POST /library/sources/{source}/schedule, with pause=yes or pause=no.
func (s *pages) setSchedule(v *web.Visit) error {
	paused := v.R.PostFormValue("pause") == "yes"
	in := service.ChangeSyncedSourceInput{ID: v.R.PathValue("source")}
	in.Paused = &paused
	_, err := s.Service.ChangeSyncedSource(v.R.Context(), v.Actor(), in)
	if paused {
		return s.act(v, "paused", err)
	}
	return s.act(v, "resumed", err)
}

// removePage asks before a source is removed.
type removePage struct {
	Source   space.Source
	At, Size string
	Upstream bool // the files come from an address
	Runs     int
}

// showRemove handles GET /library/sources/{source}/remove.
func (s *pages) showRemove(v *web.Visit) error {
	managed, st, err := s.managed(v)
	if err != nil {
		return err
	}
	x := managed.Source
	x.Title = cmp.Or(x.Title, x.ID)
	return s.Page(v, http.StatusOK, "sourceremove", web.Page{
		Title: "Remove “" + web.Shorten(x.Title, 80) + "”", Current: "library", Styles: []string{"files.css", "sources.css"},
		Body: removePage{x, sourceAt(x.ID), bytesize.Text(x.Bytes), st.Kind != space.SourceUpload, len(st.Runs)},
	})
}

// removeSource handles POST /library/sources/{source}/remove.
func (s *pages) removeSource(v *web.Visit) error {
	if _, err := s.Service.RemoveSyncedSource(v.R.Context(), v.Actor(), service.RemoveSyncedSourceInput{ID: v.R.PathValue("source")}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/library?done=removed")
}
