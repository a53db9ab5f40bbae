package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// sourceView is a source in the form that SDK clients know.
type sourceView struct {
	ID      string           `json:"id"`
	Label   string           `json:"label"`
	Kind    space.SourceKind `json:"kind"`
	State   string           `json:"state"`
	Path    string           `json:"path"` // relative to the library
	Commit  space.CommitID   `json:"commit,omitempty"`
	Files   int              `json:"files"`
	Updated string           `json:"updated,omitempty"`
	Age     *int64           `json:"age,omitempty"` // seconds since Updated
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

// listSources is GET /api/sources.
func (s *Server) listSources(c *call) error {
	all, err := s.o.Service.ListSources(c.r.Context(), c.actor(), service.ListSourcesInput{})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b space.Source) int { return strings.Compare(a.Title, b.Title) })
	list := make([]sourceView, len(all))
	for i, x := range all {
		list[i] = s.viewOf(x)
	}
	return c.answer(http.StatusOK, struct {
		Sources []sourceView `json:"sources"`
	}{list})
}

type runView struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	State   string `json:"state"`
	Started string `json:"started"`
	Problem string `json:"problem,omitempty"`
}

// maxSourceID bounds the name of a source in a request, in bytes.
const maxSourceID = 200

// sync is POST /api/sync and /api/sync/{source}. Neither needs a body.
func (s *Server) sync(c *call) error {
	var a struct {
		session
		Reset bool `json:"reset"`
		// Push is accepted and ignored: a published source is a space, and the server
		// pushes that to its remote by itself.
		Push bool `json:"push"`
	}
	if c.r.ContentLength != 0 {
		if err := c.decode(&a); err != nil {
			return err
		}
	}
	ids := []string{c.r.PathValue("source")}
	if len(ids[0]) > maxSourceID {
		return fault.New(fault.NotFound, "There is no source %s.", quoted(ids[0]))
	}
	if ids[0] == "" {
		all, err := s.o.Service.ListSources(c.r.Context(), c.actor(), service.ListSourcesInput{})
		if err != nil {
			return err
		}
		ids = nil
		for _, x := range all {
			ids = append(ids, x.ID)
		}
	}
	runs := []runView{}
	for _, id := range ids {
		began := time.Now()
		x, err := s.o.Service.SyncSource(c.r.Context(), c.actor(), service.SyncSourceInput{ID: id, Reset: a.Reset})
		if err != nil {
			return err
		}
		r := runView{ID: x.ID + "-" + x.Commit.Short(), Source: x.ID, State: "done", Started: stamp(began), Problem: x.Problem}
		if x.State == space.SourceFailed {
			r.State = "failed"
		}
		runs = append(runs, r)
	}
	return c.answer(http.StatusAccepted, struct {
		session
		Runs []runView `json:"runs"`
	}{a.session, runs})
}
