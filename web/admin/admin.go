// Package admin serves the pages of admins. They show the people who use the server, access
// to it, the audit log, its health and its usage. Register adds them to a site.
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

type pages struct {
	*web.Site
	words *auditWords
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site, newAuditWords(site.MethodText)}
	s.HandleAdmin("/admin", "People", s.showAdmin)
	s.Handle("POST /admin/invite", web.LimitPage, web.Admins, s.inviteToServer)
	s.Handle("POST /admin/invitations/revoke", web.LimitPage, web.Admins, s.revokeInvitation)
	s.Handle("POST /admin/people/{user}/remove", web.LimitPage, web.Admins, s.removePerson)
	s.Handle("POST /admin/people/{user}/link", web.LimitPage, web.Admins, s.makeLink)
	s.Handle("GET /admin/link", web.LimitPage, web.Admins, s.showMadeLink)
	s.Handle("POST /admin/people/{user}/admin", web.LimitPage, web.Admins, s.setAdmin)
	s.HandleAdmin("/admin/access", "Access", s.showAccess)
	s.Handle("POST /admin/clients/delete", web.LimitPage, web.Admins, s.deleteClient)
	s.Handle("POST /admin/access", web.LimitPage, web.Admins, s.setAccess)
	s.HandleAdmin("/admin/audit", "Audit log", s.showAudit)
	s.Handle("GET /admin/audit/export", web.LimitPage, web.Admins, s.exportAudit)
	s.HandleAdmin("/admin/health", "Health", s.showHealth)
	s.HandleAdmin("/admin/usage", "Usage", s.showUsage)
	return s.AddTemplates(templates)
}

// adminPage lists the people who may use the server.
type adminPage struct {
	Me          space.UserID
	People      []store.User
	Invitations []store.Invitation
	Lifetime    time.Duration
	LinkFor     time.Duration // lifetime of a sign-in link
	// MorePeople and MoreInvitations count the entries that the lists omit.
	MorePeople, MoreInvitations int
}

// showAdmin handles GET /admin.
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
	done := web.DoneIn(v, map[string]string{
		"admin": "The person is now an admin.", "no-admin": "The person is no longer an admin.",
		"removed": "The person was removed and signed out everywhere.", "revoked": "The invite was revoked.",
	})
	return s.Page(v, http.StatusOK, "admin", web.Page{Title: "People", Current: "/admin", Styles: []string{"admin.css"}, Body: body, Done: done})
}

// inviteToServer handles POST /admin/invite.
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

// revokeInvitation handles POST /admin/invitations/revoke.
func (s *pages) revokeInvitation(v *web.Visit) error {
	if _, err := s.Service.RevokeInvitation(v.R.Context(), v.Actor(), service.RevokeInvitationInput{ID: v.R.PostFormValue("id")}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/admin?done=revoked#invitations")
}

// person returns the user in the path.
func (s *pages) person(v *web.Visit) (store.User, error) {
	u, err := s.Accounts.User(v.R.Context(), space.UserID(v.R.PathValue("user")))
	if err != nil {
		return store.User{}, web.Gone(err)
	}
	return u, nil
}

// removePerson handles POST /admin/people/{user}/remove.
func (s *pages) removePerson(v *web.Visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	if _, err := s.Service.RemoveUser(v.R.Context(), v.Actor(), service.RemoveUserInput{User: service.UserRef{ID: u.ID}}); err != nil {
		return err
	}
	return s.See(v, "/admin?done=removed")
}

// madeLinkPage shows a sign-in link once.
type madeLinkPage struct {
	Link          string
	Name, Display string // of the user
	Admin         bool   // the user is an admin
	Lifetime      time.Duration
	Here          bool // the link opens only on the server's machine
}

// makeLink handles POST /admin/people/{user}/link. It creates a link for a person without
// another way to sign in.
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

// showMadeLink handles GET /admin/link, the target of makeLink's redirect.
func (s *pages) showMadeLink(v *web.Visit) error {
	var body madeLinkPage
	if ok, err := s.TakeOnce(v, web.FlowLink, &body); err != nil {
		return err
	} else if !ok {
		return &web.PageError{Status: http.StatusNotFound, Title: "This link was already shown", Text: "A sign-in link is shown only once. If you did not copy it, create another, which replaces it."}
	}
	return s.Page(v, http.StatusOK, "madelink", web.Page{Title: "A sign-in link for " + body.Name, Script: true, Current: "/admin", Body: body})
}

// setAdmin handles POST /admin/people/{user}/admin.
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
	if in.Admin {
		return s.See(v, "/admin?done=admin")
	}
	return s.See(v, "/admin?done=no-admin")
}
