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

// followedLinks knows which connections to GitHub gave their spaces the remote, so
// that news of one that comes late does not undo what a command did since, and news
// of a command's does not end a connection that was made since.
type followedLinks struct {
	mu sync.Mutex
	by map[space.SpaceID]*followedLink
}

// followedLink is of one space, and held while its connection and its remote are
// brought in line.
type followedLink struct {
	turn    chan struct{} // of one
	created time.Time     // RepositoryLink.Created of the one that has its remote
}

// take waits for a space's turn, which its release ends.
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

// forget drops what is known of a space that was deleted.
func (f *followedLinks) forget(id space.SpaceID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.by, id)
}

// settleTime bounds the requests to GitHub that settling a connection makes: three
// of the client's timeouts.
const settleTime = 30 * time.Second

// settleLink brings a space's connection and its remote in line: the remote of one
// that was just connected is the repository, and ends with the connection; a
// connection whose remote was replaced by a command, or taken, ends with it.
func (s *Server) settleLink(ctx context.Context, id space.SpaceID) error {
	// A sync that is to end may itself wait for GitHub.
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	ended, err := s.followLink(ctx, id)
	if err == nil && ended.Space != "" {
		s.github.client.Load().Ended(ctx, ended)
	}
	return err
}

// followLink is settleLink, but for telling of the connection that it ended.
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
		s.remotes.Notify(id) // what kept it from pushing may be over, or have begun
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

// remoteChanged acts on what the audit log says of a space's remote: another
// process connected it, or somebody gave it another remote by a command.
func (s *Server) remoteChanged(ctx context.Context, id space.SpaceID) {
	if err := s.settleLink(ctx, id); err != nil && ctx.Err() == nil {
		s.Log.Error("bring a connected repository and its space's remote in line", "space", id, "err", err)
	}
}

// recallLinks takes the connections that there are at the start for ones that had
// their remote: where it is another one now, a command replaced it meanwhile. It is
// called before anything else looks at them.
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

// settleGitHub brings remotes in line with what was connected while no server ran.
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
