package signin

import (
	"net/http"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/web"
)

// The purposes of a flow with a provider.
const (
	useSignIn = "sign in"
	useLink   = "link"
	useJoin   = "join"
)

// signInFlow is the flow of a visit to a provider.
type signInFlow struct {
	web.Flow
	Use    string `json:"use"`
	Data   []byte `json:"data"` // the provider's own data
	Return string `json:"return,omitempty"`
	// Invitation and Name are set if the person joins with an invitation.
	Invitation string `json:"invitation,omitempty"`
	Name       string `json:"name,omitempty"`
}

// begin sends the browser to a provider.
func (s *pages) begin(v *web.Visit, p web.NamedProvider, f signInFlow) error {
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

// beginSignIn handles GET /signin/github and the corresponding addresses of other providers.
// A GET is safe: if another site starts the sign-in, the visitor is signed in as themself.
func (s *pages) beginSignIn(p web.NamedProvider) web.Handler {
	return func(v *web.Visit) error {
		return s.begin(v, p, signInFlow{Use: useSignIn, Return: web.LocalPath(v.R.URL.Query().Get("return"))})
	}
}

// beginLink handles POST /account/link/github and the corresponding addresses of other
// providers. It must not be a GET: an attacker could sign a browser in to the attacker's
// account at the provider, and then link that account to the visitor's.
func (s *pages) beginLink(p web.NamedProvider) web.Handler {
	return func(v *web.Visit) error {
		return s.begin(v, p, signInFlow{Flow: web.Flow{Session: v.Session.ID}, Use: useLink, Return: "/account"})
	}
}

// finishSignIn handles GET /signin/github/callback and the corresponding addresses of other
// providers. The provider redirects people there.
func (s *pages) finishSignIn(p web.NamedProvider) web.Handler {
	return func(v *web.Visit) error {
		state, ok := web.StateIn(v.R)
		if !ok {
			return web.ErrFlowOver()
		}
		var f signInFlow
		if ok, err := s.TakeFlow(v, p.FlowKind(), state, &f); err != nil {
			return err
		} else if !ok {
			return web.ErrFlowOver()
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
		return web.ErrFlowOver()
	}
}

// enter signs in a person with an identity from a provider. If the person is not a user or is
// suspended, but the server admits them, enter creates or readmits the user.
func (s *pages) enter(v *web.Visit, method string, c auth.ExternalIdentity, f signInFlow) error {
	u, err := s.Accounts.UserByIdentity(v.R.Context(), c.Issuer, c.Subject)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !u.Suspended.IsZero() {
		u, err = s.Service.Admit(v.R.Context(), c, "", "")
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

// notInvited returns the error for a person who is not admitted. It names their identity at
// the provider and the reason.
func notInvited(c auth.ExternalIdentity, why string) error {
	name := c.Login
	if name == "" {
		name = c.Email
	}
	if name == "" {
		name = c.Name
	}
	if name = web.Shorten(name, 80); name != "" {
		why = "You signed in as " + name + ". " + why
	}
	return &web.PageError{Status: http.StatusForbidden, Title: "You need an invite", Text: why}
}

// link adds a way to sign in for the visitor.
func (s *pages) link(v *web.Visit, c auth.ExternalIdentity) error {
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
	return store.Identity{User: u.ID, Issuer: c.Issuer, Subject: c.Subject, Label: web.Shorten(label, 100), Email: c.Email}
}
