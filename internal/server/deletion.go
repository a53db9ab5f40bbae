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

// A space is deleted in two steps. Accounts.DeleteSpace removes its row and leaves a
// tombstone: from that commit on it is one that never was. What it held is removed
// after, by endSpace, each step of which can be done again; the tombstone says that it
// is over. What a crash leaves is taken up at the next start.

// ending is what endSpace ends besides what a Core has.
type ending struct {
	// cutOff ends what runs in a space or is in progress with it; nil if nothing
	// can be.
	cutOff func(ctx context.Context, id space.SpaceID) error
	// dropIndex removes its search index and vectors.
	dropIndex func(ctx context.Context, id space.SpaceID) error
}

// deleteHere deletes a space on a data directory on which no server works.
func (c *Core) deleteHere(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (<-chan error, error) {
	if _, err := c.Accounts.DeleteSpace(ctx, by, id, owner); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	done <- nil
	return done, c.endSpace(context.WithoutCancel(ctx), id, ending{dropIndex: c.dropIndex})
}

// dropIndex removes a space's index, where no server has it open.
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

// endSpace removes what a deleted space held. Each step is tried, whatever became of
// the others, and all are tried again where one failed.
func (c *Core) endSpace(ctx context.Context, id space.SpaceID, e ending) error {
	c.Git.MarkDeleted(id)
	var errs []error
	if e.cutOff != nil {
		errs = append(errs, e.cutOff(ctx, id))
	}
	errs = append(errs,
		c.remotes.Remove(ctx, id),
		c.sources.RemoveAll(ctx, id),
		// After the stop, by which its sandboxes may still have kept something.
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

// deletions are the spaces whose end a server works on.
type deletions struct {
	end  func(ctx context.Context, id space.SpaceID) error
	ctx  context.Context //nolint:containedctx // of what runs in the background
	work *sync.WaitGroup
	log  *slog.Logger

	mu sync.Mutex
	by map[space.SpaceID]chan struct{} // closed when it is over
}

// endAgain is how long a failed deletion waits until it is tried again.
const endAgain = time.Minute

// begin has a deleted space ended in the background, once, and returns what is
// closed when that is done.
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
				return // the next start takes it up
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

// openDeletions readies a server to delete spaces.
func (s *Server) openDeletions() {
	e := ending{cutOff: s.cutOff, dropIndex: func(ctx context.Context, id space.SpaceID) error {
		return s.dropFrom(ctx, s.index, id)
	}}
	s.deletions.end = func(ctx context.Context, id space.SpaceID) error { return s.endSpace(ctx, id, e) }
	s.deletions.ctx, s.deletions.work, s.deletions.log = s.ctx, &s.work, s.Log.With("part", "deletion")
}

// takeUpDeletions ends the spaces whose deletion an earlier process did not get
// through, and those that another one deleted in the database that both use.
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

// deleteSpace deletes a space for everybody, and removes in the background what it held.
// done gets nil when that is over, or an error if the server stops before.
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

// endRequests ends what is in progress in a space. It never blocks.
func (s *Server) endRequests(id space.SpaceID) {
	s.mcp.End(func(p auth.Principal) bool { return p.Space == id })
	s.live.EndSpace(id)
	s.Service.ForgetImport(id)
}

// cutOff ends what runs in a space that was deleted.
func (s *Server) cutOff(ctx context.Context, id space.SpaceID) error {
	s.endRequests(id)
	s.upkeep.forget(id)
	s.github.links.forget(id)
	if s.bash == nil {
		return nil
	}
	return s.bash.pool.EndSpace(ctx, id)
}

// endGivenRemotes ends the remotes that an earlier process left to spaces that were
// given away.
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
