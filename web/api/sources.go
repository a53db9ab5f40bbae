package api

import (
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// sourceView is a source in the form that SDK clients expect.
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

type sourcesView struct {
	Sources []sourceView `json:"sources"`
}

// listSources is GET /api/sources.
func (s *Server) listSources(c *call, _ noBody) (sourcesView, error) {
	all, err := s.o.Service.ListSources(c.r.Context(), c.actor(), service.ListSourcesInput{})
	if err != nil {
		return sourcesView{}, err
	}
	slices.SortStableFunc(all, func(a, b space.Source) int { return strings.Compare(a.Title, b.Title) })
	list := make([]sourceView, len(all))
	for i, x := range all {
		list[i] = s.viewOf(x)
	}
	return sourcesView{list}, nil
}

type runView struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	State   string `json:"state" api:"enum=running|done|failed"`
	Started string `json:"started" api:"format=date-time"`
	Problem string `json:"problem,omitempty"`
}

type runsView struct {
	session
	Runs []runView `json:"runs"`
}

type syncRequest struct {
	session
	Reset   bool `json:"reset" doc:"Rebuilds the source in the library from its space, even if it is up to date. Fetches every file of a synced source again."`
	Confirm bool `json:"confirm" doc:"Lets the sync of a synced source remove most of its files."`
	Push    bool `json:"push" doc:"Accepted without effect: the remote of a space is pushed by itself."`
}

// maxSourceID limits the ID of a source in a request, in bytes.
const maxSourceID = 200

// sync is POST /api/sync and /api/sync/{source}. Neither needs a body.
func (s *Server) sync(c *call, a syncRequest) (runsView, error) {
	ids := []string{c.r.PathValue("source")}
	if len(ids[0]) > maxSourceID {
		return runsView{}, fault.New(fault.NotFound, "There is no source %s.", quoted(ids[0]))
	}
	if ids[0] == "" {
		all, err := s.o.Service.ListSources(c.r.Context(), c.actor(), service.ListSourcesInput{})
		if err != nil {
			return runsView{}, err
		}
		ids = nil
		for _, x := range all {
			ids = append(ids, x.ID)
		}
	}
	runs := []runView{}
	for _, id := range ids {
		began := time.Now()
		x, err := s.o.Service.SyncSource(c.r.Context(), c.actor(), service.SyncSourceInput{ID: id, Reset: a.Reset, Confirm: a.Confirm, Background: true})
		if err != nil {
			return runsView{}, err
		}
		r := runView{ID: x.ID + "-" + x.Commit.Short(), Source: x.ID, State: "done", Started: stamp(began), Problem: x.Problem}
		if x.State == space.SourceFailed {
			r.State = "failed"
		}
		if x.Upstream() {
			r.State = "running" // GET /api/sync/{source} has its progress
		}
		runs = append(runs, r)
	}
	return runsView{a.session, runs}, nil
}
