package service

import (
	"context"
	"slices"

	"satchel/auth/store"
	"satchel/internal/space"
)

// InviteToServerInput describes an invitation.
type InviteToServerInput struct {
	By    string `json:"by,omitempty"` // at the command line, the inviter; empty for the first administrator
	Admin bool   `json:"admin"`        // the person who accepts becomes an admin
	Note  string `json:"note"`
	Email string `json:"email"` // for a new person without an address; used if an admin invites
}

// InviteToServer creates an invitation to become a user.
func (s *Service) InviteToServer(ctx context.Context, a Actor, in InviteToServerInput) (Link, error) {
	if err := s.authorize(a, "InviteToServer"); err != nil {
		return Link{}, err
	}
	u, err := s.self(ctx, a, in.By)
	if err != nil {
		return Link{}, err
	}
	return s.invite(ctx, a, store.NewInvitation{By: u.ID, Note: in.Note, Email: in.Email, Admin: in.Admin})
}

// InviteToSpaceInput describes an invitation to a space.
type InviteToSpaceInput struct {
	Space SpaceRef   `json:"space"`
	Role  space.Role `json:"role"`
	Admin bool       `json:"admin"` // Admin, Note and Email are as in InviteToServerInput
	Note  string     `json:"note"`
	Email string     `json:"email"`
}

// InviteToSpace creates an invitation to become a member of a space. The space's owner counts as
// the inviter.
func (s *Service) InviteToSpace(ctx context.Context, a Actor, in InviteToSpaceInput) (Link, error) {
	m, err := s.authorizeSpace(ctx, a, "InviteToSpace", in.Space)
	if err != nil {
		return Link{}, err
	}
	return s.invite(ctx, a, store.NewInvitation{By: m.Owner, Note: in.Note, Email: in.Email, Admin: in.Admin, Space: m.ID, Role: in.Role})
}

func (s *Service) invite(ctx context.Context, a Actor, n store.NewInvitation) (Link, error) {
	n.Lifetime = s.o.InviteLifetime
	secret, in, err := s.accounts.CreateInvitation(ctx, a.audit(), n)
	if err != nil {
		return Link{}, err
	}
	return Link{ID: in.ID, URL: s.o.URL + "/invite/" + secret.Reveal(), Expires: in.Expires}, nil
}

// ListInvitations lists the open invitations, newest first.
func (s *Service) ListInvitations(ctx context.Context, a Actor, _ None) ([]store.Invitation, error) {
	if err := s.authorize(a, "ListInvitations"); err != nil {
		return nil, err
	}
	return s.accounts.Invitations(ctx, "")
}

// ListSpaceInvitationsInput names a space.
type ListSpaceInvitationsInput struct {
	Space SpaceRef `json:"space"`
}

// ListSpaceInvitations lists the open invitations to a space.
func (s *Service) ListSpaceInvitations(ctx context.Context, a Actor, in ListSpaceInvitationsInput) ([]store.Invitation, error) {
	m, err := s.authorizeSpace(ctx, a, "ListSpaceInvitations", in.Space)
	if err != nil {
		return nil, err
	}
	all, err := s.accounts.Invitations(ctx, m.Owner)
	return slices.DeleteFunc(all, func(i store.Invitation) bool { return i.Space != m.ID }), err
}

// RevokeInvitationInput names an invitation.
type RevokeInvitationInput struct {
	ID string `json:"id"`
}

// RevokeInvitation ends an open invitation of the actor. Admins and the operator can end any
// open invitation.
func (s *Service) RevokeInvitation(ctx context.Context, a Actor, in RevokeInvitationInput) (None, error) {
	if err := s.authorize(a, "RevokeInvitation"); err != nil {
		return None{}, err
	}
	by := ownerOf(a)
	if a.admin {
		by = ""
	}
	return None{}, s.accounts.RevokeInvitation(ctx, a.audit(), in.ID, by)
}

// AcceptInvitationInput holds the secret of an invitation.
type AcceptInvitationInput struct {
	Secret string `json:"secret"`
}

// AcceptInvitation gives the actor the rights of an invitation. An invitation can be
// accepted once.
func (s *Service) AcceptInvitation(ctx context.Context, a Actor, in AcceptInvitationInput) (store.Invitation, error) {
	if err := s.authorize(a, "AcceptInvitation"); err != nil {
		return store.Invitation{}, err
	}
	return s.accounts.AcceptInvitation(ctx, a.audit(), in.Secret, a.user)
}
