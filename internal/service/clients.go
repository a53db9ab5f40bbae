package service

import (
	"context"
	"strings"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// AddClientInput describes an OAuth client.
type AddClientInput struct {
	Name      string   `json:"name"`
	Redirects []string `json:"redirects"`
}

// AddClient adds an OAuth client that cannot register by itself.
func (s *Service) AddClient(ctx context.Context, a Actor, in AddClientInput) (auth.Client, error) {
	if err := s.authorize(a, "AddClient"); err != nil {
		return auth.Client{}, err
	}
	if len(in.Redirects) == 0 {
		return auth.Client{}, fault.New(fault.Invalid, "A client needs a redirect URI: --redirect URI.")
	}
	for _, uri := range in.Redirects {
		if err := oauth.CheckRedirectURI(uri); err != nil {
			return auth.Client{}, err
		}
	}
	c := auth.Client{
		ID: "preset-" + strings.ToLower(string(space.NewGrantID())[2:]), Kind: auth.ClientPreset,
		Name: in.Name, RedirectURIs: in.Redirects, Created: s.o.Now(),
	}
	return c, s.accounts.CreateClient(ctx, a.audit(), c)
}

// ListClients lists the clients that registered or were added.
func (s *Service) ListClients(ctx context.Context, a Actor, _ None) ([]auth.Client, error) {
	if err := s.authorize(a, "ListClients"); err != nil {
		return nil, err
	}
	return s.accounts.Clients(ctx)
}

// RemoveClientInput names a client.
type RemoveClientInput struct {
	ID string `json:"id"`
}

// RemoveClient removes a client and revokes its grants.
func (s *Service) RemoveClient(ctx context.Context, a Actor, in RemoveClientInput) (None, error) {
	if err := s.authorize(a, "RemoveClient"); err != nil {
		return None{}, err
	}
	return None{}, s.grantsRevoked(s.accounts.DeleteClient(ctx, a.audit(), in.ID))
}
