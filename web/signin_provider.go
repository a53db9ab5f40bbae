package web

import (
	"net/http"
	"slices"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
)

// NamedProvider is one service to sign in with, and the name that it has in paths.
type NamedProvider struct {
	Provider
	Name string
}

func (p NamedProvider) FlowKind() FlowKind { return FlowProvider + FlowKind(p.Name) }
func (p NamedProvider) Callback() string   { return "/signin/" + p.Name + "/callback" }

// What a flow with a provider is for.
const (
	useSignIn = "sign in"
	useLink   = "link"
	useJoin   = "join"
)

// signInFlow is what the server remembers while somebody is at a provider.
type signInFlow struct {
	Flow
	Use    string `json:"use"`
	Data   []byte `json:"data"` // the provider's own
	Return string `json:"return,omitempty"`
	// Invitation and Name are of who joins.
	Invitation string `json:"invitation,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Providers are those that are configured.
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

// Offered are those with which somebody can sign in now.
func (s *Site) Offered() []NamedProvider {
	return slices.DeleteFunc(s.Providers(), func(p NamedProvider) bool {
		r, can := p.Provider.(interface{ Ready() bool })
		return can && !r.Ready()
	})
}

// begin sends the browser to a provider.
func (s *Site) begin(v *Visit, p NamedProvider, f signInFlow) error {
	state := auth.NewSecret(auth.KindFlow).Reveal()
	location, data, err := p.Begin(v.R.Context(), s.URL(p.Callback()), state)
	if err != nil {
		return err
	}
	f.Data = data
	if err := s.KeepFlow(v, p.FlowKind(), state, &f); err != nil {
		return err
	}
	return s.SendToProvider(v, location)
}

// beginSignIn is GET /signin/github and the like. Whoever has somebody else's
// browser begin one signs them in as themselves, so that a GET is enough.
func (s *Site) beginSignIn(p NamedProvider) Handler {
	return func(v *Visit) error {
		return s.begin(v, p, signInFlow{Use: useSignIn, Return: LocalPath(v.R.URL.Query().Get("return"))})
	}
}

// beginLink is POST /account/link/github and the like: never a GET, since
// somebody could be sent through it whom another signed in to that other's
// account at the provider.
func (s *Site) beginLink(p NamedProvider) Handler {
	return func(v *Visit) error {
		return s.begin(v, p, signInFlow{Flow: Flow{Session: v.Session.ID}, Use: useLink, Return: "/account"})
	}
}

// finishSignIn is where a provider sends people back to.
func (s *Site) finishSignIn(p NamedProvider) Handler {
	return func(v *Visit) error {
		state, ok := StateIn(v.R)
		if !ok {
			return ErrFlowOver()
		}
		var f signInFlow
		if ok, err := s.TakeFlow(v, p.FlowKind(), state, &f); err != nil {
			return err
		} else if !ok {
			return ErrFlowOver()
		}
		c, err := p.Finish(v.R.Context(), s.URL(p.Callback()), f.Data, v.R.URL.Query())
		if err != nil {
			return err
		}
		if c.Issuer == "" || c.Subject == "" {
			return fault.New(fault.Unauthenticated, "%s did not say who you are.", p.Label())
		}
		switch {
		case f.Use == useSignIn:
			return s.enter(v, p.Name, c, f)
		case f.Use == useLink && f.Session != "":
			return s.link(v, c)
		case f.Use == useJoin:
			return s.joinWith(v, p.Name, c, f)
		}
		return ErrFlowOver()
	}
}

// enter signs somebody in whom a provider knows, and who is a user or may become
// one.
func (s *Site) enter(v *Visit, method string, c auth.ExternalIdentity, f signInFlow) error {
	u, err := s.Accounts.UserByIdentity(v.R.Context(), c.Issuer, c.Subject)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !u.Suspended.IsZero() {
		u, err = s.People.Admit(v.R.Context(), c, "", "")
		if fault.CodeOf(err) == fault.Forbidden {
			return notInvited(c, fault.PublicOf(err))
		}
	}
	if err != nil {
		return err
	}
	if err := s.SignIn(v, u.ID, method); err != nil {
		return err
	}
	return s.See(v, f.Return)
}

// notInvited tells somebody that they are known, as whom, and why they are not let
// in.
func notInvited(c auth.ExternalIdentity, why string) error {
	name := c.Login
	if name == "" {
		name = c.Email
	}
	if name == "" {
		name = c.Name
	}
	if name = Shorten(name, 80); name != "" {
		why = "You signed in as " + name + ". " + why
	}
	return &PageError{Status: http.StatusForbidden, Title: "You need an invitation", Text: why}
}

// link gives the signed-in person a further way to sign in.
func (s *Site) link(v *Visit, c auth.ExternalIdentity) error {
	err := s.Accounts.LinkIdentity(v.R.Context(), v.By(), identityOf(c, v.User))
	if err != nil {
		return err
	}
	if err := s.RotateSession(v); err != nil {
		return err
	}
	return s.See(v, "/account#sign-ins")
}

func identityOf(c auth.ExternalIdentity, u store.User) store.Identity {
	label := c.Login
	for _, other := range []string{c.Email, c.Name, c.Subject} {
		if label == "" {
			label = other
		}
	}
	return store.Identity{User: u.ID, Issuer: c.Issuer, Subject: c.Subject, Label: Shorten(label, 100), Email: c.Email}
}
