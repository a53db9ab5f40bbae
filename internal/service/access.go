package service

import (
	"context"

	"satchel/internal/fault"
)

// membersInviteSetting names the setting that replaces Options.MembersInvite.
const membersInviteSetting = "members_invite"

// Choice is an admin's choice on the pages.
type Choice string

const (
	Configured Choice = "" // the configuration decides
	Yes        Choice = "yes"
	No         Choice = "no"
)

// SetAccessInput contains the rules of access that admins can choose. The configuration decides
// the rest.
type SetAccessInput struct {
	// MembersInvite says whether owners of spaces can invite people who have no account.
	MembersInvite Choice `json:"members_invite"`
}

// SetAccess changes the rules of access at once. They also apply to open invitations.
func (s *Service) SetAccess(ctx context.Context, a Actor, in SetAccessInput) (None, error) {
	if err := s.authorize(a, "SetAccess"); err != nil {
		return None{}, err
	}
	switch in.MembersInvite {
	case Configured, Yes, No:
	default:
		return None{}, fault.New(fault.Invalid, "Choose who can invite new people: yes, no, or empty for the configuration.")
	}
	return None{}, s.accounts.SetSetting(ctx, a.audit(), membersInviteSetting, string(in.MembersInvite))
}

// GetAccess returns the rules of access: those of the configuration, and those that SetAccess
// changed.
func (s *Service) GetAccess(ctx context.Context, a Actor, _ None) (Access, error) {
	if err := s.authorize(a, "GetAccess"); err != nil {
		return Access{}, err
	}
	out := s.running.Access
	out.Allow, out.ConfiguredInvite = s.o.Allow, s.o.MembersInvite
	chosen, err := s.accounts.Setting(ctx, membersInviteSetting)
	if err != nil {
		return Access{}, err
	}
	out.ChosenInvite = Choice(chosen)
	out.MembersInvite = out.ChosenInvite == Yes || out.ChosenInvite == Configured && s.o.MembersInvite
	return out, nil
}

// membersInvite reports whether owners of spaces can invite people who have no account.
func (s *Service) membersInvite(ctx context.Context) (bool, error) {
	switch chosen, err := s.accounts.Setting(ctx, membersInviteSetting); {
	case err != nil:
		return false, err
	case chosen != "":
		return Choice(chosen) == Yes, nil
	}
	return s.o.MembersInvite, nil
}
