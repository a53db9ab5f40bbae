package signin

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// clientName is the name of a client on pages.
type clientName struct {
	// Client is the name that the client gives itself.
	Client string
	// Known reports whether the name and host come from a vendor's pinned document. It is
	// false if the answer stays on the person's computer, because any program there can
	// send a vendor's client id and listen.
	Known bool
}

func nameOf(req *oauth.Request) clientName {
	return clientName{Client: web.Shorten(req.Client.Name, 60), Known: req.Known && !req.Loopback && !req.App}
}

// consentPage asks a person whether a client gets access.
type consentPage struct {
	Client clientName
	// Document is the host that publishes the client's metadata. Preset reports whether an
	// admin set up the client.
	Document string
	Preset   bool
	// Host is the destination of the answer. Loopback reports whether the answer stays on
	// the person's computer. App reports whether the answer opens a program there.
	Host          string
	Loopback, App bool

	Spaces []spaceChoice
	// CanRead reports whether the client asks to read files, and AsksWrite whether it asks to
	// change them. CanWrite reports whether the person can allow changes in at least one
	// space. SomeRead reports whether there is a space that the person can only read.
	CanRead, AsksWrite, CanWrite, SomeRead bool
	Action                                 string
	Return                                 string
}

type spaceChoice struct {
	ID, Name, Owner string
	Role            space.Role
	Chosen          bool
}

// Mine reports whether the space is the person's own.
func (c spaceChoice) Mine() bool { return c.Role == space.Owner }

// ReadOnly reports whether the person, and so each of their clients, can only read the
// space.
func (c spaceChoice) ReadOnly() bool { return c.Role == space.Reader }

// showConsent handles GET /oauth/authorize. It checks the request before it asks the
// person. It asks each time: any program can use a client's name, so an earlier consent
// proves nothing.
func (s *pages) showConsent(v *web.Visit) error {
	req, err := s.authorize(v)
	if req == nil {
		return err
	}
	if !v.In {
		return s.See(v, "/signin?return="+url.QueryEscape(web.LocalPath(v.R.URL.RequestURI())))
	}
	return s.askConsent(v, req, http.StatusOK, "", "")
}

// authorize checks the client's request. The returned request is nil if authorize has
// already answered, or if it returns an error.
func (s *pages) authorize(v *web.Visit) (*oauth.Request, error) {
	q, err := url.ParseQuery(v.R.URL.RawQuery)
	if err != nil {
		return nil, &web.PageError{Status: http.StatusBadRequest, Title: "The request of the client is wrong", Text: "The address of the request cannot be read."}
	}
	req, err := s.OAuth.Authorize(v.R.Context(), q)
	var show *oauth.PageError
	var send *oauth.RedirectError
	switch {
	case errors.As(err, &show):
		if show.Status == http.StatusInternalServerError {
			s.Logger.ErrorContext(v.R.Context(), "an authorization request could not be checked", "error", show.Err)
		}
		p := &web.PageError{Status: show.Status, Title: show.Title, Text: show.Text}
		if show.Status == http.StatusBadRequest {
			p.Next = "If you did not start this connection, close this page. Otherwise, start it again in the client. If this page appears again, remove Satchel from the client and add it again."
		}
		return nil, p
	case errors.As(err, &send):
		if !send.Known {
			return nil, s.OfferToSend(v, send.URL)
		}
		return nil, s.SendTo(v, send.URL, "", false)
	case err != nil:
		return nil, err
	}
	return req, nil
}

// askConsent answers with the page that asks for consent.
func (s *pages) askConsent(v *web.Visit, req *oauth.Request, status int, chosen space.SpaceID, problem string) error {
	spaces, err := s.Spaces(v)
	if err != nil {
		return err
	}
	if len(spaces) == 0 {
		return &web.PageError{Status: http.StatusForbidden, Title: "You have no space", Text: "There is no space that this client could access. Ask the operator of the server for a space."}
	}
	body := consentPage{
		Client: nameOf(req),
		Preset: req.Client.Kind == auth.ClientPreset,
		Host:   web.Shorten(req.RedirectHost, 300), Loopback: req.Loopback, App: req.App,
		Spaces: choices(spaces, chosen), CanRead: slices.Contains(req.Scopes, space.ScopeRead),
		Action: "/oauth/authorize?" + v.R.URL.RawQuery, Return: web.LocalPath(v.R.URL.RequestURI()),
	}
	if u, err := url.Parse(req.Client.ID); err == nil && req.Client.Kind == auth.ClientDocument {
		body.Document = web.Shorten(u.Host, 300)
	}
	body.AsksWrite = slices.Contains(req.Scopes, space.ScopeWrite)
	body.CanWrite = body.AsksWrite && slices.ContainsFunc(body.Spaces, func(c spaceChoice) bool { return !c.ReadOnly() })
	body.SomeRead = slices.ContainsFunc(body.Spaces, spaceChoice.ReadOnly)
	p := web.Page{Title: "Connect a client", Bare: true, Body: body, Problem: problem, Field: "space"}
	if u, err := url.Parse(req.RedirectURI); err == nil {
		p.FormsTo = web.FormSources(u)
	}
	return s.Page(v, status, "consent", p)
}

// choices returns the spaces that the person can choose. If chosen is not one of them, the
// first one is chosen.
func choices(spaces []service.View, chosen space.SpaceID) []spaceChoice {
	if !slices.ContainsFunc(spaces, func(m service.View) bool { return m.ID == chosen }) && len(spaces) > 0 {
		chosen = spaces[0].ID
	}
	out := make([]spaceChoice, len(spaces))
	for i, m := range spaces {
		out[i] = spaceChoice{ID: string(m.ID), Name: m.Name, Owner: m.OwnerLabel(), Role: m.Role, Chosen: m.ID == chosen}
	}
	return out
}

// giveConsent handles POST /oauth/authorize. It reads the request from the address again.
// The form contains only the person's choices.
func (s *pages) giveConsent(v *web.Visit) error {
	req, err := s.authorize(v)
	if req == nil {
		return err
	}
	form := v.R.PostForm
	switch form.Get("decision") {
	case "deny":
		return s.SendTo(v, s.OAuth.Deny(req), req.Client.Name, true)
	case "allow":
	default:
		return fault.New(fault.Invalid, "Choose whether to allow or deny the access.")
	}
	// For a person, a space of which they are not a member does not exist.
	id := space.SpaceID(form.Get("space"))
	spaces, err := s.Spaces(v)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(spaces, func(m service.View) bool { return m.ID == id })
	if i < 0 {
		return s.askConsent(v, req, http.StatusBadRequest, "", "Choose one of your spaces.")
	}
	var scopes []space.Scope
	for _, scope := range req.Scopes {
		if scope == space.ScopeWrite && (form.Get("write") != "1" || spaces[i].Role == space.Reader) {
			continue
		}
		scopes = append(scopes, scope)
	}
	if len(scopes) == 0 {
		return s.askConsent(v, req, http.StatusBadRequest, id, "The client would get none of the access that it asks for. Choose another space, let the client change files, or deny the access.")
	}
	location, err := s.OAuth.Approve(v.R.Context(), v.User.ID, req, id, scopes)
	if err != nil {
		return err
	}
	return s.SendTo(v, location, req.Client.Name, true)
}
