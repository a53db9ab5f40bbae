package server

import (
	"context"

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
	o.Live = s.live
	s.openDeletions()
}

// add lets one more follow, before anything is committed.
func (r *relay) add(one space.Events) {
	var all []space.Events
	if f := r.followers.Load(); f != nil {
		all = append(all, *f...)
	}
	r.follow(append(all, one)...)
}
