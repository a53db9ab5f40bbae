package web

import (
	"net/http"
	"slices"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
)

// provider is one service to sign in with, and the name that it has in paths.
type provider struct {
	Provider
	name string
}

func (p provider) kind() flowKind   { return flowProvider + flowKind(p.name) }
func (p provider) callback() string { return "/signin/" + p.name + "/callback" }

// What a flow with a provider is for.
const (
	useSignIn = "sign in"
	useLink   = "link"
	useJoin   = "join"
)

// signInFlow is what the server remembers while somebody is at a provider.
type signInFlow struct {
	flow
	Use    string `json:"use"`
	Data   []byte `json:"data"` // the provider's own
	Return string `json:"return,omitempty"`
	// Invitation and Name are of who joins.
	Invitation string `json:"invitation,omitempty"`
	Name       string `json:"name,omitempty"`
}

// providers are those that are configured.
func (s *Server) providers() []provider {
	var out []provider
	if s.o.GitHub != nil {
		out = append(out, provider{s.o.GitHub, "github"})
	}
	if s.o.OIDC != nil {
		out = append(out, provider{s.o.OIDC, "oidc"})
	}
	return out
}

// offered are those with which somebody can sign in now.
func (s *Server) offered() []provider {
	return slices.DeleteFunc(s.providers(), func(p provider) bool {
		r, can := p.Provider.(interface{ Ready() bool })
		return can && !r.Ready()
	})
}

// begin sends the browser to a provider.
func (s *Server) begin(v *visit, p provider, f signInFlow) error {
	state := auth.NewSecret(auth.KindFlow).Reveal()
	location, data, err := p.Begin(v.r.Context(), s.url(p.callback()), state)
	if err != nil {
		return err
	}
	f.Data = data
	if err := s.keepFlow(v, p.kind(), state, &f); err != nil {
		return err
	}
	return s.leaveFor(v, location)
}

// beginSignIn is GET /signin/github and the like. Whoever has somebody else's
// browser begin one signs them in as themselves, so that a GET is enough.
func (s *Server) beginSignIn(p provider) handler {
	return func(v *visit) error {
		return s.begin(v, p, signInFlow{Use: useSignIn, Return: localPath(v.r.URL.Query().Get("return"))})
	}
}

// beginLink is POST /account/link/github and the like: never a GET, since
// somebody could be sent through it whom another signed in to that other's
// account at the provider.
func (s *Server) beginLink(p provider) handler {
	return func(v *visit) error {
		return s.begin(v, p, signInFlow{flow: flow{Session: v.session.ID}, Use: useLink, Return: "/account"})
	}
}

// finishSignIn is where a provider sends people back to.
func (s *Server) finishSignIn(p provider) handler {
	return func(v *visit) error {
		state, ok := stateIn(v.r)
		if !ok {
			return errFlowOver()
		}
		var f signInFlow
		if ok, err := s.takeFlow(v, p.kind(), state, &f); err != nil {
			return err
		} else if !ok {
			return errFlowOver()
		}
		c, err := p.Finish(v.r.Context(), s.url(p.callback()), f.Data, v.r.URL.Query())
		if err != nil {
			return err
		}
		if c.Issuer == "" || c.Subject == "" {
			return fault.New(fault.Unauthenticated, "%s did not say who you are.", p.Label())
		}
		switch {
		case f.Use == useSignIn:
			return s.enter(v, p.name, c, f)
		case f.Use == useLink && f.Session != "":
			return s.link(v, c)
		case f.Use == useJoin:
			return s.joinWith(v, p.name, c, f)
		}
		return errFlowOver()
	}
}

// enter signs somebody in whom a provider knows, and who is a user or may become
// one.
func (s *Server) enter(v *visit, method string, c auth.Claimant, f signInFlow) error {
	u, err := s.o.Accounts.UserByIdentity(v.r.Context(), c.Issuer, c.Subject)
	if fault.CodeOf(err) == fault.NotFound || err == nil && !u.Suspended.IsZero() {
		u, err = s.o.People.Admit(v.r.Context(), c, "", "")
		if fault.CodeOf(err) == fault.Forbidden {
			return notInvited(c, fault.PublicOf(err))
		}
	}
	if err != nil {
		return err
	}
	if err := s.signIn(v, u.ID, method); err != nil {
		return err
	}
	return s.see(v, f.Return)
}

// notInvited tells somebody that they are known, as whom, and why they are not let
// in.
func notInvited(c auth.Claimant, why string) error {
	name := c.Login
	if name == "" {
		name = c.Email
	}
	if name == "" {
		name = c.Name
	}
	if name = shorten(name, 80); name != "" {
		why = "You signed in as " + name + ". " + why
	}
	return &pageError{status: http.StatusForbidden, title: "You need an invitation", text: why}
}

// link gives the signed-in person a further way to sign in.
func (s *Server) link(v *visit, c auth.Claimant) error {
	err := s.o.Accounts.LinkIdentity(v.r.Context(), v.by(), identityOf(c, v.user))
	if err != nil {
		return err
	}
	if err := s.rotate(v); err != nil {
		return err
	}
	return s.see(v, "/account#sign-ins")
}

func identityOf(c auth.Claimant, u store.User) store.Identity {
	label := c.Login
	for _, other := range []string{c.Email, c.Name, c.Subject} {
		if label == "" {
			label = other
		}
	}
	return store.Identity{User: u.ID, Issuer: c.Issuer, Subject: c.Subject, Label: shorten(label, 100), Email: c.Email}
}
