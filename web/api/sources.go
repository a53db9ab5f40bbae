package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (s *Server) sourceRoutes() []route {
	return []route{
		on(http.MethodGet, "/api/sources", space.ScopeRead, about{id: "sources", summary: "The sources of the library", answer: "All sources, and those of each kind."}, s.listSources),
		on(http.MethodPost, "/api/sync", space.ScopeWrite, about{id: "syncAll", summary: "Bring every source up to date", answer: "A run for each source.", status: http.StatusAccepted, optionalBody: true, notFound: true}, s.sync),
		on(http.MethodPost, "/api/sync/{source}", space.ScopeWrite, about{id: "sync", summary: "Bring one source up to date", answer: "The run.", status: http.StatusAccepted, optionalBody: true, notFound: true}, s.sync),
	}
}

// sourceView is a source, with the fields that clients of Savoir read of every source. Savoir is
// another server with such an API; see docs/api.md.
type sourceView struct {
	ID      string           `json:"id"`
	Label   string           `json:"label"`
	Kind    space.SourceKind `json:"kind"`
	State   string           `json:"state" api:"enum=new|syncing|ready|failed"`
	Path    string           `json:"path" doc:"Path of its files, relative to the library."`
	Commit  space.CommitID   `json:"commit,omitempty" doc:"The commit in the library."`
	Files   int              `json:"files" api:"minimum=0"`
	Updated string           `json:"updated,omitempty" api:"format=date-time"`
	Age     *int64           `json:"age,omitempty" doc:"Seconds since updated." api:"minimum=0"`
	Problem string           `json:"problem,omitempty"`
}

func (s *Server) viewOf(x space.Source) sourceView {
	v := sourceView{
		ID: x.ID, Label: x.Title, Kind: x.Kind, State: stateOf(x), Path: strings.TrimPrefix(x.Mount(), "/library/"),
		Commit: x.Commit, Files: x.Files, Updated: stamp(x.Synced), Problem: x.Problem,
	}
	if !x.Synced.IsZero() {
		age := max(0, int64(s.o.Now().Sub(x.Synced).Seconds()))
		v.Age = &age
	}
	return v
}

func stateOf(x space.Source) string {
	switch {
	case x.State == space.SourceFailed:
		return "failed"
	case x.Commit == "":
		return "new"
	case x.State == space.SourceWaiting:
		return "syncing"
	}
	return "ready"
}

// gitHubSourceView and youTubeSourceView add what a source follows. The fields are named as in
// Savoir's API, whose clients also work with this one.
type gitHubSourceView struct {
	sourceView
	Type        string `json:"type" api:"enum=github"`
	Repo        string `json:"repo" doc:"Owner and name."`
	Branch      string `json:"branch" doc:"Empty for the default branch."`
	ContentPath string `json:"contentPath" doc:"The directory of the repository; empty for all."`
	OutputPath  string `json:"outputPath" doc:"The directory of the files, under docs/."`
	ReadmeOnly  bool   `json:"readmeOnly"`
}

type youTubeSourceView struct {
	sourceView
	Type       string `json:"type" api:"enum=youtube"`
	ChannelID  string `json:"channelId"`
	Handle     string `json:"handle"`
	MaxVideos  int    `json:"maxVideos" doc:"0 for the default." api:"minimum=0"`
	OutputPath string `json:"outputPath" doc:"The directory of the files, under docs/."`
}

// gitHubGroupView, youTubeGroupView and groupView hold the sources of one kind.
type gitHubGroupView struct {
	Count   int                `json:"count" api:"minimum=0"`
	Sources []gitHubSourceView `json:"sources"`
}

type youTubeGroupView struct {
	Count   int                 `json:"count" api:"minimum=0"`
	Sources []youTubeSourceView `json:"sources"`
}

type groupView struct {
	Count   int          `json:"count" api:"minimum=0"`
	Sources []sourceView `json:"sources"`
}

type sourcesView struct {
	Total   int              `json:"total" api:"minimum=0"`
	Sources []sourceView     `json:"sources" doc:"All sources, sorted by label."`
	GitHub  gitHubGroupView  `json:"github"`
	YouTube youTubeGroupView `json:"youtube"`
	// Others holds the other kinds that have sources. In JSON they are fields of their own.
	Others map[string]groupView `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (v sourcesView) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"total": v.Total, "sources": v.Sources, "github": v.GitHub, "youtube": v.YouTube}
	for kind, g := range v.Others {
		fields[kind] = g
	}
	return json.Marshal(fields)
}

// listSources is GET /api/sources.
func (s *Server) listSources(c *call, _ noBody) (sourcesView, error) {
	all, err := s.o.Service.DescribeSources(c.r.Context(), c.actor(), service.ListSourcesInput{})
	if err != nil {
		return sourcesView{}, err
	}
	slices.SortStableFunc(all, func(a, b service.DescribedSource) int { return strings.Compare(a.Title, b.Title) })
	list := make([]sourceView, len(all))
	gitHub, youTube, others := []gitHubSourceView{}, []youTubeSourceView{}, map[string]groupView{}
	for i, x := range all {
		of, o := s.viewOf(x.Source), x.Origin
		list[i] = of
		output := path.Join(x.ID, o.OutputPath)
		switch kind := string(x.Kind); kind {
		case "github":
			gitHub = append(gitHub, gitHubSourceView{of, kind, o.Repo, o.Branch, o.ContentPath, output, o.ReadmeOnly})
		case "youtube":
			youTube = append(youTube, youTubeSourceView{of, kind, o.ChannelID, o.Handle, o.MaxVideos, output})
		default:
			g := others[kind].Sources
			others[kind] = groupView{len(g) + 1, append(g, of)}
		}
	}
	return sourcesView{len(all), list, gitHubGroupView{len(gitHub), gitHub}, youTubeGroupView{len(youTube), youTube}, others}, nil
}

type runView struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	State   string `json:"state" api:"enum=running|done|failed"`
	Started string `json:"started" api:"format=date-time"`
	Problem string `json:"problem,omitempty"`
}

type syncStartedView struct {
	startedView
	Options syncOptions `json:"options" doc:"As the server understood them."`
	Source  string      `json:"source,omitempty" doc:"ID of the source, if the request names one."`
	Runs    []runView   `json:"runs"`
}

type syncOptions struct {
	Reset  bool   `json:"reset"`
	Push   bool   `json:"push"`
	Filter string `json:"sourceFilter,omitempty" doc:"ID of the source, if the request names one."`
}

type syncRequest struct {
	session
	Reset   bool   `json:"reset" doc:"Rebuilds the source in the library from its space, even if it is up to date. If the source follows an upstream, fetches every file again."`
	Confirm bool   `json:"confirm" doc:"Lets the update of a source that follows an upstream remove most of its files."`
	Push    *bool  `json:"push" doc:"Accepted without effect: the remote of a space is pushed automatically. The default is true."`
	Filter  string `json:"sourceFilter" doc:"Updates only the source with this ID."`
}

const (
	// maxSourceID limits the ID of a source in a request, in bytes.
	maxSourceID = 200
	// started is the status of what a request has started.
	started = "started"
)

// sync is POST /api/sync and /api/sync/{source}. Neither needs a body.
func (s *Server) sync(c *call, a syncRequest) (syncStartedView, error) {
	id := cmp.Or(c.r.PathValue("source"), a.Filter)
	switch {
	case len(id) > maxSourceID:
		return syncStartedView{}, fault.New(fault.NotFound, "There is no source %s.", quoted(id))
	case a.Filter != "" && a.Filter != id:
		return syncStartedView{}, fault.New(fault.Invalid, "sourceFilter and the address name different sources.")
	}
	began := time.Now()
	synced, what := make([]service.SyncedSource, 1), quoted(id)
	var err error
	if id != "" {
		synced[0], err = s.o.Service.SyncSource(c.r.Context(), c.actor(), service.SyncSourceInput{ID: id, Reset: a.Reset, Confirm: a.Confirm, Background: true})
	} else {
		synced, err = s.o.Service.SyncSources(c.r.Context(), c.actor(), service.SyncSourcesInput{Reset: a.Reset, Confirm: a.Confirm, Background: true})
		what = count(len(synced))
	}
	if err != nil {
		return syncStartedView{}, err
	}
	runs := []runView{}
	for _, x := range synced {
		r := runView{ID: x.ID + "-" + x.Commit.Short(), Source: x.ID, State: "done", Started: stamp(began), Problem: x.Problem}
		if x.State == space.SourceFailed {
			r.State = "failed"
		}
		if x.Upstream() {
			r.State = "running" // GET /api/sync/{source} has its progress
		}
		runs = append(runs, r)
	}
	return syncStartedView{
		startedView{a.session.named(), started, "The update of " + what + " has started."},
		syncOptions{a.Reset, a.Push == nil || *a.Push, id}, id, runs,
	}, nil
}

// count returns a text such as "3 sources".
func count(n int) string {
	if n == 1 {
		return "1 source"
	}
	return strconv.Itoa(n) + " sources"
}
