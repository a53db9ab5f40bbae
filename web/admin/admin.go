// Package admin is the pages of the admins: who uses the server, who can come in, and
// how the server is.
package admin

import (
	"embed"
	"net/http"
	"time"

	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct{ *web.Site }

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site}
	s.Handle("GET /admin", web.LimitPage, web.Admins, s.showAdmin)
	s.Handle("POST /admin/invite", web.LimitPage, web.Admins, s.inviteToServer)
	s.Handle("POST /admin/invitations/revoke", web.LimitPage, web.Admins, s.revokeInvitation)
	s.Handle("POST /admin/people/{user}/remove", web.LimitPage, web.Admins, s.removePerson)
	s.Handle("POST /admin/people/{user}/link", web.LimitPage, web.Admins, s.makeLink)
	s.Handle("GET /admin/link", web.LimitPage, web.Admins, s.showMadeLink)
	s.Handle("POST /admin/people/{user}/admin", web.LimitPage, web.Admins, s.setAdmin)
	s.Handle("GET /admin/access", web.LimitPage, web.Admins, s.showAccess)
	s.Handle("POST /admin/clients/delete", web.LimitPage, web.Admins, s.deleteClient)
	s.Handle("GET /admin/health", web.LimitPage, web.Admins, s.showHealth)
	return s.AddTemplates(templates)
}

// adminPage is who may use the server.
type adminPage struct {
	Me          space.UserID
	People      []store.User
	Invitations []store.Invitation
	Lifetime    time.Duration
	LinkFor     time.Duration // how long a sign-in link is good
	// More are those that the lists leave out.
	MorePeople, MoreInvitations int
}

// showAdmin is GET /admin.
func (s *pages) showAdmin(v *web.Visit) error {
	people, err := s.Service.ListUsers(v.R.Context(), v.Actor(), service.None{})
	if err != nil {
		return err
	}
	open, err := s.Service.ListInvitations(v.R.Context(), v.Actor(), service.None{})
	if err != nil {
		return err
	}
	body := adminPage{Me: v.User.ID, Lifetime: s.InviteLifetime, LinkFor: s.LinkLifetime}
	all := v.R.URL.Query().Has("all")
	body.People, body.MorePeople = web.FirstOf(people, all)
	body.Invitations, body.MoreInvitations = web.FirstOf(open, all)
	return s.Page(v, http.StatusOK, "admin", web.Page{Title: "People", Wide: true, Current: "/admin", Styles: []string{"admin.css"}, Body: body})
}

// inviteToServer is POST /admin/invite.
func (s *pages) inviteToServer(v *web.Visit) error {
	in := service.InviteToServerInput{Admin: v.R.PostFormValue("admin") == "1", Note: web.InvitationNote(v)}
	what := "to this server"
	if in.Admin {
		what += ", as an admin"
	}
	link, err := s.Service.InviteToServer(v.R.Context(), v.Actor(), in)
	if err != nil {
		return err
	}
	return s.ShowInvitation(v, link, what, "/admin")
}

// revokeInvitation is POST /admin/invitations/revoke.
func (s *pages) revokeInvitation(v *web.Visit) error {
	if _, err := s.Service.RevokeInvitation(v.R.Context(), v.Actor(), service.RevokeInvitationInput{ID: v.R.PostFormValue("id")}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/admin#invitations")
}

// person is the user of the path.
func (s *pages) person(v *web.Visit) (store.User, error) {
	u, err := s.Accounts.User(v.R.Context(), space.UserID(v.R.PathValue("user")))
	if err != nil {
		return store.User{}, web.Gone(err)
	}
	return u, nil
}

// removePerson is POST /admin/people/{user}/remove.
func (s *pages) removePerson(v *web.Visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	if _, err := s.Service.RemoveUser(v.R.Context(), v.Actor(), service.RemoveUserInput{User: service.UserRef{ID: u.ID}}); err != nil {
		return err
	}
	return s.See(v, "/admin#people")
}

// madeLinkPage shows a sign-in link once.
type madeLinkPage struct {
	Link          string
	Name, Display string // whom it signs in
	Admin         bool   // they are an admin
	Lifetime      time.Duration
	Here          bool // it opens on the server's machine alone
}

// makeLink is POST /admin/people/{user}/link: a link for a person who has no other way to
// sign in.
func (s *pages) makeLink(v *web.Visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	link, err := s.Service.CreateLoginLink(v.R.Context(), v.Actor(), service.CreateLoginLinkInput{User: service.UserRef{ID: u.ID}})
	if err != nil {
		return err
	}
	return s.ShowOnce(v, web.FlowLink, "/admin/link", madeLinkPage{
		Link: link.URL, Name: u.Name, Display: u.Display, Admin: u.Admin, Lifetime: s.LinkLifetime, Here: s.Loopback(),
	})
}

// showMadeLink is GET /admin/link, where makeLink leads.
func (s *pages) showMadeLink(v *web.Visit) error {
	var body madeLinkPage
	if ok, err := s.TakeOnce(v, web.FlowLink, &body); err != nil {
		return err
	} else if !ok {
		return &web.PageError{Status: http.StatusNotFound, Title: "The link was shown", Text: "A sign-in link is shown once. If you have not copied it, make another, which ends that one."}
	}
	return s.Page(v, http.StatusOK, "madelink", web.Page{Title: "A sign-in link for " + body.Name, Script: true, Current: "/admin", Body: body})
}

// setAdmin is POST /admin/people/{user}/admin.
func (s *pages) setAdmin(v *web.Visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	in := service.SetAdminInput{User: service.UserRef{ID: u.ID}, Admin: v.R.PostFormValue("admin") == "1"}
	if _, err := s.Service.SetAdmin(v.R.Context(), v.Actor(), in); err != nil {
		return err
	}
	if u.ID == v.User.ID {
		return s.See(v, "/account")
	}
	return s.See(v, "/admin#people")
}
