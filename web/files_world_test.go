package web_test

import (
	"fmt"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/web"
)

// held is a world whose spaces hold files, with search over them.
type held struct {
	*world
	index *index.Index
}

// newHeld makes ada's space with files, given as pairs of path and content.
func newHeld(t *testing.T, files ...string) *held {
	t.Helper()
	return newHeldWith(t, func(*web.Options) {}, files...)
}

func newHeldWith(t *testing.T, with func(*web.Options), files ...string) *held {
	t.Helper()
	h := &held{}
	var err error
	h.index, err = index.Open(index.Options{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { h.index.Close() })
	h.world = newWorld(t, with)
	h.attach(func(r *service.Running) { r.Index = h.index })
	if len(files) > 0 {
		h.commit("Write what there is", files...)
	}
	return h
}

// commit writes files of ada's space as an AI; the content "\x00" deletes a file.
func (w *world) commit(message string, files ...string) space.Commit {
	w.t.Helper()
	return w.commitAs(space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}, Message: message, Tool: "bash", Client: "claude-code", Time: w.now}, files...)
}

func (w *world) commitAs(m space.Meta, files ...string) space.Commit {
	w.t.Helper()
	var cs space.ChangeSet
	for i := 0; i+1 < len(files); i += 2 {
		c := space.Change{Path: files[i], Content: []byte(files[i+1])}
		b, mode, ok, err := w.git.Blob(w.t.Context(), w.space.ID, "", space.Path(files[i]))
		must(w.t, err)
		if ok {
			c.Base, c.BaseMode = b, mode
		}
		if files[i+1] == "\x00" {
			c.Op, c.Content = space.Delete, nil
		}
		cs.Changes = append(cs.Changes, c)
	}
	c, err := w.git.Commit(w.t.Context(), w.space.ID, cs, m)
	must(w.t, err)
	if len(c.Rejected) > 0 {
		w.t.Fatalf("refused: %+v", c.Rejected)
	}
	return c
}

// indexed makes searches find what was committed. It reads the files, so the store may
// cache them.
func (h *held) indexed() *held {
	h.t.Helper()
	must(h.t, h.index.Update(h.t.Context(), h.space.ID, h.git))
	return h
}

// in returns an address of ada's space.
func (w *world) in(format string, args ...any) string {
	return "/spaces/" + string(w.space.ID) + "/" + fmt.Sprintf(format, args...)
}

// text returns the content of a file of ada's space; "" if there is none.
func (w *world) text(path string) string {
	w.t.Helper()
	_, data, err := w.git.Open(w.t.Context(), w.space.ID, "", space.Path(path))
	if fault.CodeOf(err) == fault.NotFound {
		return ""
	}
	must(w.t, err)
	return string(data)
}

// meanwhile runs each function once, between the look of a page and its commit.
func (w *world) meanwhile(happens ...func()) {
	w.screen = func(space.Path, []byte) error {
		if len(happens) > 0 {
			f, screen := happens[0], w.screen
			happens, w.screen = happens[1:], nil
			f()
			w.screen = screen
		}
		return nil
	}
}
