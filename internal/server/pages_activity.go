package server

import (
	"context"

	"satchel/internal/space"
	"satchel/web"
)

// addActivity gives the pages the events of spaces.
func (s *Server) addActivity(o *web.Options) {
	s.live = web.NewLive(web.LiveOptions{})
	// Streams end with the background work, so that open pages do not delay a shutdown.
	context.AfterFunc(s.ctx, s.live.Close)
	s.events.add(s.live)
	s.events.add(s.reviews)
	context.AfterFunc(s.ctx, s.reviews.Close) // reviews also end with the background work
	o.Live = s.live
	s.openDeletions()
}

// add adds a follower. Call it before anything is committed.
func (r *relay) add(one space.Events) {
	var all []space.Events
	if f := r.followers.Load(); f != nil {
		all = append(all, *f...)
	}
	r.follow(append(all, one)...)
}
