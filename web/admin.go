package web

import (
	"net/http"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
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
func (s *Server) showAdmin(v *visit) error {
	people, err := s.o.Accounts.ListUsers(v.r.Context())
	if err != nil {
		return err
	}
	open, err := s.o.Accounts.Invitations(v.r.Context(), "")
	if err != nil {
		return err
	}
	body := adminPage{Me: v.user.ID, Lifetime: s.o.InviteLifetime, LinkFor: s.o.LinkLifetime}
	all := v.r.URL.Query().Has("all")
	body.People, body.MorePeople = firstOf(people, all)
	body.Invitations, body.MoreInvitations = firstOf(open, all)
	return s.page(v, http.StatusOK, "admin", page{Title: "People", Wide: true, Current: "/admin", Styles: []string{"admin.css"}, Body: body})
}

// inviteToServer is POST /admin/invite.
func (s *Server) inviteToServer(v *visit) error {
	n := store.NewInvitation{Admin: v.r.PostFormValue("admin") == "1"}
	what := "to this server"
	if n.Admin {
		what += ", as an admin"
	}
	return s.invite(v, n, what, "/admin")
}

// revokeInvitation is POST /admin/invitations/revoke.
func (s *Server) revokeInvitation(v *visit) error {
	if err := s.o.Accounts.RevokeInvitation(v.r.Context(), v.by(), v.r.PostFormValue("id"), ""); err != nil {
		return gone(err)
	}
	return s.see(v, "/admin#invitations")
}

// person is the user of the path.
func (s *Server) person(v *visit) (store.User, error) {
	u, err := s.o.Accounts.User(v.r.Context(), space.UserID(v.r.PathValue("user")))
	if err != nil {
		return store.User{}, gone(err)
	}
	return u, nil
}

// removePerson is POST /admin/people/{user}/remove.
func (s *Server) removePerson(v *visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	if u.ID == v.user.ID {
		return fault.New(fault.Invalid, "You cannot remove yourself. Another admin can.")
	}
	if err := s.o.Accounts.RemoveUser(v.r.Context(), v.by(), u.ID); err != nil {
		return err
	}
	s.o.Ended(v.r.Context(), u.ID)
	return s.see(v, "/admin#people")
}

// madeLinkPage shows a sign-in link once.
type madeLinkPage struct {
	Link          string
	Name, Display string // whom it signs in
	Admin         bool   // they are an admin
	Lifetime      time.Duration
	Here          bool // it opens on the server's machine alone
}

// makeLink is POST /admin/people/{user}/link: a link for somebody who has no other way
// to sign in, or lost it. The store says that it ends with the right to make it.
func (s *Server) makeLink(v *visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	if u.ID == v.user.ID {
		return fault.New(fault.Invalid, "You are signed in already. On the page Account you add further ways to sign in.")
	}
	secret, err := s.o.Accounts.CreateLink(v.r.Context(), v.by(), u.ID, "link", s.o.LinkLifetime)
	if err != nil {
		return gone(err)
	}
	s.TellOfLink(v.r.Context(), secret.Reveal())
	return s.showOnce(v, flowMadeLink, "/admin/link", madeLinkPage{
		Link: s.url("/signin/link/" + secret.Reveal()), Name: u.Name, Display: u.Display, Admin: u.Admin, Lifetime: s.o.LinkLifetime, Here: s.loopback(),
	})
}

// showMadeLink is GET /admin/link, where makeLink leads.
func (s *Server) showMadeLink(v *visit) error {
	var body madeLinkPage
	if ok, err := s.takeOnce(v, flowMadeLink, &body); err != nil {
		return err
	} else if !ok {
		return &pageError{status: http.StatusNotFound, title: "The link was shown", text: "A sign-in link is shown once. If you have not copied it, make another, which ends that one."}
	}
	return s.page(v, http.StatusOK, "madelink", page{Title: "A sign-in link for " + body.Name, Script: true, Current: "/admin", Body: body})
}

// setAdmin is POST /admin/people/{user}/admin.
func (s *Server) setAdmin(v *visit) error {
	u, err := s.person(v)
	if err != nil {
		return err
	}
	if err := s.o.Accounts.SetAdmin(v.r.Context(), v.by(), u.ID, v.r.PostFormValue("admin") == "1"); err != nil {
		return err
	}
	if u.ID == v.user.ID {
		return s.see(v, "/account")
	}
	return s.see(v, "/admin#people")
}
