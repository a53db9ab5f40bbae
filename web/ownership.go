package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Ownership deletes spaces; *service.Service is one.
type Ownership interface {
	DeleteSpace(ctx context.Context, a service.Actor, in service.DeleteSpaceInput) (service.SpaceDeletion, error)
}

// routeOwnership adds deleting a space and giving it away.
func (s *Site) routeOwnership() {
	if s.Ownership == nil {
		return
	}
	s.Handle("GET /spaces/{id}/end", LimitPage, SignedIn, s.askDelete)
	s.Handle("POST /spaces/{id}/end", LimitPage, SignedIn, s.deleteSpace)
	s.Handle("GET /spaces/{id}/give", LimitPage, SignedIn, s.askGive)
	s.Handle("POST /spaces/{id}/give", LimitPage, SignedIn, s.giveSpace)
}

// deletePage says what goes with a space, and what stays.
type deletePage struct {
	Space  store.Membership
	Action string
	// Only: it is the visitor's only one of their own. Next is where pages and
	// clients lead that name no space, if that is this one now.
	Only bool
	Next string
	// Members are those beside the owner.
	Members   int
	Published []string // the first names of sources
	// MorePublished are those that Published leaves out.
	MorePublished int
	Held          int        // files that were not saved
	HeldUnknown   bool       // whether there are such files cannot be told
	Remote        RemoteView // URL is empty if there is none
	Unknown       bool       // whether all was pushed cannot be told
}

// publishedNamed is how many sources a page of a deletion names.
const publishedNamed = 5

// mine lists the visitor's own spaces, the first one first.
func mine(all []store.Membership) []store.Membership {
	return slices.DeleteFunc(slices.Clone(all), func(m store.Membership) bool { return m.Role != space.Owner })
}

// askDelete is GET /spaces/{id}/end.
func (s *Site) askDelete(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	return s.deletePage(v, m, http.StatusOK, Page{})
}

func (s *Site) deletePage(v *Visit, m store.Membership, status int, p Page) error {
	ctx := v.R.Context()
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	own := mine(all)
	body := deletePage{Space: m, Action: "/spaces/" + string(m.ID), Only: len(own) < 2}
	if !body.Only && own[0].ID == m.ID {
		body.Next = own[1].Name
	}
	members, err := s.Service.ListMembers(ctx, v.Actor(), service.ListMembersInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return err
	}
	body.Members = len(slices.DeleteFunc(members, func(o store.Member) bool { return o.Role == space.Owner }))
	if s.Service.HasLibrary() {
		list, err := s.Service.ListPublished(ctx, v.Actor(), service.ListPublishedInput{Space: service.SpaceRef{ID: m.ID}})
		if err != nil {
			return err
		}
		for _, x := range list[:min(len(list), publishedNamed)] {
			body.Published = append(body.Published, x.Title)
		}
		body.MorePublished = len(list) - len(body.Published)
	}
	if n := s.PendingIn(v, m.ID); n < 0 {
		body.HeldUnknown = true
	} else {
		body.Held = n
	}
	// A space that cannot be read can be deleted all the same.
	body.Remote, err = s.RemoteOf(v, m.ID)
	body.Unknown = err != nil
	p.Title, p.Space, p.Styles, p.Body = "Delete the space "+m.Name, &m, []string{"activity.css"}, body
	return s.Page(v, status, "spacedelete", p)
}

// deleteSpace is POST /spaces/{id}/end.
func (s *Site) deleteSpace(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if strings.TrimSpace(v.R.PostFormValue("name")) != m.Name {
		return s.deletePage(v, m, http.StatusBadRequest, Page{Problem: "Nothing was deleted: that is not the name of this space. Type " + m.Name + ".", Field: "space-name"})
	}
	_, err = s.Ownership.DeleteSpace(v.R.Context(), v.Actor(), service.DeleteSpaceInput{Space: service.SpaceRef{ID: m.ID}})
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/spaces?done=deleted")
	case fault.Conflict:
		return s.deletePage(v, m, http.StatusConflict, Page{Problem: "Nothing was deleted: this is your only space. Make another one first."})
	case fault.NotFound:
		return Gone(err)
	}
	return err
}

// givePage says what it means to give a space away.
type givePage struct {
	Space   store.Membership
	Action  string
	Only    bool // it is the visitor's only one of their own
	To      space.UserID
	Members []store.Member // whom it can be given
	More    int
	Remote  RemoteView
	Shares  int // what is published of it
}

// askGive is GET /spaces/{id}/give.
func (s *Site) askGive(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	return s.givePage(v, m, http.StatusOK, Page{})
}

func (s *Site) givePage(v *Visit, m store.Membership, status int, p Page) error {
	ctx := v.R.Context()
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	body := givePage{Space: m, Action: "/spaces/" + string(m.ID), Only: len(mine(all)) < 2, To: space.UserID(v.R.PostFormValue("to"))}
	members, err := s.Service.ListMembers(ctx, v.Actor(), service.ListMembersInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return err
	}
	members = slices.DeleteFunc(members, func(o store.Member) bool { return o.Role == space.Owner })
	body.Members, body.More = FirstOf(members, v.R.URL.Query().Has("all"))
	if s.Service.HasLibrary() {
		list, err := s.Service.ListPublished(ctx, v.Actor(), service.ListPublishedInput{Space: service.SpaceRef{ID: m.ID}})
		if err != nil {
			return err
		}
		body.Shares = len(list)
	}
	if body.Remote, err = s.RemoteOf(v, m.ID); err != nil {
		return err
	}
	p.Title, p.Space, p.Styles, p.Body = "Give the space "+m.Name+" away", &m, []string{"activity.css"}, body
	return s.Page(v, status, "spacegive", p)
}

// giveSpace is POST /spaces/{id}/give.
func (s *Site) giveSpace(v *Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	wrong := func(problem, field string) error {
		return s.givePage(v, m, http.StatusBadRequest, Page{Problem: "Nothing was changed: " + problem, Field: field})
	}
	to := space.UserID(v.R.PostFormValue("to"))
	members, err := s.Service.ListMembers(v.R.Context(), v.Actor(), service.ListMembersInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(o store.Member) bool { return o.User == to && o.Role != space.Owner })
	switch {
	case to == "":
		return wrong("choose who becomes the owner.", "to")
	case i < 0:
		return wrong("they are no member of this space any more.", "to")
	case v.R.PostFormValue("sure") != "1":
		return wrong("confirm that you want to give it away.", "sure")
	}
	in := service.GiveSpaceInput{Space: service.SpaceRef{ID: m.ID}, To: service.UserRef{ID: to}}
	_, err = s.Service.GiveSpace(v.R.Context(), v.Actor(), in)
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/spaces/"+string(m.ID)+"?done=given")
	case fault.Conflict:
		if all, err := s.Spaces(v); err == nil && len(mine(all)) < 2 {
			return wrong("this is your only space. Make another one first.", "")
		}
		return wrong(members[i].Name+" has a space of this name already. Give this one another name first.", "to")
	case fault.NotFound:
		return Gone(err)
	}
	return err
}
