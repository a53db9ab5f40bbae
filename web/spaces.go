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

// Spaces returns the visitor's spaces, their own first.
func (s *Site) Spaces(v *Visit) ([]store.Membership, error) {
	if v.spaces == nil {
		all, err := s.Accounts.SpacesOf(v.R.Context(), v.User.ID)
		if err != nil {
			return nil, err
		}
		v.spaces = all
	}
	return v.spaces, nil
}

// Space returns the space of the path as the visitor has it. One that they
// are no member of does not exist.
func (s *Site) Space(v *Visit) (store.Membership, error) {
	id := space.SpaceID(v.R.PathValue("id"))
	all, err := s.Spaces(v)
	if err != nil {
		return store.Membership{}, err
	}
	if i := slices.IndexFunc(all, func(m store.Membership) bool { return m.ID == id }); i >= 0 {
		return all[i], nil
	}
	return store.Membership{}, ErrGone
}

// WritableSpace is membership for what a reader may not do.
func (s *Site) WritableSpace(v *Visit) (store.Membership, error) {
	m, err := s.Space(v)
	if err == nil && m.Role == space.Reader {
		return m, fault.New(fault.Forbidden, "You may only read the space %s. Its owner can let you change it.", m.Name)
	}
	return m, err
}

// Meta says who makes a commit on these pages, and by what.
func (v *Visit) Meta(tool, message string) space.Meta {
	p := auth.Principal{UserName: v.User.Name, Display: v.User.Display, Email: v.User.Email}
	return space.Meta{Author: p.Person(), Message: message, Tool: tool, Client: "browser"}
}

// OwnedSpace is membership for what an owner alone may do.
func (s *Site) OwnedSpace(v *Visit) (store.Membership, error) {
	m, err := s.Space(v)
	if err == nil && m.Role != space.Owner {
		return store.Membership{}, fault.New(fault.Forbidden, "Only who owns the space %s may do that.", m.Name)
	}
	return m, err
}

// showSpace is GET /spaces/{id}.
func (s *Site) showSpace(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	body := spacePage{Space: m, GitHub: s.App != nil, Owner: m.Role == space.Owner, Ends: s.Ownership != nil, Me: v.User.ID, Action: "/spaces/" + string(m.ID), Lifetime: s.InviteLifetime}
	if body.Members, err = s.Accounts.Members(v.R.Context(), m.ID); err != nil {
		return err
	}
	if body.Owner {
		open, err := s.Accounts.Invitations(v.R.Context(), v.User.ID)
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
	all := v.R.URL.Query().Has("all")
	body.Members, body.MoreMembers = FirstOf(body.Members, all)
	body.Invitations, body.MoreInvitations = FirstOf(body.Invitations, all)
	return s.Page(v, http.StatusOK, "space", Page{Title: "The space " + m.Name, Wide: true, Space: &m, Styles: []string{"activity.css"}, Body: body, Done: DoneIn(v, words)})
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
func (s *Site) inviteToSpace(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	role := space.Role(v.R.PostFormValue("role"))
	if role != space.Editor && role != space.Reader {
		return fault.New(fault.Invalid, "Choose whether the person may change the space or only read it.")
	}
	what := "to read the space " + m.Name
	if role == space.Editor {
		what = "to read and change the space " + m.Name
	}
	return s.Invite(v, store.NewInvitation{Space: m.ID, Role: role}, what, "/spaces/"+string(m.ID))
}

// Invite makes an invitation and shows its link.
func (s *Site) Invite(v *Visit, n store.NewInvitation, what, back string) error {
	n.By, n.Note, n.Lifetime = v.User.ID, Shorten(v.R.PostFormValue("note"), 150), s.InviteLifetime
	secret, _, err := s.Accounts.CreateInvitation(v.R.Context(), v.By(), n)
	if err != nil {
		return err
	}
	return s.ShowOnce(v, FlowInvitation, "/invited", invitedPage{
		Link: s.URL("/invite/" + secret.Reveal()), What: what, Lifetime: s.InviteLifetime, Back: back, Here: s.Loopback(),
	})
}

// showInvited is GET /invited, where invite leads.
func (s *Site) showInvited(v *Visit) error {
	var body invitedPage
	if ok, err := s.TakeOnce(v, FlowInvitation, &body); err != nil {
		return err
	} else if !ok {
		return &PageError{Status: http.StatusNotFound, Title: "The link was shown", Text: "The link of an invitation is shown once. If you have not copied it, revoke the invitation and make another."}
	}
	return s.Page(v, http.StatusOK, "invited", Page{Title: "The invitation is made", Script: true, Body: body})
}

// Loopback reports whether the pages are at an address of their own machine alone.
func (s *Site) Loopback() bool {
	u, err := url.Parse(s.Issuer)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}

// revokeSpaceInvitation is POST /spaces/{id}/invitations/revoke.
func (s *Site) revokeSpaceInvitation(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if err := s.Accounts.RevokeInvitation(v.R.Context(), v.By(), v.R.PostFormValue("id"), v.User.ID); err != nil {
		return Gone(err)
	}
	return s.See(v, "/spaces/"+string(m.ID)+"?done=revoked")
}

// member is the member of the path. The owner is none that anything can be done
// to.
func (s *Site) member(v *Visit, m store.Membership) (store.Member, error) {
	all, err := s.Accounts.Members(v.R.Context(), m.ID)
	if err != nil {
		return store.Member{}, err
	}
	i := slices.IndexFunc(all, func(o store.Member) bool { return string(o.User) == v.R.PathValue("user") })
	if i < 0 {
		return store.Member{}, ErrGone
	}
	if all[i].Role == space.Owner {
		return store.Member{}, fault.New(fault.Invalid, "%s owns the space, and stays its owner.", all[i].Name)
	}
	return all[i], nil
}

// setRole is POST /spaces/{id}/members/{user}/role.
func (s *Site) setRole(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	who, err := s.member(v, m)
	if err != nil {
		return err
	}
	role := space.Role(v.R.PostFormValue("role"))
	if role == who.Role {
		return s.See(v, "/spaces/"+string(m.ID)+"?done=same")
	}
	if err := s.Accounts.AddMember(v.R.Context(), v.By(), m.ID, who.User, role); err != nil {
		return err
	}
	if role == space.Reader {
		s.Ended(v.R.Context(), who.User)
	}
	return s.See(v, "/spaces/"+string(m.ID)+"?done=role")
}

// removeMember is POST /spaces/{id}/members/{user}/remove: the owner's act, or a
// member's own who leaves.
func (s *Site) removeMember(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	leaves := v.R.PathValue("user") == string(v.User.ID)
	if !leaves {
		if m, err = s.OwnedSpace(v); err != nil {
			return err
		}
	}
	who, err := s.member(v, m)
	if err != nil {
		return err
	}
	if err := s.Accounts.RemoveMember(v.R.Context(), v.By(), m.ID, who.User); err != nil {
		return err
	}
	s.Ended(v.R.Context(), who.User)
	if leaves {
		return s.See(v, "/account#spaces")
	}
	return s.See(v, "/spaces/"+string(m.ID)+"?done=removed")
}
