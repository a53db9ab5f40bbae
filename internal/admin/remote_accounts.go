package admin

import (
	"context"

	"satchel/internal/space"
)

// adminRequest says who becomes an admin, or is one no more.
type adminRequest struct {
	Name  string `json:"name"`
	Admin bool   `json:"admin"`
}

// handleAccounts answers for Accounts on the socket.
func handleAccounts(m *socketMux, s Accounts) {
	handle(m, "accounts/link", func(ctx context.Context, user string) (any, error) { return s.LoginLink(ctx, user) })
	handle(m, "accounts/admin", func(ctx context.Context, in adminRequest) (any, error) {
		return struct{}{}, s.SetAdmin(ctx, in.Name, in.Admin)
	})
	handle(m, "accounts/signout", func(ctx context.Context, name string) (any, error) { return s.SignOut(ctx, name) })
	handle(m, "invitations/create", func(ctx context.Context, in InviteRequest) (any, error) { return s.Invite(ctx, in) })
	handle(m, "invitations/list", func(ctx context.Context, _ struct{}) (any, error) { return s.Invitations(ctx) })
	handle(m, "invitations/revoke", func(ctx context.Context, id string) (any, error) { return struct{}{}, s.RevokeInvitation(ctx, id) })
	handle(m, "spaces/create", func(ctx context.Context, in SpaceRequest) (any, error) { return s.CreateSpace(ctx, in) })
	handle(m, "spaces/give", func(ctx context.Context, in GiveRequest) (any, error) { return s.GiveSpace(ctx, in) })
	handle(m, "spaces/delete", func(ctx context.Context, in DeleteRequest) (any, error) { return s.DeleteSpace(ctx, in) })
	handle(m, "members/list", func(ctx context.Context, in SpaceRequest) (any, error) { return s.Members(ctx, in) })
	handle(m, "members/set", func(ctx context.Context, in MemberRequest) (any, error) { return struct{}{}, s.SetMember(ctx, in) })
	handle(m, "members/remove", func(ctx context.Context, in MemberRequest) (any, error) { return struct{}{}, s.RemoveMember(ctx, in) })
	handle(m, "clients/add", func(ctx context.Context, in ClientRequest) (any, error) { return s.AddClient(ctx, in) })
	handle(m, "clients/list", func(ctx context.Context, _ struct{}) (any, error) { return s.Clients(ctx) })
	handle(m, "clients/remove", func(ctx context.Context, id string) (any, error) { return struct{}{}, s.RemoveClient(ctx, id) })
	handle(m, "grants/list", func(ctx context.Context, user string) (any, error) { return s.Grants(ctx, user) })
	handle(m, "grants/revoke", func(ctx context.Context, id space.GrantID) (any, error) { return struct{}{}, s.RevokeGrant(ctx, id) })
	handle(m, "audit", func(ctx context.Context, in AuditRequest) (any, error) { return s.Audit(ctx, in) })
}

// LoginLink asks the server.
func (c *Remote) LoginLink(ctx context.Context, user string) (Link, error) {
	return call[Link](ctx, c, "accounts/link", user)
}

// SetAdmin asks the server.
func (c *Remote) SetAdmin(ctx context.Context, name string, admin bool) error {
	_, err := call[struct{}](ctx, c, "accounts/admin", adminRequest{name, admin})
	return err
}

// SignOut asks the server.
func (c *Remote) SignOut(ctx context.Context, name string) (int, error) {
	return call[int](ctx, c, "accounts/signout", name)
}

// Invite asks the server.
func (c *Remote) Invite(ctx context.Context, r InviteRequest) (Link, error) {
	return call[Link](ctx, c, "invitations/create", r)
}

// Invitations asks the server.
func (c *Remote) Invitations(ctx context.Context) ([]Invitation, error) {
	return call[[]Invitation](ctx, c, "invitations/list", nil)
}

// RevokeInvitation asks the server.
func (c *Remote) RevokeInvitation(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, "invitations/revoke", id)
	return err
}

// CreateSpace asks the server.
func (c *Remote) CreateSpace(ctx context.Context, r SpaceRequest) (SpaceInfo, error) {
	return call[SpaceInfo](ctx, c, "spaces/create", r)
}

// GiveSpace asks the server.
func (c *Remote) GiveSpace(ctx context.Context, r GiveRequest) (SpaceInfo, error) {
	return call[SpaceInfo](ctx, c, "spaces/give", r)
}

// DeleteSpace asks the server.
func (c *Remote) DeleteSpace(ctx context.Context, r DeleteRequest) (DeletedSpace, error) {
	return call[DeletedSpace](ctx, c, "spaces/delete", r)
}

// Members asks the server.
func (c *Remote) Members(ctx context.Context, r SpaceRequest) ([]Member, error) {
	return call[[]Member](ctx, c, "members/list", r)
}

// SetMember asks the server.
func (c *Remote) SetMember(ctx context.Context, r MemberRequest) error {
	_, err := call[struct{}](ctx, c, "members/set", r)
	return err
}

// RemoveMember asks the server.
func (c *Remote) RemoveMember(ctx context.Context, r MemberRequest) error {
	_, err := call[struct{}](ctx, c, "members/remove", r)
	return err
}

// AddClient asks the server.
func (c *Remote) AddClient(ctx context.Context, r ClientRequest) (Client, error) {
	return call[Client](ctx, c, "clients/add", r)
}

// Clients asks the server.
func (c *Remote) Clients(ctx context.Context) ([]Client, error) {
	return call[[]Client](ctx, c, "clients/list", nil)
}

// RemoveClient asks the server.
func (c *Remote) RemoveClient(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, "clients/remove", id)
	return err
}

// Grants asks the server.
func (c *Remote) Grants(ctx context.Context, user string) ([]Grant, error) {
	return call[[]Grant](ctx, c, "grants/list", user)
}

// RevokeGrant asks the server.
func (c *Remote) RevokeGrant(ctx context.Context, id space.GrantID) error {
	_, err := call[struct{}](ctx, c, "grants/revoke", id)
	return err
}

// Audit asks the server.
func (c *Remote) Audit(ctx context.Context, r AuditRequest) ([]AuditEntry, error) {
	return call[[]AuditEntry](ctx, c, "audit", r)
}
