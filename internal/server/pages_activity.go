package server

import (
	"context"
	"time"

	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// addActivity gives the pages what happens in spaces.
func (s *Server) addActivity(o *web.Options) {
	s.live = web.NewLive(web.LiveOptions{})
	// Streams end with the background work, so that a server that stops does not
	// wait for pages that stay open.
	context.AfterFunc(s.ctx, s.live.Close)
	s.events.add(s.live)
	s.events.add(s.reviews)
	context.AfterFunc(s.ctx, s.reviews.Close) // with the other background work
	o.Live, o.Reviews, o.Remotes = s.live, s.reviews, pageRemotes{s}
	s.openDeletions()
	o.Ownership = pageSpaces{s}
}

// add lets one more follow, before anything is committed.
func (r *relay) add(one space.Events) {
	var all []space.Events
	if f := r.followers.Load(); f != nil {
		all = append(all, *f...)
	}
	r.follow(append(all, one)...)
}

// pageRemotes is the remotes as the pages have them.
type pageRemotes struct{ s *Server }

func (p pageRemotes) State(id space.SpaceID) string { return string(p.s.remotes.State(id)) }

func (p pageRemotes) Status(ctx context.Context, id space.SpaceID) (web.RemoteStatus, error) {
	st, err := p.s.remotes.Status(ctx, id)
	if err != nil {
		return web.RemoteStatus{}, err
	}
	out := web.RemoteStatus{
		State: string(st.State), Problem: string(st.Problem), Detail: st.Detail, Remedy: st.Remedy, Unpushed: st.Unpushed,
		LastCheck: st.LastCheck, LastSync: st.LastSync, NextTry: st.NextTry, Attempts: st.Attempts,
	}
	if r := st.Remote; r != nil {
		out.URL, out.Branch, out.Username, out.GitHub, out.Token = r.URL, r.Branch, r.Username, r.Kind == space.KindGitHub, r.Kind == space.KindToken
		if !r.Chosen {
			out.Branch = ""
		}
	}
	for _, l := range st.Locations {
		out.Refused = append(out.Refused, web.RefusedPlace{Commit: string(l.Commit), Path: l.Path, Line: l.Line, Rule: l.Rule})
	}
	for _, n := range st.Notes {
		out.Notes = append(out.Notes, web.RemoteNote{At: n.At, Text: n.Text})
	}
	return out, nil
}

func (p pageRemotes) Sync(ctx context.Context, id space.SpaceID) error {
	_, err := p.s.remotes.Sync(ctx, id, nil)
	return err
}

func (p pageRemotes) Set(ctx context.Context, by space.UserID, r web.NewRemote) ([]web.FoundSecret, error) {
	st, err := p.s.Service.SetRemote(ctx, service.Person(store.User{ID: by}), service.SetRemoteInput{
		Space: service.SpaceRef{ID: r.Space}, URL: r.URL, Branch: r.Branch, Username: r.Username, Token: r.Token,
		AllowSecrets: r.AllowSecrets, MaxSecrets: web.MaxFoundSecrets, Wait: time.Nanosecond,
	})
	var found []web.FoundSecret
	for _, f := range st.Secrets {
		found = append(found, web.FoundSecret{Path: f.Path, Line: f.Line, At: f.Commit, Description: f.Description, Fingerprint: f.Fingerprint})
	}
	return found, err
}

func (p pageRemotes) Remove(ctx context.Context, by space.UserID, id space.SpaceID) error {
	_, err := p.s.Service.RemoveRemote(ctx, service.Person(store.User{ID: by}), service.RemoveRemoteInput{Space: service.SpaceRef{ID: id}})
	return err
}

// auditPage notes what somebody did on a page, once it is done.
func (s *Server) auditPage(ctx context.Context, by space.UserID, action string, id space.SpaceID, detail map[string]any) {
	if err := s.Accounts.Record(context.WithoutCancel(ctx), store.Actor{User: by, Via: "web"}, action, string(id), detail); err != nil {
		s.Log.Error("write the audit log", "action", action, "err", err)
	}
}
