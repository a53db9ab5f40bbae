package admin

import (
	"context"
	"strings"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Pages says where people meet the server, for the links that are handed to them.
type Pages struct {
	URL            string // an origin
	LinkLifetime   time.Duration
	InviteLifetime time.Duration
	// CheckRedirect reports whether a client may have a redirect URI.
	CheckRedirect func(uri string) error
}

// LoginLink makes a link.
func (l *Local) LoginLink(ctx context.Context, user string) (Link, error) {
	u, err := l.user(ctx, user)
	if err != nil {
		return Link{}, err
	}
	secret, err := l.Accounts.CreateLink(ctx, operator, u.ID, "link", l.Pages.LinkLifetime)
	if err != nil {
		return Link{}, err
	}
	if l.LinkMade != nil {
		l.LinkMade(ctx, secret.Reveal())
	}
	return Link{URL: l.Pages.URL + "/signin/link/" + secret.Reveal(), User: u.Name, Expires: time.Now().Add(l.Pages.LinkLifetime)}, nil
}

// SetAdmin changes a role.
func (l *Local) SetAdmin(ctx context.Context, name string, admin bool) error {
	u, err := l.Accounts.FindUser(ctx, name)
	if err != nil {
		return err
	}
	return l.Accounts.SetAdmin(ctx, operator, u.ID, admin)
}

// SignOut ends sessions.
func (l *Local) SignOut(ctx context.Context, name string) (int, error) {
	u, err := l.Accounts.FindUser(ctx, name)
	if err != nil {
		return 0, err
	}
	return l.Accounts.EndOtherSessions(ctx, operator, u.ID, "")
}

// Invite makes an invitation.
func (l *Local) Invite(ctx context.Context, r InviteRequest) (Link, error) {
	u, err := l.user(ctx, r.By)
	if err != nil {
		return Link{}, err
	}
	n := store.NewInvitation{By: u.ID, Note: r.Note, Email: r.Email, Admin: r.Admin, Lifetime: l.Pages.InviteLifetime}
	if r.Share {
		m, err := l.Accounts.FindSpace(ctx, u.ID, r.Space)
		if err != nil {
			return Link{}, err
		}
		n.Space, n.Role = m.ID, r.Role
	}
	secret, inv, err := l.Accounts.CreateInvitation(ctx, operator, n)
	if err != nil {
		return Link{}, err
	}
	return Link{ID: inv.ID, URL: l.Pages.URL + "/invite/" + secret.Reveal(), Expires: inv.Expires}, nil
}

// Invitations lists open ones.
func (l *Local) Invitations(ctx context.Context) ([]Invitation, error) {
	rows, err := l.Accounts.Invitations(ctx, "")
	if err != nil {
		return nil, err
	}
	out := []Invitation{}
	for _, i := range rows {
		out = append(out, Invitation{ID: i.ID, By: i.ByName, Space: i.SpaceName, Role: i.Role, Admin: i.Admin, Note: i.Note, Email: i.Email, Expires: i.Expires})
	}
	return out, nil
}

// RevokeInvitation ends one.
func (l *Local) RevokeInvitation(ctx context.Context, id string) error {
	return l.Accounts.RevokeInvitation(ctx, operator, id, "")
}

// AddClient makes a preset client.
func (l *Local) AddClient(ctx context.Context, r ClientRequest) (Client, error) {
	if len(r.Redirects) == 0 {
		return Client{}, fault.New(fault.Invalid, "A client needs the URL that it is sent back to: --redirect URI.")
	}
	for _, uri := range r.Redirects {
		if err := l.Pages.CheckRedirect(uri); err != nil {
			return Client{}, err
		}
	}
	c := auth.Client{ID: "preset-" + strings.ToLower(string(space.NewGrantID())[2:]), Kind: auth.ClientPreset, Name: r.Name, RedirectURIs: r.Redirects, Created: time.Now()}
	if err := l.Accounts.CreateClient(ctx, operator, c); err != nil {
		return Client{}, err
	}
	return clientOf(c), nil
}

func clientOf(c auth.Client) Client {
	return Client{ID: c.ID, Name: c.Name, Kind: string(c.Kind), Redirects: c.RedirectURIs, Created: c.Created, LastUsed: known(c.LastUsed)}
}

// Clients lists registered and preset clients.
func (l *Local) Clients(ctx context.Context) ([]Client, error) {
	rows, err := l.Accounts.Clients(ctx)
	if err != nil {
		return nil, err
	}
	out := []Client{}
	for _, c := range rows {
		out = append(out, clientOf(c))
	}
	return out, nil
}

// RemoveClient ends a client.
func (l *Local) RemoveClient(ctx context.Context, id string) error {
	if err := l.Accounts.DeleteClient(ctx, operator, id); err != nil {
		return err
	}
	l.grantsEnded()
	return nil
}

// grantsEnded looks at what is in progress, after grants were revoked.
func (l *Local) grantsEnded() {
	if l.Revoked != nil {
		l.Revoked()
	}
}

// Grants lists what is good.
func (l *Local) Grants(ctx context.Context, user string) ([]Grant, error) {
	users, err := l.Accounts.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	if user != "" {
		u, err := l.Accounts.FindUser(ctx, user)
		if err != nil {
			return nil, err
		}
		users = []store.User{u}
	}
	out, now := []Grant{}, time.Now()
	for _, u := range users {
		rows, err := l.Accounts.Grants(ctx, u.ID)
		if err != nil {
			return nil, err
		}
		for _, g := range rows {
			if !g.Revoked.IsZero() || !g.Expires.IsZero() && !g.Expires.After(now) {
				continue
			}
			out = append(out, Grant{
				ID: g.ID, Kind: g.Kind, User: u.Name, Space: g.SpaceName, Name: g.Name, Client: g.Client,
				Scopes: g.Scopes, Created: g.Created, LastUsed: known(g.LastUsed),
			})
		}
	}
	return out, nil
}

// RevokeGrant ends a grant at once.
func (l *Local) RevokeGrant(ctx context.Context, id space.GrantID) error {
	if err := l.Accounts.RevokeGrant(ctx, operator, id, ""); err != nil {
		return err
	}
	l.grantsEnded()
	return nil
}
