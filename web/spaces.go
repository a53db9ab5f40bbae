package web

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// spacePage is a space as one of its members sees it.
type spacePage struct {
	Space       store.Membership
	Owner       bool
	Ends        bool // it can be deleted and given away here
	GitHub      bool // it can be connected there
	Me          space.UserID
	Members     []store.Member
	Invitations []store.Invitation
	Action      string
	Lifetime    time.Duration
	// More are those that the lists leave out.
	MoreMembers, MoreInvitations int
}

// spacesOf returns the visitor's spaces, their own first.
func (s *Server) spacesOf(v *visit) ([]store.Membership, error) {
	if v.spaces == nil {
		all, err := s.o.Accounts.SpacesOf(v.r.Context(), v.user.ID)
		if err != nil {
			return nil, err
		}
		v.spaces = all
	}
	return v.spaces, nil
}

// membership returns the space of the path as the visitor has it. One that they
// are no member of does not exist.
func (s *Server) membership(v *visit) (store.Membership, error) {
	id := space.SpaceID(v.r.PathValue("id"))
	all, err := s.spacesOf(v)
	if err != nil {
		return store.Membership{}, err
	}
	if i := slices.IndexFunc(all, func(m store.Membership) bool { return m.ID == id }); i >= 0 {
		return all[i], nil
	}
	return store.Membership{}, errGone
}

// writable is membership for what a reader may not do.
func (s *Server) writable(v *visit) (store.Membership, error) {
	m, err := s.membership(v)
	if err == nil && m.Role == space.Reader {
		return m, fault.New(fault.Forbidden, "You may only read the space %s. Its owner can let you change it.", m.Name)
	}
	return m, err
}

// meta says who makes a commit on these pages, and by what.
func (v *visit) meta(tool, message string) space.Meta {
	p := auth.Principal{UserName: v.user.Name, Display: v.user.Display, Email: v.user.Email}
	return space.Meta{Author: p.Person(), Message: message, Tool: tool, Client: "browser"}
}

// owned is membership for what an owner alone may do.
func (s *Server) owned(v *visit) (store.Membership, error) {
	m, err := s.membership(v)
	if err == nil && m.Role != space.Owner {
		return store.Membership{}, fault.New(fault.Forbidden, "Only who owns the space %s may do that.", m.Name)
	}
	return m, err
}

// showSpace is GET /spaces/{id}.
func (s *Server) showSpace(v *visit) error {
	m, err := s.membership(v)
	if err != nil {
		return err
	}
	body := spacePage{Space: m, GitHub: s.o.App != nil, Owner: m.Role == space.Owner, Ends: s.o.Ownership != nil, Me: v.user.ID, Action: "/spaces/" + string(m.ID), Lifetime: s.o.InviteLifetime}
	if body.Members, err = s.o.Accounts.Members(v.r.Context(), m.ID); err != nil {
		return err
	}
	if body.Owner {
		open, err := s.o.Accounts.Invitations(v.r.Context(), v.user.ID)
		if err != nil {
			return err
		}
		for _, in := range open {
			if in.Space == m.ID {
				body.Invitations = append(body.Invitations, in)
			}
		}
	}
	words := spaceDone()
	if m.Role == space.Editor {
		words = givenDone()
	}
	all := v.r.URL.Query().Has("all")
	body.Members, body.MoreMembers = firstOf(body.Members, all)
	body.Invitations, body.MoreInvitations = firstOf(body.Invitations, all)
	return s.page(v, http.StatusOK, "space", page{Title: "The space " + m.Name, Wide: true, Space: &m, Styles: []string{"activity.css"}, Body: body, Done: doneIn(v, words)})
}

// invitedPage shows the link of a new invitation, once.
type invitedPage struct {
	Link     string
	What     string
	Lifetime time.Duration
	Back     string
	// Here: the link opens on the server's machine alone.
	Here bool
}

// inviteToSpace is POST /spaces/{id}/invite.
func (s *Server) inviteToSpace(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	role := space.Role(v.r.PostFormValue("role"))
	if role != space.Editor && role != space.Reader {
		return fault.New(fault.Invalid, "Choose whether the person may change the space or only read it.")
	}
	what := "to read the space " + m.Name
	if role == space.Editor {
		what = "to read and change the space " + m.Name
	}
	return s.invite(v, store.NewInvitation{Space: m.ID, Role: role}, what, "/spaces/"+string(m.ID))
}

// invite makes an invitation and shows its link.
func (s *Server) invite(v *visit, n store.NewInvitation, what, back string) error {
	n.By, n.Note, n.Lifetime = v.user.ID, shorten(v.r.PostFormValue("note"), 150), s.o.InviteLifetime
	secret, _, err := s.o.Accounts.CreateInvitation(v.r.Context(), v.by(), n)
	if err != nil {
		return err
	}
	return s.showOnce(v, flowInvited, "/invited", invitedPage{
		Link: s.url("/invite/" + secret.Reveal()), What: what, Lifetime: s.o.InviteLifetime, Back: back, Here: s.loopback(),
	})
}

// showInvited is GET /invited, where invite leads.
func (s *Server) showInvited(v *visit) error {
	var body invitedPage
	if ok, err := s.takeOnce(v, flowInvited, &body); err != nil {
		return err
	} else if !ok {
		return &pageError{status: http.StatusNotFound, title: "The link was shown", text: "The link of an invitation is shown once. If you have not copied it, revoke the invitation and make another."}
	}
	return s.page(v, http.StatusOK, "invited", page{Title: "The invitation is made", Script: true, Body: body})
}

// loopback reports whether the pages are at an address of their own machine alone.
func (s *Server) loopback() bool {
	u, err := url.Parse(s.o.Issuer)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// revokeSpaceInvitation is POST /spaces/{id}/invitations/revoke.
func (s *Server) revokeSpaceInvitation(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	if err := s.o.Accounts.RevokeInvitation(v.r.Context(), v.by(), v.r.PostFormValue("id"), v.user.ID); err != nil {
		return gone(err)
	}
	return s.see(v, "/spaces/"+string(m.ID)+"?done=revoked")
}

// member is the member of the path. The owner is none that anything can be done
// to.
func (s *Server) member(v *visit, m store.Membership) (store.Member, error) {
	all, err := s.o.Accounts.Members(v.r.Context(), m.ID)
	if err != nil {
		return store.Member{}, err
	}
	i := slices.IndexFunc(all, func(o store.Member) bool { return string(o.User) == v.r.PathValue("user") })
	if i < 0 {
		return store.Member{}, errGone
	}
	if all[i].Role == space.Owner {
		return store.Member{}, fault.New(fault.Invalid, "%s owns the space, and stays its owner.", all[i].Name)
	}
	return all[i], nil
}

// setRole is POST /spaces/{id}/members/{user}/role.
func (s *Server) setRole(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	who, err := s.member(v, m)
	if err != nil {
		return err
	}
	role := space.Role(v.r.PostFormValue("role"))
	if role == who.Role {
		return s.see(v, "/spaces/"+string(m.ID)+"?done=same")
	}
	if err := s.o.Accounts.AddMember(v.r.Context(), v.by(), m.ID, who.User, role); err != nil {
		return err
	}
	if role == space.Reader {
		s.o.Ended(v.r.Context(), who.User)
	}
	return s.see(v, "/spaces/"+string(m.ID)+"?done=role")
}

// removeMember is POST /spaces/{id}/members/{user}/remove: the owner's act, or a
// member's own who leaves.
func (s *Server) removeMember(v *visit) error {
	m, err := s.membership(v)
	if err != nil {
		return err
	}
	leaves := v.r.PathValue("user") == string(v.user.ID)
	if !leaves {
		if m, err = s.owned(v); err != nil {
			return err
		}
	}
	who, err := s.member(v, m)
	if err != nil {
		return err
	}
	if err := s.o.Accounts.RemoveMember(v.r.Context(), v.by(), m.ID, who.User); err != nil {
		return err
	}
	s.o.Ended(v.r.Context(), who.User)
	if leaves {
		return s.see(v, "/account#spaces")
	}
	return s.see(v, "/spaces/"+string(m.ID)+"?done=removed")
}
