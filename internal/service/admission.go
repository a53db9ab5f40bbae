package service

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
)

// Admit admits a person who signs in for the first time, with an open invitation or by the allow
// list. It accepts the invitation in the same transaction. It readmits a suspended person if an
// entry of the allow list admits them. name is the user name that the person chose. If name is
// empty, Admit makes a user name from the claims. The error is a fault.Forbidden if nothing
// admits the person, a fault.NotFound if the invitation has ended, and a fault.Conflict or
// fault.Invalid if the name cannot be used.
func (s *Service) Admit(ctx context.Context, c auth.ExternalIdentity, invitation, name string) (store.User, error) {
	n := store.NewUser{Display: display(c.Name), Email: c.Email}
	by := store.Actor{Via: "sign-in"}
	if invitation != "" {
		inv, err := s.accounts.PeekInvitation(ctx, invitation)
		if err != nil {
			return store.User{}, err
		}
		members, err := s.membersInvite(ctx)
		if err != nil {
			return store.User{}, err
		}
		if by, err := s.accounts.User(ctx, inv.By); inv.By != "" && (err != nil || !by.Admin && !members) {
			return store.User{}, fault.New(fault.Forbidden, "This invite is only for existing users. Ask an admin of this server for one that lets you in.")
		}
		n.Admitted, n.Invitation, by.Via = "invitation", invitation, "invitation"
	} else {
		entry, ok := s.o.Allow.Admits(c)
		if !ok {
			return store.User{}, fault.New(fault.Forbidden, "Nobody here knows you yet. Ask whoever runs this server for an invite.")
		}
		if barred, err := s.accounts.Blocked(ctx, c.Issuer, c.Subject, c.Email); err != nil {
			return store.User{}, err
		} else if barred {
			return store.User{}, fault.New(fault.Forbidden, "You were removed from this server. Ask whoever runs it for an invite.")
		}
		if u, err := s.accounts.UserByIdentity(ctx, c.Issuer, c.Subject); err == nil {
			return u, s.accounts.Readmit(ctx, by, u.ID, entry)
		}
		n.Admitted = entry
	}
	if c.Issuer != "" {
		n.Identity = &store.Identity{Issuer: c.Issuer, Subject: c.Subject, Email: c.Email, Label: label(c)}
	}
	wished := name != ""
	if !wished {
		name = nameOf(c)
	}
	for try := 1; ; try++ {
		n.Name = name
		if try > 1 {
			n.Name = strings.TrimRight(name[:min(len(name), store.MaxNameBytes-4)], "-_.") + "-" + strconv.Itoa(try)
		}
		u, err := s.createUser(ctx, by, n)
		if fault.CodeOf(err) != fault.Conflict {
			return u, err
		}
		if c.Issuer != "" && invitation == "" {
			// A concurrent request may have admitted the same person.
			if u, err := s.accounts.UserByIdentity(ctx, c.Issuer, c.Subject); err == nil {
				return u, nil
			}
		}
		if wished || try == 50 {
			return store.User{}, err
		}
	}
}

// Allows reports whether the allow list admits a person without an invitation.
func (s *Service) Allows(c auth.ExternalIdentity) bool {
	_, ok := s.o.Allow.Admits(c)
	return ok
}

// label returns the name that lists show for a sign-in.
func label(c auth.ExternalIdentity) string {
	for _, name := range []string{c.GitHubLogin, c.Email, c.Login, c.Name} {
		if name = display(name); name != "" {
			return name
		}
	}
	return c.Subject
}

// Limits of a person's name.
const (
	maxDisplay      = 60 // characters
	maxDisplayBytes = 200
)

// display returns a name from a provider in a form that is safe to show.
func display(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }), " ")
	r := []rune(s)
	for r = r[:min(len(r), maxDisplay)]; len(string(r)) > maxDisplayBytes; {
		r = r[:len(r)-1]
	}
	return strings.TrimSpace(string(r))
}

// nameOf creates a user name from claims.
func nameOf(c auth.ExternalIdentity) string {
	local, _, _ := strings.Cut(c.Email, "@")
	for _, s := range []string{c.GitHubLogin, c.Login, local, c.Name} {
		var b strings.Builder
		for _, r := range strings.ToLower(s) {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
				b.WriteRune(r)
			case r == ' ':
				b.WriteByte('-')
			}
		}
		name := strings.Trim(b.String(), "-_.")
		if name = name[:min(len(name), store.MaxNameBytes)]; name != "" {
			return name
		}
	}
	return "person"
}
