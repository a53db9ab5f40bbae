package service

import (
	"context"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
)

// CreateKeyInput describes an API key.
type CreateKeyInput struct {
	Space    SpaceRef      `json:"space"`
	Scopes   []space.Scope `json:"scopes"`
	Name     string        `json:"name"`
	Lifetime time.Duration `json:"lifetime,omitempty"` // 0: the key does not expire
}

// NewKey is a new key. Its secret is not stored.
type NewKey struct {
	ID      space.GrantID `json:"id"`
	Secret  string        `json:"token"`
	Expires time.Time     `json:"-"`
}

// CreateKey creates an API key for a space of the actor, or of the person whom the
// operator names.
func (s *Service) CreateKey(ctx context.Context, a Actor, in CreateKeyInput) (NewKey, error) {
	m, err := s.authorizeSpace(ctx, a, "CreateKey", in.Space)
	if err != nil {
		return NewKey{}, err
	}
	u, err := s.self(ctx, a, in.Space.User)
	if err != nil {
		return NewKey{}, err
	}
	k := store.NewKey{User: u.ID, Space: m.ID, Scopes: in.Scopes, Name: in.Name}
	if in.Lifetime > 0 {
		k.Expires = s.o.Now().Add(in.Lifetime)
	}
	g, secret, err := s.accounts.CreateKey(ctx, a.audit(), k)
	if err != nil {
		return NewKey{}, err
	}
	return NewKey{ID: g.ID, Secret: secret.Reveal(), Expires: g.Expires}, nil
}

// ListKeysInput names a person at the command line. An empty User means everyone.
type ListKeysInput struct {
	User string `json:"user,omitempty"`
}

// ListKeys lists the actor's keys, newest first, including ended ones.
func (s *Service) ListKeys(ctx context.Context, a Actor, in ListKeysInput) ([]store.Key, error) {
	if err := s.authorize(a, "ListKeys"); err != nil {
		return nil, err
	}
	user := ownerOf(a)
	if a.kind == operator && in.User != "" {
		u, err := s.accounts.FindUser(ctx, in.User)
		if err != nil {
			return nil, err
		}
		user = u.ID
	}
	return s.accounts.ListKeys(ctx, user)
}

// RevokeKeyInput names a key.
type RevokeKeyInput struct {
	ID space.GrantID `json:"id"`
}

// RevokeKey revokes a key of the actor. The operator can revoke every key.
func (s *Service) RevokeKey(ctx context.Context, a Actor, in RevokeKeyInput) (None, error) {
	if err := s.authorize(a, "RevokeKey"); err != nil {
		return None{}, err
	}
	return None{}, s.grantsRevoked(s.accounts.RevokeKey(ctx, a.audit(), in.ID, ownerOf(a)))
}

// grantsRevoked returns err. If err is nil, it first ends the calls of revoked grants.
func (s *Service) grantsRevoked(err error) error {
	if err == nil && s.running.GrantsRevoked != nil {
		s.running.GrantsRevoked()
	}
	return err
}

// Grant is a grant of a client or a key, with the name of its user.
type Grant struct {
	store.GrantInfo
	UserName string
}

// ListGrantsInput names a person at the command line. An empty User means everyone.
type ListGrantsInput struct {
	User string `json:"user,omitempty"`
}

// ListGrants lists the valid grants of the actor.
func (s *Service) ListGrants(ctx context.Context, a Actor, in ListGrantsInput) ([]Grant, error) {
	if err := s.authorize(a, "ListGrants"); err != nil {
		return nil, err
	}
	var users []store.User
	if a.kind == operator && in.User == "" {
		all, err := s.accounts.ListUsers(ctx)
		if err != nil {
			return nil, err
		}
		users = all
	} else {
		u, err := s.self(ctx, a, in.User)
		if err != nil {
			return nil, err
		}
		users = []store.User{u}
	}
	out := []Grant{}
	for _, u := range users {
		rows, err := s.accounts.Grants(ctx, u.ID)
		if err != nil {
			return nil, err
		}
		for _, g := range rows {
			out = append(out, Grant{g, u.Name})
		}
	}
	return out, nil
}

// RevokeGrantInput names a grant.
type RevokeGrantInput struct {
	ID space.GrantID `json:"id"`
}

// RevokeGrant revokes a grant of the actor. The operator can revoke every grant.
func (s *Service) RevokeGrant(ctx context.Context, a Actor, in RevokeGrantInput) (None, error) {
	if err := s.authorize(a, "RevokeGrant"); err != nil {
		return None{}, err
	}
	return None{}, s.grantsRevoked(s.accounts.RevokeGrant(ctx, a.audit(), in.ID, ownerOf(a)))
}
