package api

import (
	"net/http"

	"satchel/internal/fault"
)

type sourceBody struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Kind    string `json:"kind"`
	State   string `json:"state"`
	Path    string `json:"path"`
	Commit  string `json:"commit,omitempty"`
	Files   int    `json:"files"`
	Updated string `json:"updated,omitempty"`
	// Age is in seconds.
	Age     *int64 `json:"age,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// listSources is GET /api/sources.
func (s *Server) listSources(c *call) error {
	all, err := s.o.Sources.Sources(c.r.Context(), c.p.User)
	if err != nil {
		return err
	}
	list := make([]sourceBody, len(all))
	for i, x := range all {
		list[i] = sourceBody{ID: x.ID, Label: x.Label, Kind: x.Kind, State: x.State, Path: x.Path, Commit: x.Commit, Files: x.Files, Updated: stamp(x.Updated), Problem: x.Problem}
		if !x.Updated.IsZero() {
			age := max(0, int64(s.o.Now().Sub(x.Updated).Seconds()))
			list[i].Age = &age
		}
	}
	return c.answer(http.StatusOK, struct {
		Sources []sourceBody `json:"sources"`
	}{list})
}

type runBody struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	State   string `json:"state"`
	Started string `json:"started"`
	Problem string `json:"problem,omitempty"`
}

// maxSourceID bounds what a source is named by, in bytes.
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
	id := c.r.PathValue("source")
	if len(id) > maxSourceID {
		return fault.New(fault.NotFound, "There is no source %s.", quoted(id))
	}
	runs, err := s.o.Sources.Sync(c.r.Context(), c.p.User, id, a.Reset)
	if err != nil {
		return err
	}
	list := make([]runBody, len(runs))
	for i, r := range runs {
		list[i] = runBody{r.ID, r.Source, r.State, stamp(r.Started), r.Problem}
	}
	return c.answer(http.StatusAccepted, struct {
		session
		Runs []runBody `json:"runs"`
	}{a.session, list})
}
