package service

import (
	"context"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// DeleteSpaceInput names a space.
type DeleteSpaceInput struct {
	Space SpaceRef `json:"space"`
}

// SpaceDeletion describes the deletion of a space. Its JSON is part of the command line's
// contract.
type SpaceDeletion struct {
	ID   space.SpaceID `json:"id"`
	Name string        `json:"name"`
	// Owner is the name of the owner. If the owner was removed, Owner is empty and OwnerWas
	// is the name.
	Owner    string `json:"owner"`
	OwnerWas string `json:"owner_was,omitempty"`
	// Members counts the members without the owner, and Sources the published sources.
	Members int `json:"members"`
	Sources int `json:"sources"`
	// Remote is the address of the remote, or empty. Unpushed counts the commits that the
	// remote does not have.
	Remote   string `json:"remote,omitempty"`
	Unpushed int    `json:"unpushed,omitempty"`
	Deleted  bool   `json:"deleted"`
}

// OwnerLabel returns a text for people that names the owner, even if the owner was removed.
func (d SpaceDeletion) OwnerLabel() string { return store.OwnerLabel(d.Owner, d.OwnerWas) }

// PreviewDeletion returns what the deletion of a space would remove.
func (s *Service) PreviewDeletion(ctx context.Context, a Actor, in DeleteSpaceInput) (SpaceDeletion, error) {
	m, err := s.anySpace(ctx, a, "PreviewDeletion", in.Space)
	if err != nil {
		return SpaceDeletion{}, err
	}
	return s.describeDeletion(ctx, m.Space)
}

func (s *Service) describeDeletion(ctx context.Context, sp store.Space) (SpaceDeletion, error) {
	names, err := s.accounts.UserNames(ctx)
	if err != nil {
		return SpaceDeletion{}, err
	}
	out := SpaceDeletion{ID: sp.ID, Name: sp.Name, Owner: names[sp.Owner].Name}
	if names[sp.Owner].Removed {
		out.Owner, out.OwnerWas = "", out.Owner
	}
	members, err := s.accounts.Members(ctx, sp.ID)
	if err != nil {
		return SpaceDeletion{}, err
	}
	for _, m := range members {
		if m.Role != space.Owner {
			out.Members++
		}
	}
	// A space that cannot be read can still be deleted.
	if st, err := s.remotes.Status(ctx, sp.ID); err == nil {
		if st.Remote != nil {
			out.Remote = PublicURL(st.Remote.URL)
		}
		out.Unpushed = st.Unpushed
	}
	out.Sources = len(s.sources.Of(sp.ID))
	return out, nil
}

// deletionWait is how long the operator waits for the removal of a space's files.
const deletionWait = 30 * time.Second

// DeleteSpace deletes a space for good. Nobody can reach the space afterwards. Its files
// are removed in the background. Only the operator waits for the removal.
func (s *Service) DeleteSpace(ctx context.Context, a Actor, in DeleteSpaceInput) (SpaceDeletion, error) {
	m, err := s.anySpace(ctx, a, "DeleteSpace", in.Space)
	if err != nil {
		return SpaceDeletion{}, err
	}
	out, err := s.describeDeletion(ctx, m.Space)
	if err != nil {
		return SpaceDeletion{}, err
	}
	remove := s.running.DeleteSpace
	if remove == nil {
		remove = s.o.DeleteSpace
	}
	if remove == nil {
		return SpaceDeletion{}, fault.New(fault.Unavailable, "Spaces cannot be deleted here.")
	}
	done, err := remove(ctx, a.audit(), m.ID, a.user) // remove also writes the audit entry
	if err != nil {
		return SpaceDeletion{}, err
	}
	out.Deleted = true
	if a.kind != operator {
		return out, nil
	}
	late := time.NewTimer(deletionWait)
	defer late.Stop()
	select {
	case err := <-done:
		if err == nil {
			return out, nil
		}
	case <-late.C:
	case <-ctx.Done():
	}
	return out, fault.New(fault.Unavailable, "The space was deleted, and nobody can reach it. Its files are still being removed. If that fails, the server's log says so.")
}
