package service

import (
	"context"
	"slices"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// ListMembersInput names a space.
type ListMembersInput struct {
	Space SpaceRef `json:"space"`
}

// ListMembers lists the members of a space, the owner first.
func (s *Service) ListMembers(ctx context.Context, a Actor, in ListMembersInput) ([]store.Member, error) {
	m, err := s.authorizeSpace(ctx, a, "ListMembers", in.Space)
	if err != nil {
		return nil, err
	}
	return s.accounts.Members(ctx, m.ID)
}

// SetMemberInput names a member of a space and their role.
type SetMemberInput struct {
	Space  SpaceRef   `json:"space"`
	Member UserRef    `json:"member"`
	Role   space.Role `json:"role"`
}

// SetMember makes a member an editor or a reader. Only the operator can also add a new member
// here. All other new members need an invitation.
func (s *Service) SetMember(ctx context.Context, a Actor, in SetMemberInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "SetMember", in.Space)
	if err != nil {
		return None{}, err
	}
	u, err := s.findUser(ctx, in.Member)
	if err != nil {
		return None{}, err
	}
	if a.kind != operator {
		all, err := s.accounts.Members(ctx, m.ID)
		if err != nil {
			return None{}, err
		}
		if !slices.ContainsFunc(all, func(o store.Member) bool { return o.User == u.ID }) {
			return None{}, fault.New(fault.NotFound, "%s is not a member of the space %s.", u.Name, m.Name)
		}
	}
	if err := s.accounts.AddMember(ctx, a.audit(), m.ID, u.ID, in.Role); err != nil {
		return None{}, err
	}
	s.memberChanged(ctx, u.ID, m.ID, in.Role)
	return None{}, nil
}

func (s *Service) memberChanged(ctx context.Context, user space.UserID, id space.SpaceID, role space.Role) {
	if s.running.MemberChanged != nil {
		s.running.MemberChanged(context.WithoutCancel(ctx), user, id, role)
	}
}

// RemoveMemberInput names a member of a space.
type RemoveMemberInput struct {
	Space  SpaceRef `json:"space"`
	Member UserRef  `json:"member"`
}

// RemoveMember removes a member from a space. It stops everything that the member runs
// there and revokes the member's grants for the space.
func (s *Service) RemoveMember(ctx context.Context, a Actor, in RemoveMemberInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "RemoveMember", in.Space)
	if err != nil {
		return None{}, err
	}
	u, err := s.findUser(ctx, in.Member)
	if err != nil {
		return None{}, err
	}
	return None{}, s.removeMember(ctx, a, m, u.ID)
}

func (s *Service) removeMember(ctx context.Context, a Actor, m store.Membership, user space.UserID) error {
	if err := s.accounts.RemoveMember(ctx, a.audit(), m.ID, user); err != nil {
		return err
	}
	s.memberChanged(ctx, user, m.ID, "")
	return nil
}

// LeaveSpaceInput names a space.
type LeaveSpaceInput struct {
	Space SpaceRef `json:"space"`
}

// LeaveSpace removes the actor from a space, as RemoveMember does.
func (s *Service) LeaveSpace(ctx context.Context, a Actor, in LeaveSpaceInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "LeaveSpace", in.Space)
	if err != nil {
		return None{}, err
	}
	return None{}, s.removeMember(ctx, a, m, a.user)
}
