package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"satchel/auth"
	"satchel/gitstore/remotes"
	"satchel/internal/space"
)

// followedLinks records, for each space, the GitHub connection that its remote comes from. With
// this record, late news about a connection does not undo the change of a later command, and
// late news about a command does not end a newer connection.
type followedLinks struct {
	mu sync.Mutex
	by map[space.SpaceID]*followedLink
}

// followedLink is the record of one space. Its lock is held while the connection and the
// remote of the space are made to agree.
type followedLink struct {
	turn    chan struct{} // the lock, which is held while the channel contains its one value
	created time.Time     // RepositoryLink.Created of the connection whose remote is set
}

// take waits for the space's lock. release unlocks it.
func (f *followedLinks) take(ctx context.Context, id space.SpaceID) (l *followedLink, release func(), err error) {
	f.mu.Lock()
	if f.by == nil {
		f.by = map[space.SpaceID]*followedLink{}
	}
	l, ok := f.by[id]
	if !ok {
		l = &followedLink{turn: make(chan struct{}, 1)}
		f.by[id] = l
	}
	f.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
		return l, func() { <-l.turn }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// forget removes the record of a deleted space.
func (f *followedLinks) forget(id space.SpaceID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.by, id)
}

// settleTime is the maximum time of all requests to GitHub for one connection: three times
// the timeout of the GitHub client.
const settleTime = 30 * time.Second

// settleLink makes a space's connection and its remote agree. It sets the remote of a new
// connection and removes the remote of an ended one. It ends a connection whose remote a
// command replaced or removed.
func (s *Server) settleLink(ctx context.Context, id space.SpaceID) error {
	// Limit the time, because setting or removing a remote first ends the remote's running sync,
	// which may wait for GitHub.
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	ended, err := s.followLink(ctx, id)
	if err == nil && ended.Space != "" {
		s.github.client.Load().Ended(ctx, ended)
	}
	return err
}

// followLink does the work of settleLink, except for reporting the ended connection.
func (s *Server) followLink(ctx context.Context, id space.SpaceID) (ended auth.RepositoryLink, err error) {
	followed, release, err := s.github.links.take(ctx, id)
	if err != nil {
		return ended, err
	}
	defer release()
	c := s.github.client.Load()
	l, ok, err := c.Linked(ctx, id)
	if err != nil {
		return ended, err
	}
	had, has, err := s.remotes.Get(ctx, id)
	if err != nil {
		return ended, err
	}
	ours := has && had.Kind == space.KindGitHub
	at := c.CloneURL(l.FullName)
	switch {
	case !ok && ours:
		return ended, s.remotes.Remove(ctx, id)
	case !ok:
		return ended, nil
	case !ours && followed.created.Equal(l.Created):
		return l, s.Accounts.UnlinkRepository(ctx, "", "command line", id)
	case ours && had.URL == at:
		followed.created = l.Created
		s.remotes.Notify(id) // the connection may now allow pushes, or refuse them
		return ended, nil
	}
	r := remotes.SetRequest{Space: id, URL: at, Kind: space.KindGitHub, Trusted: c.Address() != "https://github.com"}
	if ours && had.Chosen {
		r.Branch = had.Branch
	}
	if err := s.remotes.Set(ctx, r); err != nil {
		return ended, err
	}
	followed.created = l.Created
	return ended, nil
}

// remoteChanged handles an audit log entry that may affect a space's remote, for example because
// another process connected the space, or a command set another remote.
func (s *Server) remoteChanged(ctx context.Context, id space.SpaceID) {
	if err := s.settleLink(ctx, id); err != nil && ctx.Err() == nil {
		s.Log.Error("bring a connected repository and its space's remote in line", "space", id, "err", err)
	}
}

// recallLinks records, when the server starts, that each connected space has the remote of its
// connection. A different remote is then known to come from a command that ran while no server
// ran. Call recallLinks before anything else uses the connections.
func (s *Server) recallLinks(ctx context.Context) error {
	links, err := s.Accounts.RepositoryLinks(ctx)
	if err != nil {
		return err
	}
	for _, l := range links {
		followed, release, err := s.github.links.take(ctx, l.Space)
		if err != nil {
			return err
		}
		followed.created = l.Created
		release()
	}
	return nil
}

// settleGitHub updates remotes for the connections that changed while no server ran.
func (s *Server) settleGitHub(ctx context.Context) error {
	spaces, err := s.Accounts.Spaces(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, sp := range spaces {
		errs = append(errs, s.settleLink(ctx, sp.ID))
	}
	return errors.Join(errs...)
}
