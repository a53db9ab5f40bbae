package service

import (
	"context"
	"slices"
	"strings"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Right is what an operation requires of its actor. The operator has every right.
type Right struct {
	// Scope is the scope that a client needs. If it is empty, clients cannot perform the
	// operation.
	Scope space.Scope
	// Role is the lowest role in the space with which the operation is allowed. It is empty for
	// operations that are not about a space.
	Role space.Role
	// Admin restricts the operation to administrators.
	Admin bool
	// Self lets everyone perform the operation on their own data.
	Self bool
	// Synced lets the operator perform the operation in the space of a synced source. Without
	// Synced, an operation that changes the space is refused there, because only the sync may.
	Synced bool
}

// SpaceRef identifies a space by its ID. At the command line it can instead hold a member
// and the name of the space. An empty User then means the first administrator, and an empty
// Name the member's first space.
type SpaceRef struct {
	ID   space.SpaceID `json:"id,omitempty"`
	User string        `json:"user,omitempty"`
	Name string        `json:"name,omitempty"`
}

// authorize checks that the actor may perform an operation that is not about a space.
func (s *Service) authorize(a Actor, operation string) error {
	r, ok := s.rights[operation]
	switch {
	case !ok:
		return fault.New(fault.Internal, "The operation %s has no rights.", operation)
	case a.kind == operator:
		return nil
	case a.kind == nobody:
		return fault.New(fault.Unauthenticated, "Sign in first.")
	case r.Admin && !a.admin:
		return fault.New(fault.Forbidden, "Only an admin of this server may do that.")
	case a.kind == client && r.Scope == "":
		return fault.New(fault.Forbidden, "Only a person who is signed in may do that.")
	case a.kind == client && !a.Can(r.Scope):
		return fault.New(fault.Forbidden, "This needs the scope %q, which the client was not given.", r.Scope)
	}
	return nil
}

// authorizeSpace checks that the actor may perform an operation in a space. It returns the
// membership of the actor. For the operator, it returns the membership of the member whom ref
// names, or only the space if ref has an ID. The error is a fault.NotFound if the actor is not a
// member of the space.
func (s *Service) authorizeSpace(ctx context.Context, a Actor, operation string, ref SpaceRef) (store.Membership, error) {
	if err := s.authorize(a, operation); err != nil {
		return store.Membership{}, err
	}
	m, err := s.membership(ctx, a, ref)
	if err != nil {
		return store.Membership{}, err
	}
	need := s.rights[operation]
	if err := s.leaveToSync(operation, m); err != nil {
		return store.Membership{}, err
	}
	if m.Role.Includes(need.Role) || a.kind == operator && (ref.ID != "" || strings.Contains(ref.Name, "/")) {
		return m, nil
	}
	if need.Role == space.Owner {
		return store.Membership{}, fault.New(fault.Forbidden, "Only the owner of the space %s may do that. The owner is %s.", m.Name, m.OwnerLabel())
	}
	return store.Membership{}, fault.New(fault.Forbidden, "You may only read the space %s. Its owner can let you change it.", m.Name)
}

// leaveToSync returns an error if an operation may not change the space of a synced source.
func (s *Service) leaveToSync(operation string, m store.Membership) error {
	need := s.rights[operation]
	if m.Source == "" || need.Synced || need.Role != space.Editor && need.Role != space.Owner {
		return nil
	}
	return fault.New(fault.Forbidden, "This space belongs to the source %s. Only its updates change it.", m.Source)
}

func (s *Service) membership(ctx context.Context, a Actor, ref SpaceRef) (store.Membership, error) {
	if a.kind == operator {
		if ref.ID != "" {
			sp, err := s.accounts.Space(ctx, ref.ID)
			return store.Membership{Space: sp}, err
		}
		u, err := s.NamedUser(ctx, ref.User)
		if err != nil {
			return store.Membership{}, err
		}
		return s.accounts.FindSpace(ctx, u.ID, ref.Name)
	}
	gone := fault.New(fault.NotFound, "There is no such space.")
	switch {
	case ref.ID == "" || a.kind == client && ref.ID != a.space:
		return store.Membership{}, gone
	case a.kind == client:
		// The role is current, because the client's token is checked on each request.
		return store.Membership{Space: store.Space{ID: a.space, Name: a.name}, Role: a.role}, nil
	}
	all, err := s.accounts.SpacesOf(ctx, a.user)
	if err != nil {
		return store.Membership{}, err
	}
	if i := slices.IndexFunc(all, func(m store.Membership) bool { return m.ID == ref.ID }); i >= 0 {
		return all[i], nil
	}
	return store.Membership{}, gone
}

// onBehalf returns the actor with the person for whom it acts. The operator acts for the
// member in ref, or for the owner of the space.
func (s *Service) onBehalf(ctx context.Context, a Actor, ref SpaceRef) (Actor, error) {
	if a.kind != operator {
		return a, nil
	}
	var u store.User
	var err error
	if ref.ID == "" {
		u, err = s.NamedUser(ctx, ref.User)
	} else {
		var sp store.Space
		if sp, err = s.accounts.Space(ctx, ref.ID); err == nil {
			u, err = s.accounts.User(ctx, sp.Owner)
		}
	}
	a.user, a.author = u.ID, authorOf(u)
	return a, err
}

// NamedUser finds a person by name. An empty name means the first administrator or, if
// there is none, the only user.
func (s *Service) NamedUser(ctx context.Context, name string) (store.User, error) {
	if name != "" {
		return s.accounts.FindUser(ctx, name)
	}
	users, err := s.accounts.ListUsers(ctx)
	if err != nil {
		return store.User{}, err
	}
	var first store.User
	for _, u := range users {
		if u.Admin && (first.ID == "" || u.Created.Before(first.Created)) {
			first = u
		}
	}
	switch {
	case first.ID != "":
		return first, nil
	case len(users) == 1:
		return users[0], nil
	case len(users) > 1:
		return store.User{}, fault.New(fault.Invalid, "There are %d users, and none of them is an admin. Name one with --user.", len(users))
	}
	return store.User{}, fault.New(fault.NotFound, "There is no user yet: start satchel serve once, or use satchel user add NAME.")
}
