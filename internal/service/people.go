package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// UserRef names a person by ID or by name.
type UserRef struct {
	ID   space.UserID `json:"id,omitempty"`
	Name string       `json:"name,omitempty"`
}

func (s *Service) findUser(ctx context.Context, r UserRef) (store.User, error) {
	if r.ID != "" {
		return s.accounts.User(ctx, r.ID)
	}
	return s.accounts.FindUser(ctx, r.Name)
}

// self returns the person whose data an operation is about: the actor, or the person whom
// the operator names (see NamedUser).
func (s *Service) self(ctx context.Context, a Actor, name string) (store.User, error) {
	if a.kind == operator {
		return s.NamedUser(ctx, name)
	}
	return s.accounts.User(ctx, a.user)
}

// ownerOf returns the person to whose data the actor is limited, or "" for no limit.
func ownerOf(a Actor) space.UserID {
	if a.kind == operator {
		return ""
	}
	return a.user
}

// ListUsers lists the users, sorted by name.
func (s *Service) ListUsers(ctx context.Context, a Actor, _ None) ([]store.User, error) {
	if err := s.authorize(a, "ListUsers"); err != nil {
		return nil, err
	}
	return s.accounts.ListUsers(ctx)
}

// AddUserInput describes a new person.
type AddUserInput struct {
	Name  string `json:"name"`
	Admin bool   `json:"admin"`
	Email string `json:"email"`
}

// AddUser adds a person with a space of their own.
func (s *Service) AddUser(ctx context.Context, a Actor, in AddUserInput) (store.User, error) {
	if err := s.authorize(a, "AddUser"); err != nil {
		return store.User{}, err
	}
	if in.Email != "" {
		if err := store.CheckEmail(in.Email); err != nil {
			return store.User{}, err
		}
		if u, err := s.accounts.UserByEmail(ctx, in.Email); err == nil {
			return store.User{}, fault.New(fault.Conflict, "%s has the address %s.", u.Name, in.Email)
		}
	}
	return s.createUser(ctx, a.audit(), store.NewUser{Name: in.Name, Admin: in.Admin, Email: in.Email, Admitted: "command"})
}

// FirstUser creates the first admin of a server. made is false if the server has, or once
// had, a user.
func (s *Service) FirstUser(ctx context.Context, name string) (u store.User, made bool, err error) {
	first, err := s.accounts.FirstRun(ctx)
	if err != nil || !first {
		return store.User{}, false, err
	}
	u, err = s.createUser(ctx, store.Actor{Via: "first run"}, store.NewUser{Name: name, Admin: true, First: true, Admitted: "first run"})
	if fault.CodeOf(err) == fault.Conflict {
		return store.User{}, false, nil // another server on this database created the first admin
	}
	return u, err == nil, err
}

// createUser creates a person with a space. It creates the repository of the space first. After
// a crash there may be an unused repository, but never a person without a repository.
func (s *Service) createUser(ctx context.Context, by store.Actor, n store.NewUser) (store.User, error) {
	if err := store.CheckName(n.Name); err != nil {
		return store.User{}, err
	}
	if _, err := s.accounts.FindUser(ctx, n.Name); err == nil {
		return store.User{}, fault.New(fault.Conflict, "A user named %q already exists.", n.Name)
	}
	n.Space = space.NewSpaceID()
	meta := space.Meta{Author: space.Person{Name: n.Name, Email: n.Name + "@satchel.invalid"}, Message: "Start the space", Tool: "satchel"}
	if _, err := s.git.Create(ctx, n.Space, gitstore.StartingTree(), meta); err != nil {
		return store.User{}, err
	}
	u, _, err := s.accounts.CreateUser(ctx, by, n)
	if err != nil {
		return store.User{}, errors.Join(err, s.git.Remove(context.WithoutCancel(ctx), n.Space))
	}
	return u, nil
}

// SetEmailInput names a person and their new address. An empty Email removes the old address.
type SetEmailInput struct {
	User  UserRef `json:"user"`
	Email string  `json:"email"`
}

// SetEmail changes the address that receives sign-in links for a person.
func (s *Service) SetEmail(ctx context.Context, a Actor, in SetEmailInput) (None, error) {
	if err := s.authorize(a, "SetEmail"); err != nil {
		return None{}, err
	}
	u, err := s.findUser(ctx, in.User)
	if err != nil {
		return None{}, err
	}
	return None{}, s.accounts.SetEmail(ctx, a.audit(), u.ID, in.Email)
}

// SetAdminInput names a person and says whether they are an admin.
type SetAdminInput struct {
	User  UserRef `json:"user"`
	Admin bool    `json:"admin"`
}

// SetAdmin changes whether a person is an admin. The last admin cannot lose the role.
func (s *Service) SetAdmin(ctx context.Context, a Actor, in SetAdminInput) (None, error) {
	if err := s.authorize(a, "SetAdmin"); err != nil {
		return None{}, err
	}
	u, err := s.findUser(ctx, in.User)
	if err != nil {
		return None{}, err
	}
	return None{}, s.accounts.SetAdmin(ctx, a.audit(), u.ID, in.Admin)
}

// RemoveUserInput names a person.
type RemoveUserInput struct {
	User UserRef `json:"user"`
}

// RemovedUser is a removed person and the spaces that have no owner now.
type RemovedUser struct {
	Removed string      `json:"removed"`
	Spaces  []SpaceName `json:"spaces"`
}

// SpaceName is the ID and the name of a space.
type SpaceName struct {
	ID   space.SpaceID `json:"id"`
	Name string        `json:"name"`
}

// RemoveUser removes a person. It ends their keys, sessions and sandboxes, and removes the
// remotes of their spaces. The spaces stay.
func (s *Service) RemoveUser(ctx context.Context, a Actor, in RemoveUserInput) (RemovedUser, error) {
	if err := s.authorize(a, "RemoveUser"); err != nil {
		return RemovedUser{}, err
	}
	u, err := s.findUser(ctx, in.User)
	if err != nil {
		return RemovedUser{}, err
	}
	if u.ID == a.user {
		return RemovedUser{}, fault.New(fault.Invalid, "You cannot remove yourself. Another admin can.")
	}
	if err := s.accounts.RemoveUser(ctx, a.audit(), u.ID); err != nil {
		return RemovedUser{}, err
	}
	return s.userRemoved(ctx, a, u)
}

// userRemoved ends everything that runs for a removed person, and removes the data that
// only this person had.
func (s *Service) userRemoved(ctx context.Context, a Actor, u store.User) (RemovedUser, error) {
	ctx = context.WithoutCancel(ctx)
	if s.running.UserRemoved != nil {
		s.running.UserRemoved(ctx, u.ID)
	}
	all, err := s.accounts.Spaces(ctx)
	if err != nil {
		return RemovedUser{}, err
	}
	out := RemovedUser{Removed: u.Name, Spaces: []SpaceName{}}
	for _, sp := range all {
		if sp.Owner != u.ID {
			continue
		}
		out.Spaces = append(out.Spaces, SpaceName{sp.ID, sp.Name})
		// Stop pushing with the token of the removed person.
		if err := s.endRemote(ctx, a, sp.ID); err != nil {
			return RemovedUser{}, fmt.Errorf("remove the remotes of a removed user: %w", err)
		}
	}
	// The sandboxes of the person may have stored pending files before they stopped.
	if s.pending != nil {
		if err := s.pending.DropUser(ctx, u.ID); err != nil {
			return RemovedUser{}, fmt.Errorf("discard the pending files of a removed user: %w", err)
		}
	}
	return out, nil
}

// CreateLoginLinkInput names a person. At the command line, an empty name means the first
// administrator.
type CreateLoginLinkInput struct {
	User UserRef `json:"user"`
}

// Link is a link that can be used once.
type Link struct {
	ID      string    `json:"id,omitempty"`
	URL     string    `json:"url"`
	User    string    `json:"user,omitempty"`
	Expires time.Time `json:"expires"`
}

// CreateLoginLink creates a link that signs a person in once. It ends their earlier links, except
// mailed ones.
func (s *Service) CreateLoginLink(ctx context.Context, a Actor, in CreateLoginLinkInput) (Link, error) {
	if err := s.authorize(a, "CreateLoginLink"); err != nil {
		return Link{}, err
	}
	find := s.findUser
	if in.User == (UserRef{}) {
		find = func(ctx context.Context, _ UserRef) (store.User, error) { return s.self(ctx, a, "") }
	}
	u, err := find(ctx, in.User)
	if err != nil {
		return Link{}, err
	}
	if u.ID == a.user {
		return Link{}, fault.New(fault.Invalid, "You are already signed in. You can add other ways to sign in on your account page.")
	}
	secret, err := s.accounts.CreateLink(ctx, a.audit(), u.ID, "link", s.o.LinkLifetime)
	if err != nil {
		return Link{}, err
	}
	if s.running.LinkMade != nil {
		s.running.LinkMade(ctx, secret.Reveal())
	}
	return Link{URL: s.o.URL + "/signin/link/" + secret.Reveal(), User: u.Name, Expires: s.o.Now().Add(s.o.LinkLifetime)}, nil
}

// EndSessionInput names a session of the actor.
type EndSessionInput struct {
	ID string `json:"id"`
}

// EndSession signs the actor out of one browser.
func (s *Service) EndSession(ctx context.Context, a Actor, in EndSessionInput) (None, error) {
	if err := s.authorize(a, "EndSession"); err != nil {
		return None{}, err
	}
	return None{}, s.accounts.EndSession(ctx, a.audit(), a.user, in.ID)
}

// EndSessionsInput names the session to keep. At the command line, it also names a person.
type EndSessionsInput struct {
	User string `json:"user,omitempty"`
	Keep string `json:"keep,omitempty"`
}

// EndSessions ends the sessions of the actor, or of the person whom the operator names,
// except the one to keep. It returns how many it ended. Clients stay connected.
func (s *Service) EndSessions(ctx context.Context, a Actor, in EndSessionsInput) (int, error) {
	if err := s.authorize(a, "EndSessions"); err != nil {
		return 0, err
	}
	user := a.user
	if a.kind == operator {
		u, err := s.accounts.FindUser(ctx, in.User)
		if err != nil {
			return 0, err
		}
		user = u.ID
	}
	return s.accounts.EndOtherSessions(ctx, a.audit(), user, in.Keep)
}
