package web_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/reviews"
	"satchel/gitstore/sources"
	"satchel/internal/seal"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/tools/index"
	"satchel/web"
)

// held is a world whose spaces hold files: a real store of spaces, and search over it.
type held struct {
	*world
	dir   string // of the spaces
	git   *gitstore.Store
	index *index.Index
}

// newHeld makes ada's space with files, given as pairs of path and content.
func newHeld(t *testing.T, files ...string) *held {
	t.Helper()
	return newHeldWith(t, func(*web.Options) {}, files...)
}

func newHeldWith(t *testing.T, with func(*web.Options), files ...string) *held {
	t.Helper()
	h := &held{dir: t.TempDir()}
	var err error
	h.git, err = gitstore.Open(gitstore.Options{Dir: h.dir})
	must(t, err)
	t.Cleanup(func() { _ = h.git.Close() })
	h.index, err = index.Open(index.Options{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { h.index.Close() })
	ws := h.git
	published := sources.New(sources.Options{
		Store: h.git, Dir: t.TempDir(), LookEvery: time.Hour,
		Owned: func(context.Context, space.UserID) ([]space.SpaceID, error) { return nil, nil },
	})
	t.Cleanup(published.Close)
	h.world = newWorld(t, func(o *web.Options) {
		o.Workspace, o.History, o.Operations = ws, h.git, operations(t, o, h.git, nil)
		o.Service = service.New(service.Options{Accounts: o.Accounts, Git: h.git, Sources: published, Now: o.Now})
		o.Service.Attach(service.Running{Index: h.index})
		with(o)
	})
	for _, id := range []space.SpaceID{h.space.ID, h.evil.ID} {
		_, err = h.git.Create(t.Context(), id, space.ChangeSet{}, space.Meta{Author: space.Person{Name: "Satchel", Email: "satchel@localhost"}, Message: "Begin", Time: h.now.Add(-time.Hour)})
		must(t, err)
	}
	if len(files) > 0 {
		h.commit("Write what there is", files...)
	}
	return h
}

// operations are those of a real service on the store of spaces.
func operations(t *testing.T, o *web.Options, git *gitstore.Store, r *reviews.Reviews) web.Operations {
	t.Helper()
	box, err := seal.Load(filepath.Join(t.TempDir(), "server.key"))
	must(t, err)
	pending, err := pending.Open(pending.Options{Dir: t.TempDir(), Seal: box})
	must(t, err)
	return service.New(service.Options{Accounts: o.Accounts, Git: git, Remotes: remotes.New(remotes.Options{}), Held: pending, Reviews: r})
}

// commit writes files of ada's space as an AI; the content "\x00" deletes a file.
func (h *held) commit(message string, files ...string) space.Commit {
	h.t.Helper()
	return h.commitAs(space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}, Message: message, Tool: "bash", Client: "claude-code", Time: h.now}, files...)
}

func (h *held) commitAs(m space.Meta, files ...string) space.Commit {
	h.t.Helper()
	var cs space.ChangeSet
	for i := 0; i+1 < len(files); i += 2 {
		c := space.Change{Path: files[i], Content: []byte(files[i+1])}
		b, mode, ok, err := h.git.Blob(h.t.Context(), h.space.ID, "", space.Path(files[i]))
		must(h.t, err)
		if ok {
			c.Base, c.BaseMode = b, mode
		}
		if files[i+1] == "\x00" {
			c.Op, c.Content = space.Delete, nil
		}
		cs.Changes = append(cs.Changes, c)
	}
	c, err := h.git.Commit(h.t.Context(), h.space.ID, cs, m)
	must(h.t, err)
	if len(c.Rejected) > 0 {
		h.t.Fatalf("refused: %+v", c.Rejected)
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
func (h *held) in(format string, args ...any) string {
	return "/spaces/" + string(h.space.ID) + "/" + fmt.Sprintf(format, args...)
}
