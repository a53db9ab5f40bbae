package web

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/internal/service"
)

// invitedPage is the body of the page that shows the link of a new invitation once.
type invitedPage struct {
	Link     string
	What     string
	Lifetime time.Duration
	Back     string
	// Here reports that the link opens only on the server's machine.
	Here bool
}

// InvitationNote returns the note that a visitor entered in an invitation's form, shortened.
func InvitationNote(v *Visit) string { return Shorten(v.R.PostFormValue("note"), 150) }

// ShowInvitation shows the link of a new invitation.
func (s *Site) ShowInvitation(v *Visit, link service.Link, what, back string) error {
	return s.ShowOnce(v, FlowInvitation, "/invited", invitedPage{
		Link: link.URL, What: what, Lifetime: s.InviteLifetime, Back: back, Here: s.Loopback(),
	})
}

// showInvited handles GET /invited, to which ShowInvitation redirects.
func (s *Site) showInvited(v *Visit) error {
	var body invitedPage
	if ok, err := s.TakeOnce(v, FlowInvitation, &body); err != nil {
		return err
	} else if !ok {
		return &PageError{Status: http.StatusNotFound, Title: "This link was already shown", Text: "The link of an invite is shown only once. If you did not copy it, revoke the invite and create another."}
	}
	return s.Page(v, http.StatusOK, "invited", Page{Title: "Invite created", Script: true, Body: body})
}

// Loopback reports whether the pages are only reachable from the server's own machine.
func (s *Site) Loopback() bool {
	u, err := url.Parse(s.Issuer)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}
