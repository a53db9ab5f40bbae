package admin

import (
	"context"
	"fmt"
	"slices"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Upkeep finds and repairs damage to the disk.
type Upkeep interface {
	// CheckSpaces reads every object of every space.
	CheckSpaces(ctx context.Context, _ struct{}, progress func(string)) ([]SpaceCheck, error)
	// RepairSpace replaces damaged objects of a space by good copies.
	RepairSpace(ctx context.Context, r RepairRequest, progress func(string)) (gitstore.Repaired, error)
}

// SpaceCheck is the result of checking a space.
type SpaceCheck struct {
	ID    space.SpaceID `json:"id"`
	Name  string        `json:"name"`  // empty if the database does not have the space
	Owner string        `json:"owner"` // empty if the space has no owner
	// Remote says whether the space can be repaired from its remote.
	Remote bool `json:"remote"`
	// Error says why the space could not be checked.
	Error string `json:"error,omitempty"`
	gitstore.Checkup
}

// Label names the space for people.
func (s SpaceCheck) Label() string {
	switch {
	case s.Name == "":
		return string(s.ID)
	case s.Owner == "":
		return s.Name + " (" + string(s.ID) + ")"
	}
	return s.Owner + "/" + s.Name
}

// RepairRequest names a space to repair, by its name or its ID.
type RepairRequest struct {
	SpaceRequest
	// From is the path of a repository on this machine that has good copies. If it is
	// empty, they come from the space's remote.
	From string `json:"from"`
}

// CheckSpaces checks one space after another. It works without Accounts and Remotes,
// for when the database cannot be opened.
func (l *Local) CheckSpaces(ctx context.Context, _ struct{}, progress func(string)) ([]SpaceCheck, error) {
	ids, err := l.Git.Spaces()
	if err != nil {
		return nil, err
	}
	known := map[space.SpaceID]SpaceCheck{}
	if l.Accounts != nil {
		names, err := l.Accounts.UserNames(ctx)
		if err != nil {
			return nil, err
		}
		rows, err := l.Accounts.Spaces(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range rows {
			c := SpaceCheck{ID: s.ID, Name: s.Name}
			if !names[s.Owner].Removed {
				c.Owner = names[s.Owner].Name
			}
			known[s.ID] = c
			if !slices.Contains(ids, s.ID) {
				ids = append(ids, s.ID)
			}
		}
	}
	out := []SpaceCheck{}
	for i, id := range ids {
		c := known[id]
		c.ID = id
		progress(fmt.Sprintf("Checking space %d of %d: %s", i+1, len(ids), c.Label()))
		if l.Remotes != nil {
			c.Remote, _ = l.hasCopies(ctx, id)
		}
		c.Checkup, err = l.Git.Check(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case fault.CodeOf(err) == fault.NotFound && (known[id].ID == "" || l.gone(ctx, id)):
			continue // it was deleted meanwhile
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

// hasCopies reports whether a space has a remote that a sync has reached.
func (l *Local) hasCopies(ctx context.Context, id space.SpaceID) (bool, error) {
	r, has, err := l.Remotes.Get(ctx, id)
	return has && r.Branch != "", err
}

// gone reports whether the database no longer has a space.
func (l *Local) gone(ctx context.Context, id space.SpaceID) bool {
	_, err := l.Accounts.Space(ctx, id)
	return fault.CodeOf(err) == fault.NotFound
}

// RepairSpace repairs a space. It pauses syncs meanwhile.
func (l *Local) RepairSpace(ctx context.Context, r RepairRequest, progress func(string)) (gitstore.Repaired, error) {
	id, err := l.givenSpace(ctx, r.SpaceRequest)
	if err != nil {
		return gitstore.Repaired{}, err
	}
	resume, err := l.Remotes.Pause(ctx, id)
	if err != nil {
		return gitstore.Repaired{}, err
	}
	defer resume()
	var done gitstore.Repaired
	if r.From != "" {
		done, err = l.Git.Repair(ctx, id, gitstore.Copies{Dir: r.From}, progress)
	} else if has, gerr := l.hasCopies(ctx, id); gerr == nil && !has {
		err = fault.New(fault.NotFound, "The space has no remote from which good copies could come. Name its repository in a backup with --from, such as spaces/%s.git there.", id)
	} else {
		err = l.Remotes.Reach(ctx, id, func(e transport.Endpoint, branch string) (err error) {
			done, err = l.Git.Repair(ctx, id, gitstore.Copies{Remote: &e, Branch: branch}, progress)
			return err
		})
	}
	if err != nil {
		return done, err
	}
	if done.Restored > 0 {
		l.audit(ctx, "space.repair", id)
		// Sandboxes that were started without what was damaged get it when they start.
		if err := l.stopSpace(ctx, id); err != nil {
			return done, err
		}
	}
	return done, nil
}
