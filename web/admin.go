package web

import (
	"net/http"
	"time"

	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
)

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
func (s *Site) showAdmin(v *Visit) error {
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
	body.People, body.MorePeople = FirstOf(people, all)
	body.Invitations, body.MoreInvitations = FirstOf(open, all)
	return s.Page(v, http.StatusOK, "admin", Page{Title: "People", Wide: true, Current: "/admin", Styles: []string{"admin.css"}, Body: body})
}

// inviteToServer is POST /admin/invite.
func (s *Site) inviteToServer(v *Visit) error {
	in := service.InviteToServerInput{Admin: v.R.PostFormValue("admin") == "1", Note: invitationNote(v)}
	what := "to this server"
	if in.Admin {
		what += ", as an admin"
	}
	link, err := s.Service.InviteToServer(v.R.Context(), v.Actor(), in)
	if err != nil {
		return err
	}
	return s.showInvitation(v, link, what, "/admin")
}

// revokeInvitation is POST /admin/invitations/revoke.
func (s *Site) revokeInvitation(v *Visit) error {
	if _, err := s.Service.RevokeInvitation(v.R.Context(), v.Actor(), service.RevokeInvitationInput{ID: v.R.PostFormValue("id")}); err != nil {
		return Gone(err)
	}
	return s.See(v, "/admin#invitations")
}

// person is the user of the path.
func (s *Site) person(v *Visit) (store.User, error) {
	u, err := s.Accounts.User(v.R.Context(), space.UserID(v.R.PathValue("user")))
	if err != nil {
		return store.User{}, Gone(err)
	}
	return u, nil
}

// removePerson is POST /admin/people/{user}/remove.
func (s *Site) removePerson(v *Visit) error {
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
func (s *Site) makeLink(v *Visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	link, err := s.Service.CreateLoginLink(v.R.Context(), v.Actor(), service.CreateLoginLinkInput{User: service.UserRef{ID: u.ID}})
	if err != nil {
		return err
	}
	return s.ShowOnce(v, FlowLink, "/admin/link", madeLinkPage{
		Link: link.URL, Name: u.Name, Display: u.Display, Admin: u.Admin, Lifetime: s.LinkLifetime, Here: s.Loopback(),
	})
}

// showMadeLink is GET /admin/link, where makeLink leads.
func (s *Site) showMadeLink(v *Visit) error {
	var body madeLinkPage
	if ok, err := s.TakeOnce(v, FlowLink, &body); err != nil {
		return err
	} else if !ok {
		return &PageError{Status: http.StatusNotFound, Title: "The link was shown", Text: "A sign-in link is shown once. If you have not copied it, make another, which ends that one."}
	}
	return s.Page(v, http.StatusOK, "madelink", Page{Title: "A sign-in link for " + body.Name, Script: true, Current: "/admin", Body: body})
}

// setAdmin is POST /admin/people/{user}/admin.
func (s *Site) setAdmin(v *Visit) error {
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
