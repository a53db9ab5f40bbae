package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/tools/index"
)

// A space is deleted in two steps. Accounts.DeleteSpace removes the row of the space and leaves
// a tombstone. From then on the space does not exist for anyone. endSpace then removes
// everything that belonged to the space. Each step of endSpace can be repeated, and the
// tombstone records when all are done. The next start continues a deletion that a crash
// interrupted.

// ending holds the parts of a running server that endSpace uses in addition to a Core.
type ending struct {
	// cutOff ends everything that runs in a space. It is nil if nothing can run.
	cutOff func(ctx context.Context, id space.SpaceID) error
	// dropIndex removes the space's search index and vectors.
	dropIndex func(ctx context.Context, id space.SpaceID) error
}

// deleteHere deletes a space in a data directory that no server uses.
func (c *Core) deleteHere(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (<-chan error, error) {
	if _, err := c.Accounts.DeleteSpace(ctx, by, id, owner); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	done <- nil
	return done, c.endSpace(context.WithoutCancel(ctx), id, ending{dropIndex: c.dropIndex})
}

// dropIndex removes a space's search index and vectors. No server may have the index open.
func (c *Core) dropIndex(ctx context.Context, id space.SpaceID) error {
	x, err := openIndex(c.Config, c.Log)
	if err != nil {
		return err
	}
	return errors.Join(c.dropFrom(ctx, x, id), x.Close())
}

func (c *Core) dropFrom(ctx context.Context, x *index.Index, id space.SpaceID) error {
	err := x.Drop(ctx, id)
	if _, made := x.VectorStatus(id); !made {
		err = errors.Join(err, forgetVectors(ctx, c.Config, x, id))
	}
	return err
}

// endSpace removes everything that belonged to a deleted space. It tries every step even if
// another fails. After a failure, the next attempt repeats all steps.
func (c *Core) endSpace(ctx context.Context, id space.SpaceID, e ending) error {
	c.Git.MarkDeleted(id)
	var errs []error
	if e.cutOff != nil {
		errs = append(errs, e.cutOff(ctx, id))
	}
	errs = append(errs,
		c.remotes.Remove(ctx, id),
		c.sources.RemoveAll(ctx, id),
		// This step must follow cutOff, because sandboxes store files until they have stopped.
		c.held.DropSpace(ctx, id),
		c.reviews.Forget(ctx, id),
		c.secrets.Forget(ctx, id),
		e.dropIndex(ctx, id),
		c.Git.Delete(ctx, id),
	)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Accounts.SpaceEnded(ctx, id)
}

// deletions holds the spaces that a server is deleting.
type deletions struct {
	end  func(ctx context.Context, id space.SpaceID) error
	ctx  context.Context //nolint:containedctx // of what runs in the background
	work *sync.WaitGroup
	log  *slog.Logger

	mu sync.Mutex
	by map[space.SpaceID]chan struct{} // each channel is closed when its space is removed
}

// endAgain is the delay before a failed deletion is tried again.
const endAgain = time.Minute

// begin starts to remove a deleted space in the background, once. The returned channel is
// closed when the space is removed.
func (d *deletions) begin(id space.SpaceID) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if done := d.by[id]; done != nil {
		return done
	}
	done := make(chan struct{})
	if d.by == nil {
		d.by = map[space.SpaceID]chan struct{}{}
	}
	d.by[id] = done
	d.work.Go(func() {
		for {
			err := d.end(d.ctx, id)
			if err == nil {
				close(done)
				return
			}
			if d.ctx.Err() != nil {
				return // the next start continues the deletion
			}
			d.log.Error("remove what a deleted space held; it is tried again", "space", id, "err", err)
			again := time.NewTimer(endAgain)
			select {
			case <-again.C:
			case <-d.ctx.Done():
				again.Stop()
				return
			}
		}
	})
	return done
}

// openDeletions prepares a server to delete spaces.
func (s *Server) openDeletions() {
	e := ending{cutOff: s.cutOff, dropIndex: func(ctx context.Context, id space.SpaceID) error {
		return s.dropFrom(ctx, s.index, id)
	}}
	s.deletions.end = func(ctx context.Context, id space.SpaceID) error { return s.endSpace(ctx, id, e) }
	s.deletions.ctx, s.deletions.work, s.deletions.log = s.ctx, &s.work, s.Log.With("part", "deletion")
}

// takeUpDeletions continues the deletions that an earlier process did not finish, and those
// of other processes that share the database.
func (s *Server) takeUpDeletions(ctx context.Context) error {
	all, err := s.Accounts.DeletedSpaces(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if !d.Ended || s.Git.Exists(d.ID) {
			s.Git.MarkDeleted(d.ID)
			s.deletions.begin(d.ID)
		}
	}
	return nil
}

// deleteSpace deletes a space for everyone, and removes its files and data in the
// background. The channel receives nil when they are removed, or an error if the server
// stops earlier.
func (s *Server) deleteSpace(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (<-chan error, error) {
	gone, err := s.Accounts.DeleteSpace(ctx, by, id, owner)
	if err != nil {
		return nil, err
	}
	s.Git.MarkDeleted(id)
	s.endRequests(id)
	if gone.Link != nil {
		s.github.client.Load().Ended(context.WithoutCancel(ctx), *gone.Link)
	}
	ended, done := s.deletions.begin(id), make(chan error, 1)
	s.work.Go(func() {
		select {
		case <-ended:
			done <- nil
		case <-s.ctx.Done():
			done <- s.ctx.Err()
		}
	})
	return done, nil
}

// endRequests ends the requests in progress in a space. It never blocks.
func (s *Server) endRequests(id space.SpaceID) {
	s.mcp.End(func(p auth.Principal) bool { return p.Space == id })
	s.live.EndSpace(id)
	s.Service.ForgetImport(id)
}

// cutOff ends everything that runs in a deleted space.
func (s *Server) cutOff(ctx context.Context, id space.SpaceID) error {
	s.endRequests(id)
	s.upkeep.forget(id)
	s.github.links.forget(id)
	if s.bash == nil {
		return nil
	}
	return s.bash.pool.EndSpace(ctx, id)
}

// endGivenRemotes removes the remotes of spaces that were given to another person, if an
// earlier process did not remove them.
func (s *Server) endGivenRemotes(ctx context.Context) error {
	const page = 1000
	var errs []error
	for before := int64(0); ; {
		gifts, err := s.Accounts.AuditOf(ctx, store.AuditFilter{Act: "space.give"}, before, page)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, g := range gifts {
			errs = append(errs, s.Service.EndGivenRemote(ctx, g))
		}
		if len(gifts) < page {
			return errors.Join(errs...)
		}
		before = gifts[len(gifts)-1].ID
	}
}
