package server

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
)

// allowList is who may become a user without an invitation.
func allowList(a config.Auth) auth.AllowList {
	return auth.AllowList{Emails: a.AllowEmails, Domains: a.AllowDomains, GitHubUsers: a.AllowGitHubUsers, GitHubOrgs: a.AllowGitHubOrgs}
}

// people makes users of those who may become ones.
type people struct {
	accounts *store.Store
	admin    *admin.Local
	allow    auth.AllowList
	// membersInvite lets those in whom somebody invites who is no admin.
	membersInvite bool
}

// Admit makes a user with a space of their own: who holds an open invitation,
// which that accepts, or whom the allow list names. Somebody who was suspended,
// since the entry that let them in is gone, comes back by another. name is what
// they wish to be called; where it is empty they get one like it.
func (p people) Admit(ctx context.Context, c auth.Claimant, invitation, name string) (store.User, error) {
	n := store.NewUser{Display: display(c.Name), Email: c.Email}
	by := store.Actor{Via: "sign-in"}
	if invitation != "" {
		inv, err := p.accounts.PeekInvitation(ctx, invitation)
		if err != nil {
			return store.User{}, err
		}
		if by, err := p.accounts.User(ctx, inv.By); inv.By != "" && (err != nil || !by.Admin && !p.membersInvite) {
			return store.User{}, fault.New(fault.Forbidden, "This invitation is for people who are users already. Ask an admin of this server for one that lets you in.")
		}
		n.Admitted, n.Invitation, by.Via = "invitation", invitation, "invitation"
	} else {
		entry, ok := p.allow.Admits(c)
		if !ok {
			return store.User{}, fault.New(fault.Forbidden, "Nobody here knows you yet. Ask whoever runs this server for an invitation.")
		}
		if barred, err := p.accounts.Barred(ctx, c.Issuer, c.Subject, c.Email); err != nil {
			return store.User{}, err
		} else if barred {
			return store.User{}, fault.New(fault.Forbidden, "You were removed from this server. Ask whoever runs it for an invitation.")
		}
		if u, err := p.accounts.UserByIdentity(ctx, c.Issuer, c.Subject); err == nil {
			return u, p.accounts.Readmit(ctx, by, u.ID, entry)
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
		u, err := p.admin.AdmitUser(ctx, by, n)
		if fault.CodeOf(err) != fault.Conflict {
			return u, err
		}
		if c.Issuer != "" && invitation == "" {
			// They may have come in by another request of theirs meanwhile.
			if u, err := p.accounts.UserByIdentity(ctx, c.Issuer, c.Subject); err == nil {
				return u, nil
			}
		}
		if wished || try == 50 {
			return store.User{}, err
		}
	}
}

// label is what a sign-in is called in lists.
func label(c auth.Claimant) string {
	for _, s := range []string{c.GitHubLogin, c.Email, c.Login, c.Name} {
		if s = display(s); s != "" {
			return s
		}
	}
	return c.Subject
}

// maxDisplay and maxDisplayBytes bound a person's name.
const (
	maxDisplay      = 60 // characters
	maxDisplayBytes = 200
)

// display is a name that a provider tells, fit to be shown.
func display(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }), " ")
	r := []rune(s)
	for r = r[:min(len(r), maxDisplay)]; len(string(r)) > maxDisplayBytes; {
		r = r[:len(r)-1]
	}
	return strings.TrimSpace(string(r))
}

// nameOf makes a user name of what is known of somebody.
func nameOf(c auth.Claimant) string {
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
