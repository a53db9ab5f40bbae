package signin

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// invitePage shows the inviter and the space. It asks a new person for a user name.
type invitePage struct {
	By, Note  string
	Space     string // empty if the invitation is only to the server
	Role      space.Role
	Admin     bool
	Action    string
	Return    string // the address of this page, for people who sign in first
	Name      string // the user name that the person entered
	Providers []web.ProviderButton
	// Own reports whether the visitor created the invitation or owns its space.
	Own bool
}

// showInvite handles GET /invite/{token}. It does not use up the invitation.
func (s *pages) showInvite(v *web.Visit) error {
	return s.askInvite(v, http.StatusOK, "", "")
}

func (s *pages) askInvite(v *web.Visit, status int, name, problem string) error {
	token := v.R.PathValue("token")
	in, err := s.Accounts.PeekInvitation(v.R.Context(), token)
	if err != nil {
		return deadInvitation(err)
	}
	path := "/invite/" + token
	body := invitePage{
		By: in.ByName, Note: in.Note, Space: in.SpaceName, Role: in.Role, Admin: in.Admin,
		Action: path, Return: path, Name: name,
	}
	if body.Own, err = s.ownInvitation(v, in); err != nil {
		return err
	}
	for _, p := range s.Offered() {
		body.Providers = append(body.Providers, web.ProviderButton{Label: p.Label(), Action: path + "/with/" + p.Name})
	}
	title := "You are invited"
	if body.Own {
		title = "Your invite"
	}
	return s.Page(v, status, "invite", web.Page{Title: title, Body: body, Problem: problem, Field: "name"})
}

// ownInvitation reports whether the visitor created the invitation or owns its space. Such a
// visitor would gain nothing by accepting the invitation, and would use it up.
func (s *pages) ownInvitation(v *web.Visit, in store.Invitation) (bool, error) {
	switch {
	case !v.In:
		return false, nil
	case in.By == v.User.ID:
		return true, nil
	case in.Space == "":
		return false, nil
	}
	all, err := s.Spaces(v)
	return slices.ContainsFunc(all, func(m service.View) bool { return m.ID == in.Space && m.Role == space.Owner }), err
}

// useInvite handles POST /invite/{token}. A signed-in person joins as themself. Anybody
// else becomes a user first, and is then asked to set up a way to sign in again.
func (s *pages) useInvite(v *web.Visit) error {
	token := v.R.PathValue("token")
	if v.In {
		in, err := s.Accounts.PeekInvitation(v.R.Context(), token)
		if err != nil {
			return deadInvitation(err)
		}
		if own, err := s.ownInvitation(v, in); err != nil {
			return err
		} else if own {
			return s.askInvite(v, http.StatusConflict, "", "")
		}
		in, err = s.Service.AcceptInvitation(v.R.Context(), v.Actor(), service.AcceptInvitationInput{Secret: token})
		if err != nil {
			return deadInvitation(err)
		}
		return s.See(v, afterInvitation(in))
	}
	name, problem := enteredName(v)
	if problem != "" {
		return s.askInvite(v, http.StatusBadRequest, name, problem)
	}
	u, in, err := s.join(v, auth.ExternalIdentity{}, token, name)
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.Conflict:
		return s.askInvite(v, http.StatusBadRequest, name, fault.PublicOf(err))
	case "":
	default:
		return deadInvitation(err)
	}
	// Perhaps a client waits for the person's consent.
	next := s.Remembered(v.R)
	if err := s.SignIn(v, u.ID, "invitation"); err != nil {
		return err
	}
	if next == "/" {
		if next = afterInvitation(in); next == "/" {
			return s.See(v, "/welcome")
		}
	}
	return s.See(v, "/welcome?return="+url.QueryEscape(next))
}

// enteredName returns the user name that a new person entered.
func enteredName(v *web.Visit) (name, problem string) {
	name = strings.TrimSpace(v.R.PostFormValue("name"))
	if err := store.CheckName(name); err != nil {
		if name == "" {
			return "", "Choose a user name."
		}
		return web.Shorten(name, 80), fault.PublicOf(err)
	}
	return name, ""
}

// beginJoin handles POST /invite/{token}/with/github and the corresponding addresses of
// other providers.
func (s *pages) beginJoin(p web.NamedProvider) web.Handler {
	return func(v *web.Visit) error {
		token := v.R.PathValue("token")
		if v.In {
			return s.See(v, "/invite/"+token)
		}
		if _, err := s.Accounts.PeekInvitation(v.R.Context(), token); err != nil {
			return deadInvitation(err)
		}
		name, problem := enteredName(v)
		if problem != "" {
			return s.askInvite(v, http.StatusBadRequest, name, problem)
		}
		return s.begin(v, p, signInFlow{Use: useJoin, Invitation: token, Name: name})
	}
}

// joinWith finishes the sign-in at a provider that beginJoin began. If the person already is a
// user, joinWith signs them in and asks whether to join as that user.
func (s *pages) joinWith(v *web.Visit, method string, c auth.ExternalIdentity, f signInFlow) error {
	u, err := s.Accounts.UserByIdentity(v.R.Context(), c.Issuer, c.Subject)
	to := "/invite/" + f.Invitation
	if fault.CodeOf(err) == fault.NotFound {
		var in store.Invitation
		u, in, err = s.join(v, c, f.Invitation, f.Name)
		to = afterInvitation(in)
	}
	if err != nil {
		return deadInvitation(err)
	}
	if err := s.SignIn(v, u.ID, method); err != nil {
		return err
	}
	return s.See(v, to)
}

// join creates a user and uses up the invitation.
func (s *pages) join(v *web.Visit, c auth.ExternalIdentity, token, name string) (store.User, store.Invitation, error) {
	in, err := s.Accounts.PeekInvitation(v.R.Context(), token)
	if err != nil {
		return store.User{}, store.Invitation{}, err
	}
	u, err := s.Service.Admit(v.R.Context(), c, token, name)
	return u, in, err
}

// afterInvitation returns the address of the first page that a person sees after joining.
func afterInvitation(in store.Invitation) string {
	if in.Space != "" {
		return "/?joined=" + url.QueryEscape(string(in.Space))
	}
	return "/"
}

func deadInvitation(err error) error {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.Unauthenticated:
		return &web.PageError{Status: http.StatusNotFound, Title: "This invite is no longer valid", Text: fault.PublicOf(err)}
	}
	return err
}

// welcomePage offers a new person ways to sign in again.
type welcomePage struct {
	Next      string // the address that they wanted to open
	Passkeys  bool
	Providers []web.ProviderButton
	// Stranded reports whether they need a link from an admin or an operator of the server
	// to sign in again.
	Stranded bool
	Joined   *service.View // the space to which they were invited
}

// welcome handles GET /welcome.
func (s *pages) welcome(v *web.Visit) error {
	body := welcomePage{Passkeys: s.Passkeys != nil, Next: web.LocalPath(v.R.URL.Query().Get("return"))}
	var err error
	if body.Stranded, err = s.Stranded(v); err != nil {
		return err
	}
	for _, p := range s.Offered() {
		body.Providers = append(body.Providers, web.ProviderButton{Label: p.Label(), Action: "/account/link/" + p.Name})
	}
	if u, err := url.Parse(body.Next); err == nil && u.Path == "/" {
		all, err := s.Spaces(v)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(all, web.JoinedIn(u.Query())); i >= 0 {
			body.Joined = &all[i]
		}
	}
	return s.Page(v, http.StatusOK, "welcome", web.Page{Title: "Welcome, " + v.User.Name, Script: body.Passkeys, Body: body})
}
