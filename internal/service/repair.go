package service

import (
	"context"
	"fmt"
	"slices"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// SpaceCheck is the result of checking a space.
type SpaceCheck struct {
	ID    space.SpaceID `json:"id"`
	Name  string        `json:"name"`  // empty if the space is not in the database
	Owner string        `json:"owner"` // empty if the space has no owner
	// Remote says that the space can be repaired from its remote.
	Remote bool `json:"remote"`
	// Error says why the space could not be checked.
	Error string `json:"error,omitempty"`
	gitstore.Checkup
}

// Label returns the name of the space for people.
func (c SpaceCheck) Label() string {
	switch {
	case c.Name == "":
		return string(c.ID)
	case c.Owner == "":
		return c.Name + " (" + string(c.ID) + ")"
	}
	return c.Owner + "/" + c.Name
}

// CheckSpacesInput is empty.
type CheckSpacesInput struct{}

// CheckSpaces reads every object of every space. It works without Options.Accounts and
// Options.Remotes, in case the database cannot be opened.
func (s *Service) CheckSpaces(ctx context.Context, a Actor, _ CheckSpacesInput) ([]SpaceCheck, error) {
	if err := s.authorize(a, "CheckSpaces"); err != nil {
		return nil, err
	}
	ids, err := s.git.Spaces()
	if err != nil {
		return nil, err
	}
	known := map[space.SpaceID]SpaceCheck{}
	if s.accounts != nil {
		names, err := s.accounts.UserNames(ctx)
		if err != nil {
			return nil, err
		}
		rows, err := s.accounts.Spaces(ctx)
		if err != nil {
			return nil, err
		}
		for _, sp := range rows {
			c := SpaceCheck{ID: sp.ID, Name: sp.Name}
			if !names[sp.Owner].Removed {
				c.Owner = names[sp.Owner].Name
			}
			known[sp.ID] = c
			if !slices.Contains(ids, sp.ID) {
				ids = append(ids, sp.ID)
			}
		}
	}
	out := []SpaceCheck{}
	progress := Progress(ctx)
	for i, id := range ids {
		c := known[id]
		c.ID = id
		progress(fmt.Sprintf("Checking space %d of %d: %s", i+1, len(ids), c.Label()))
		if s.remotes != nil {
			c.Remote, _ = s.hasCopies(ctx, id)
		}
		c.Checkup, err = s.git.Check(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case fault.CodeOf(err) == fault.NotFound && (known[id].ID == "" || s.isDeleted(ctx, id)):
			continue // deleted meanwhile
		case fault.CodeOf(err) == fault.NotFound:
			c.Error = "The repository is missing."
		case fault.CodeOf(err) == fault.Internal && err != nil:
			c.Error = err.Error()
		case err != nil:
			c.Error = fault.PublicOf(err)
		}
		out = append(out, c)
	}
	return out, nil
}

// hasCopies reports whether a sync ever reached the remote of a space.
func (s *Service) hasCopies(ctx context.Context, id space.SpaceID) (bool, error) {
	r, has, err := s.remotes.Get(ctx, id)
	return has && r.Branch != "", err
}

// isDeleted reports whether the database no longer has a space.
func (s *Service) isDeleted(ctx context.Context, id space.SpaceID) bool {
	_, err := s.accounts.Space(ctx, id)
	return fault.CodeOf(err) == fault.NotFound
}

// RepairSpaceInput names a space to repair.
type RepairSpaceInput struct {
	Space SpaceRef `json:"space"`
	// From is the path of a local repository with good copies. If From is empty, the copies
	// come from the space's remote.
	From string `json:"from"`
}

// RepairSpace replaces the damaged objects of a space with good copies, while syncs are
// paused.
func (s *Service) RepairSpace(ctx context.Context, a Actor, in RepairSpaceInput) (gitstore.Repaired, error) {
	m, err := s.anySpace(ctx, a, "RepairSpace", in.Space)
	if err != nil {
		return gitstore.Repaired{}, err
	}
	id, progress := m.ID, Progress(ctx)
	resume, err := s.remotes.Pause(ctx, id)
	if err != nil {
		return gitstore.Repaired{}, err
	}
	defer resume()
	var done gitstore.Repaired
	if in.From != "" {
		done, err = s.git.Repair(ctx, id, gitstore.Copies{Dir: in.From}, progress)
	} else if has, gerr := s.hasCopies(ctx, id); gerr == nil && !has {
		err = fault.New(fault.NotFound, "The space has no remote from which good copies could come. Name its repository in a backup with --from, such as spaces/%s.git there.", id)
	} else {
		err = s.remotes.Reach(ctx, id, func(e transport.Endpoint, branch string) (err error) {
			done, err = s.git.Repair(ctx, id, gitstore.Copies{Remote: &e, Branch: branch}, progress)
			return err
		})
	}
	if err != nil || done.Restored == 0 {
		return done, err
	}
	s.record(ctx, a, "space.repair", string(id), nil)
	// Sandboxes that started without the damaged files get them when they restart.
	return done, s.stopSpace(ctx, id)
}
