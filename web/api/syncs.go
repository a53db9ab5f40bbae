package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// addSourceRequest is a source that follows an upstream.
type addSourceRequest struct {
	ID          string         `json:"id" doc:"Unique on the server."`
	URL         string         `json:"url,omitempty" doc:"The address of the upstream. The server derives the kind from it."`
	Kind        string         `json:"kind,omitempty" doc:"The kind of upstream, such as git. Needed without url."`
	Settings    map[string]any `json:"settings,omitempty" doc:"Settings of the kind, such as branch."`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Aliases     string         `json:"aliases,omitempty" doc:"Other names of the source, separated by commas. A search with one of them finds the source first."`
	Readers     []string       `json:"readers,omitempty" doc:"Names of the readers. Without readers the source is for everybody."`
	Every       *int64         `json:"every,omitempty" doc:"Seconds between updates; 0 for updates on request only. The default is 6 hours." api:"minimum=0"`
}

func (addSourceRequest) check() error { return nil } // the operation checks it

func (a addSourceRequest) input() (service.SyncedSourceInput, error) {
	in := service.SyncedSourceInput{
		Source:  space.Source{ID: a.ID, SourceText: space.SourceText{Title: a.Title, Description: a.Description, Aliases: a.Aliases}, Everybody: len(a.Readers) == 0},
		Readers: a.Readers,
	}
	in.Kind, in.URL, in.Every = a.Kind, a.URL, a.Every
	var err error
	in.Settings, err = raw(a.Settings)
	return in, err
}

// raw returns settings as JSON; nil if there are none.
func raw(settings map[string]any) (json.RawMessage, error) {
	if len(settings) == 0 {
		return nil, nil
	}
	return json.Marshal(settings)
}

// addSource is POST /api/sources.
func (s *Server) addSource(c *call, a addSourceRequest) (sourceView, error) {
	in, err := a.input()
	if err != nil {
		return sourceView{}, err
	}
	x, err := s.o.Service.AddSyncedSource(c.r.Context(), c.actor(), in)
	return s.viewOf(x), err
}

// previewView is what a source would contain.
type previewView struct {
	Kind    space.SourceKind `json:"kind"`
	Files   int              `json:"files" api:"minimum=0"`
	Bytes   int64            `json:"bytes" doc:"Of the fetched files." api:"minimum=0"`
	More    bool             `json:"more" doc:"Not all files were fetched for the preview."`
	Skipped map[string]int   `json:"skipped" doc:"Files that could not be fetched, by reason."`
	Titles  []string         `json:"titles" doc:"Of the first files."`
}

// previewSource is POST /api/sources/preview.
func (s *Server) previewSource(c *call, a addSourceRequest) (previewView, error) {
	in, err := a.input()
	if err != nil {
		return previewView{}, err
	}
	p, err := s.o.Service.PreviewSyncedSource(c.r.Context(), c.actor(), in)
	return previewView{p.Kind, p.Files, p.Bytes, p.More, orEmpty(p.Skipped), p.Titles}, err
}

func orEmpty(m map[string]int) map[string]int {
	if m == nil {
		return map[string]int{}
	}
	return m
}

// changeSourceRequest holds new values. Values that are left out stay.
type changeSourceRequest struct {
	Title       *string        `json:"title,omitempty"`
	Description *string        `json:"description,omitempty"`
	Aliases     *string        `json:"aliases,omitempty" doc:"Separated by commas."`
	Everybody   *bool          `json:"everybody,omitempty"`
	Readers     *[]string      `json:"readers,omitempty" doc:"Names. The source is then not for everybody."`
	Settings    map[string]any `json:"settings,omitempty" doc:"All settings of the kind."`
	Every       *int64         `json:"every,omitempty" doc:"Seconds between updates; 0 for updates on request only." api:"minimum=0"`
	Paused      *bool          `json:"paused,omitempty" doc:"true stops the schedule, and keeps its interval. false resumes it with an update."`
}

func (changeSourceRequest) check() error { return nil } // the operation checks it

// pathSource returns the ID of the source that the request's path names.
func pathSource(c *call) (string, error) {
	id := c.r.PathValue("source")
	if len(id) > maxSourceID {
		return "", fault.New(fault.NotFound, "There is no source %s.", quoted(id))
	}
	return id, nil
}

// changeSource is PATCH /api/sources/{source}.
func (s *Server) changeSource(c *call, a changeSourceRequest) (sourceView, error) {
	id, err := pathSource(c)
	if err != nil {
		return sourceView{}, err
	}
	in := service.ChangeSyncedSourceInput{ID: id, Title: a.Title, Description: a.Description, Aliases: a.Aliases, Everybody: a.Everybody, Readers: a.Readers}
	in.Every, in.Paused = a.Every, a.Paused
	if in.Settings, err = raw(a.Settings); err != nil {
		return sourceView{}, err
	}
	x, err := s.o.Service.ChangeSyncedSource(c.r.Context(), c.actor(), in)
	return s.viewOf(x), err
}

type removedSourceView struct {
	Removed string `json:"removed" doc:"ID of the source."`
}

// removeSource is DELETE /api/sources/{source}.
func (s *Server) removeSource(c *call, _ noBody) (removedSourceView, error) {
	id, err := pathSource(c)
	if err != nil {
		return removedSourceView{}, err
	}
	_, err = s.o.Service.RemoveSyncedSource(c.r.Context(), c.actor(), service.RemoveSyncedSourceInput{ID: id})
	return removedSourceView{id}, err
}

type syncStatusView struct {
	Source  string           `json:"source"`
	Kind    space.SourceKind `json:"kind"`
	State   string           `json:"state" doc:"How the last update ended." api:"enum=new|ready|failed|limited|gone|refused|stopped|ended"`
	Problem string           `json:"problem,omitempty"`
	Version string           `json:"version,omitempty" doc:"Of upstream, such as a commit."`
	Every   int64            `json:"every" doc:"Seconds between updates; 0 for updates on request only." api:"minimum=0"`
	Paused  bool             `json:"paused" doc:"The schedule is stopped. The source is updated on request."`
	Checked string           `json:"checked,omitempty" doc:"The last successful update." api:"format=date-time"`
	Next    string           `json:"next,omitempty" api:"format=date-time"`
	Running *syncStepView    `json:"running,omitempty"`
	Runs    []syncRunView    `json:"runs" doc:"The last updates, the newest first. Updates without changes are left out."`
}

type syncStepView struct {
	Step  string `json:"step"`
	Done  int    `json:"done" doc:"Files." api:"minimum=0"`
	Total int    `json:"total" doc:"Files; 0 if upstream does not say." api:"minimum=0"`
}

type syncRunView struct {
	ID      string         `json:"id"`
	State   string         `json:"state" api:"enum=running|ready|failed|limited|gone|refused|stopped|canceled"`
	Problem string         `json:"problem,omitempty"`
	Started string         `json:"started" api:"format=date-time"`
	Ended   string         `json:"ended,omitempty" api:"format=date-time"`
	Version string         `json:"version,omitempty"`
	Commit  space.CommitID `json:"commit,omitempty"`
	Files   int            `json:"files" api:"minimum=0"`
	Added   int            `json:"added" api:"minimum=0"`
	Changed int            `json:"changed" api:"minimum=0"`
	Deleted int            `json:"deleted" api:"minimum=0"`
	Renamed int            `json:"renamed" api:"minimum=0"`
	Skipped map[string]int `json:"skipped" doc:"Files that could not be fetched, by reason."`
}

// syncStatus is GET /api/sync/{source}.
func (s *Server) syncStatus(c *call, _ noBody) (syncStatusView, error) {
	id, err := pathSource(c)
	if err != nil {
		return syncStatusView{}, err
	}
	x, err := s.o.Service.ListSyncRuns(c.r.Context(), c.actor(), service.ListSyncRunsInput{ID: id})
	v := syncStatusView{
		Source: x.Source, Kind: x.Kind, State: string(x.State), Problem: x.Problem, Version: x.Version, Every: x.Every, Paused: x.Paused,
		Checked: stamp(x.Checked), Next: stamp(x.Next), Runs: []syncRunView{},
	}
	if text := c.r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return syncStatusView{}, fault.New(fault.Invalid, "limit must be a number, and at least 1.")
		}
		x.Runs = x.Runs[:min(n, len(x.Runs))]
	}
	if x.Running != nil {
		v.Running = &syncStepView{x.Running.Step, x.Running.Done, x.Running.Total}
	}
	for _, r := range x.Runs {
		v.Runs = append(v.Runs, syncRunView{
			ID: r.ID, State: string(r.State), Problem: r.Problem, Started: stamp(r.Started), Ended: stamp(r.Ended), Version: r.Version, Commit: r.Commit,
			Files: r.Files, Added: r.Added, Changed: r.Changed, Deleted: r.Deleted, Renamed: r.Renamed, Skipped: orEmpty(r.Skipped),
		})
	}
	return v, err
}

type canceledSyncView struct {
	Canceled string `json:"canceled" doc:"ID of the source."`
}

// cancelSync is DELETE /api/sync/{source}.
func (s *Server) cancelSync(c *call, _ noBody) (canceledSyncView, error) {
	id, err := pathSource(c)
	if err != nil {
		return canceledSyncView{}, err
	}
	_, err = s.o.Service.CancelSync(c.r.Context(), c.actor(), service.CancelSyncInput{ID: id})
	return canceledSyncView{id}, err
}

// syncRoutes returns the routes of synced sources.
func (s *Server) syncRoutes() []route {
	const get, post, patch, remove = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	const read, write = space.ScopeRead, space.ScopeWrite
	return []route{
		on(post, "/api/sources", write, about{
			id: "addSource", summary: "Add a source that follows an upstream", detail: "The configuration lists the addresses from which people can add sources.",
			answer: "The source. Its first update runs in the background.", status: http.StatusCreated, conflict: true, example: `{"id": "handbook", "url": "https://git.example/handbook.git"}`,
		}, s.addSource),
		on(post, "/api/sources/preview", write, about{
			id: "previewSource", summary: "Show what a new source would contain", answer: "The files. Nothing is kept.", example: `{"id": "handbook", "url": "https://git.example/handbook.git"}`,
		}, s.previewSource),
		on(patch, "/api/sources/{source}", write, about{
			id: "changeSource", summary: "Change a source that follows an upstream", detail: "An admin or the person who added the source can change it.", answer: "The source.", notFound: true, example: `{"title": "Handbook"}`,
		}, s.changeSource),
		on(remove, "/api/sources/{source}", write, about{id: "removeSource", summary: "Remove a source that follows an upstream", detail: "Deletes its files and their history.", answer: "The removed source.", notFound: true}, s.removeSource),
		on(get, "/api/sync/{source}", read, about{id: "syncStatus", summary: "How a source follows its upstream", answer: "The state, the progress and the last updates.", notFound: true, optional: map[string]string{"limit": "The maximum number of updates. Default: all that the server keeps."}}, s.syncStatus),
		on(remove, "/api/sync/{source}", write, about{id: "cancelSync", summary: "Cancel the running update of a source", answer: "The source.", notFound: true, conflict: true}, s.cancelSync),
	}
}
