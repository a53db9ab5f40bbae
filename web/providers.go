package web

import "slices"

// NamedProvider is a provider with its name in paths.
type NamedProvider struct {
	Provider
	Name string
}

// FlowKind returns the kind of the flows of the provider.
func (p NamedProvider) FlowKind() FlowKind { return FlowProvider + FlowKind(p.Name) }

// Callback returns the path to which the provider sends the browser back.
func (p NamedProvider) Callback() string { return "/signin/" + p.Name + "/callback" }

// Providers returns the configured providers.
func (s *Site) Providers() []NamedProvider {
	var out []NamedProvider
	if s.GitHub != nil {
		out = append(out, NamedProvider{s.GitHub, "github"})
	}
	if s.OIDC != nil {
		out = append(out, NamedProvider{s.OIDC, "oidc"})
	}
	return out
}

// Offered returns the providers with which people can sign in now.
func (s *Site) Offered() []NamedProvider {
	return slices.DeleteFunc(s.Providers(), func(p NamedProvider) bool {
		r, can := p.Provider.(interface{ Ready() bool })
		return can && !r.Ready()
	})
}

// ProviderButton is the button for a provider on a page.
type ProviderButton struct{ Label, Action string }
