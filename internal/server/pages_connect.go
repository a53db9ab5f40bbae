package server

import (
	"context"
	"os"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// addConnect gives the pages of the first steps what they need.
func (s *Server) addConnect(o *web.Options) {
	if exe, err := os.Executable(); err == nil && s.Local() {
		o.Stdio = []string{exe, "stdio", "--data", s.Config.DataDir}
	}
	o.Setup = &setup{s}
}

// background starts work that ends with the server.
func (s *Server) background(work func(ctx context.Context)) error {
	if err := s.ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The server is about to stop. Try again in a moment.")
	}
	s.work.Go(func() { work(s.ctx) })
	return nil
}

// setup implements web.Setup.
type setup struct{ s *Server }

func (p setup) Fetch(id space.SpaceID) { p.s.remotes.Notify(id) }

func (p setup) Push(ctx context.Context, id space.SpaceID) (web.PushState, error) {
	if !p.s.remotes.Has(id) {
		return web.PushState{State: string(space.RemoteLocal)}, nil
	}
	st, err := p.s.remotes.Status(ctx, id)
	if err != nil {
		return web.PushState{}, err
	}
	out := web.PushState{
		Every: max(0, p.s.Config.Remotes.PollEvery), Told: reachable(p.s.issuer) && st.Remote != nil && st.Remote.Kind == space.KindGitHub,
		State: string(st.State), Detail: st.Detail, Remedy: st.Remedy, LastSync: st.LastSync,
	}
	if st.Remote != nil {
		out.Remote = st.Remote.URL
	}
	return out, nil
}

func (p setup) Import(ctx context.Context, by space.UserID, id space.SpaceID, url string, _ space.Meta) error {
	_, err := p.s.Service.StartImport(ctx, service.Person(store.User{ID: by}), service.StartImportInput{Space: service.SpaceRef{ID: id}, URL: url})
	return err
}

func (p setup) Imported(id space.SpaceID) (web.ImportState, bool) {
	i, err := p.s.Service.GetImport(context.Background(), service.Operator(), service.GetImportInput{Space: service.SpaceRef{ID: id}})
	if err != nil || i == nil {
		return web.ImportState{}, false
	}
	return web.ImportState(*i), true
}
