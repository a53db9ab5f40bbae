package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// SpaceInfo describes a space to the operator.
type SpaceInfo struct {
	ID   space.SpaceID `json:"id"`
	Name string        `json:"name"`
	// Owner is the name of the owner. If the owner was removed, Owner is empty and OwnerWas
	// is the name.
	Owner    string `json:"owner"`
	OwnerWas string `json:"owner_was,omitempty"`
	// Repository is the path of the bare repository.
	Repository string `json:"repository"`
	// Head is empty if the space is too damaged to open.
	Head space.CommitID `json:"head"`
}

// OwnerLabel returns a text for people that names the owner, even if the owner was removed.
func (i SpaceInfo) OwnerLabel() string { return store.OwnerLabel(i.Owner, i.OwnerWas) }

// ListSpacesInput names a member; empty lists every space.
type ListSpacesInput struct {
	User string `json:"user,omitempty"`
}

// ListSpaces lists spaces with their repositories.
func (s *Service) ListSpaces(ctx context.Context, a Actor, in ListSpacesInput) ([]SpaceInfo, error) {
	if err := s.authorize(a, "ListSpaces"); err != nil {
		return nil, err
	}
	var rows []store.Space
	var err error
	if in.User == "" {
		rows, err = s.accounts.Spaces(ctx)
	} else {
		var u store.User
		if u, err = s.accounts.FindUser(ctx, in.User); err == nil {
			var all []store.Membership
			all, err = s.accounts.SpacesOf(ctx, u.ID)
			for _, m := range all {
				rows = append(rows, m.Space)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	names, err := s.accounts.UserNames(ctx)
	if err != nil {
		return nil, err
	}
	out := []SpaceInfo{}
	for _, sp := range rows {
		info, err := s.spaceInfo(ctx, sp, names)
		if err != nil && fault.CodeOf(err) != fault.Damaged { // a damaged space is listed without its head
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

func (s *Service) spaceInfo(ctx context.Context, sp store.Space, names map[space.UserID]store.UserName) (SpaceInfo, error) {
	head, err := s.git.Head(ctx, sp.ID)
	out := SpaceInfo{ID: sp.ID, Name: sp.Name, Owner: names[sp.Owner].Name, Head: head, Repository: filepath.Join(s.o.SpacesDir, string(sp.ID)+".git")}
	if names[sp.Owner].Removed {
		out.Owner, out.OwnerWas = "", out.Owner
	}
	return out, err
}

func (s *Service) oneSpaceInfo(ctx context.Context, id space.SpaceID) (SpaceInfo, error) {
	sp, err := s.accounts.Space(ctx, id)
	if err != nil {
		return SpaceInfo{}, err
	}
	names, err := s.accounts.UserNames(ctx, sp.Owner)
	if err != nil {
		return SpaceInfo{}, err
	}
	return s.spaceInfo(ctx, sp, names)
}

// MaxSpaces returns how many spaces a person can create and own.
func (s *Service) MaxSpaces() int { return s.o.MaxSpaces }

// CreateSpaceInput names a new space and, at the command line, its owner.
type CreateSpaceInput struct {
	User string `json:"user,omitempty"`
	Name string `json:"name"`
}

// CreateSpace creates a space for the actor, or for the person whom the operator names. It
// creates the repository first; see createUser.
func (s *Service) CreateSpace(ctx context.Context, a Actor, in CreateSpaceInput) (SpaceInfo, error) {
	if err := s.authorize(a, "CreateSpace"); err != nil {
		return SpaceInfo{}, err
	}
	if err := store.CheckName(in.Name); err != nil {
		return SpaceInfo{}, err
	}
	u, err := s.self(ctx, a, in.User)
	if err != nil {
		return SpaceInfo{}, err
	}
	if a.kind == person {
		all, err := s.accounts.SpacesOf(ctx, u.ID)
		if err != nil {
			return SpaceInfo{}, err
		}
		if own := slices.DeleteFunc(all, func(m store.Membership) bool { return m.Role != space.Owner }); len(own) >= s.o.MaxSpaces {
			return SpaceInfo{}, fault.New(fault.Limited, "You have as many spaces of your own as this server allows.")
		}
	}
	id := space.NewSpaceID()
	author := auth.Principal{User: u.ID, UserName: u.Name, Display: u.Display, Email: u.Email}.Person()
	if _, err := s.git.Create(ctx, id, gitstore.StartingTree(), space.Meta{Author: author, Message: "Start the space", Tool: "satchel"}); err != nil {
		return SpaceInfo{}, err
	}
	if _, err := s.accounts.CreateSpace(ctx, a.audit(), u.ID, id, in.Name); err != nil {
		return SpaceInfo{}, errors.Join(err, s.git.Remove(context.WithoutCancel(ctx), id))
	}
	if s.running.SpaceCreated != nil {
		s.running.SpaceCreated(id)
	}
	return s.oneSpaceInfo(ctx, id)
}

// RenameSpaceInput names a space and its new name.
type RenameSpaceInput struct {
	Space SpaceRef `json:"space"`
	Name  string   `json:"name"`
}

// RenameSpace changes the name of a space.
func (s *Service) RenameSpace(ctx context.Context, a Actor, in RenameSpaceInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "RenameSpace", in.Space)
	if err != nil {
		return None{}, err
	}
	return None{}, s.accounts.RenameSpace(ctx, a.audit(), m.ID, in.Name)
}

// anySpace is like authorizeSpace, for operations on spaces that may have no owner. The
// name in ref may be an ID at the command line. A name without an owner finds only spaces
// that the person owns, so that nobody gives away a space by mistake.
func (s *Service) anySpace(ctx context.Context, a Actor, operation string, ref SpaceRef) (store.Membership, error) {
	if a.kind != operator || ref.ID != "" {
		return s.authorizeSpace(ctx, a, operation, ref)
	}
	if id, err := space.ParseSpaceID(ref.Name); err == nil {
		if sp, err := s.accounts.Space(ctx, id); err == nil {
			m := store.Membership{Space: sp}
			return m, s.leaveToSync(operation, m)
		}
	}
	m, err := s.membership(ctx, a, ref)
	if err == nil && m.Role != space.Owner && !strings.Contains(ref.Name, "/") {
		return store.Membership{}, fault.New(fault.Invalid, "The space %s belongs to %s, not to this person. Give its ID: %s.", m.Name, m.OwnerLabel(), m.ID)
	}
	return m, err
}

// GiveSpaceInput names a space and its new owner.
type GiveSpaceInput struct {
	Space SpaceRef `json:"space"` // at the command line, its name may be an ID
	To    UserRef  `json:"to"`
}

// GiveSpace transfers a space to another person; the former owner becomes an editor. Only
// the operator can transfer it to a person who is not a member. The remote is removed,
// because its token and repository belong to the former owner.
func (s *Service) GiveSpace(ctx context.Context, a Actor, in GiveSpaceInput) (SpaceInfo, error) {
	m, err := s.anySpace(ctx, a, "GiveSpace", in.Space)
	if err != nil {
		return SpaceInfo{}, err
	}
	to, err := s.findUser(ctx, in.To)
	if err != nil {
		return SpaceInfo{}, err
	}
	if a.kind == operator {
		err = s.accounts.GiveSpace(ctx, a.audit(), m.ID, to.ID)
	} else {
		err = s.accounts.GiveOwnSpace(ctx, a.audit(), a.user, m.ID, to.ID)
	}
	if err != nil {
		return SpaceInfo{}, err
	}
	ctx = context.WithoutCancel(ctx)
	s.sources.Look(ctx)
	if err := s.endRemote(ctx, a, m.ID); err != nil {
		if a.kind != operator {
			s.log.Error("remove the remote of a given space", "space", m.ID, "err", err)
			return s.oneSpaceInfo(ctx, m.ID)
		}
		return SpaceInfo{}, fault.Wrap(err, fault.Unavailable, "The space was transferred, but its remote, which has the former owner's token, could not be removed. A running server tries again, and so does each start. The log says if it fails.")
	}
	return s.oneSpaceInfo(ctx, m.ID)
}

// endRemote removes the remote of a space, if it has one.
func (s *Service) endRemote(ctx context.Context, a Actor, id space.SpaceID) error {
	if !s.remotes.Has(id) {
		return nil
	}
	if err := s.remotes.Remove(ctx, id); err != nil {
		return err
	}
	s.record(ctx, a, "space.remote.remove", string(id), nil)
	return nil
}

// EndGivenRemote removes the remote that a space had when it was transferred, in case GiveSpace
// could not remove it. gift is the audit entry of the transfer. A remote of the new owner stays.
func (s *Service) EndGivenRemote(ctx context.Context, gift store.Entry) error {
	id := space.SpaceID(gift.Subject)
	removed, err := s.remotes.RemoveSetBefore(context.WithoutCancel(ctx), id, gift.At)
	if err != nil {
		return fmt.Errorf("remove the remote of a given space: %w", err)
	}
	if removed {
		s.record(ctx, Actor{user: gift.Actor.User, via: gift.Actor.Via}, "space.remote.remove", gift.Subject, nil)
	}
	return nil
}
