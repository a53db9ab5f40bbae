package spaces

import (
	"net/http"
	"slices"
	"strings"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// deletePage shows what a deletion removes, and what stays.
type deletePage struct {
	Space  service.View
	Action string
	Typed  string // the wrong name that the visitor typed
	Only   bool   // the visitor owns no other space
	// Next is the default space of pages and clients after the deletion. It is empty if the
	// deletion does not change the default.
	Next          string
	Members       int            // number of members, without the owner
	Published     []string       // names of the first sources
	MorePublished int            // number of sources that Published omits
	Held          int            // number of files that were not saved
	HeldUnknown   bool           // it is unknown whether there are files that were not saved
	Remote        web.RemoteView // its URL is empty if the space has no remote
	Unknown       bool           // it is unknown whether everything was pushed
}

// publishedNamed is the maximum number of sources that the page of a deletion names.
const publishedNamed = 5

// mine returns the elements of all whose owner is the visitor.
func mine(all []service.View) []service.View {
	return slices.DeleteFunc(slices.Clone(all), func(m service.View) bool { return m.Role != space.Owner })
}

// askDelete handles GET /spaces/{id}/end.
func (s *pages) askDelete(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	return s.deletePage(v, m, http.StatusOK, web.Page{})
}

func (s *pages) deletePage(v *web.Visit, m service.View, status int, p web.Page) error {
	ctx := v.R.Context()
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	own := mine(all)
	body := deletePage{Space: m, Action: "/spaces/" + string(m.ID), Typed: web.Shorten(v.R.PostFormValue("name"), 64), Only: len(own) < 2}
	if !body.Only && own[0].ID == m.ID {
		body.Next = own[1].Name
	}
	members, err := s.Service.ListMembers(ctx, v.Actor(), service.ListMembersInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return err
	}
	body.Members = len(slices.DeleteFunc(members, func(o store.Member) bool { return o.Role == space.Owner }))
	list, err := s.Service.ListPublished(ctx, v.Actor(), service.ListPublishedInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return err
	}
	for _, x := range list[:min(len(list), publishedNamed)] {
		body.Published = append(body.Published, x.Title)
	}
	body.MorePublished = len(list) - len(body.Published)
	if n := s.PendingIn(v, m.ID); n < 0 {
		body.HeldUnknown = true
	} else {
		body.Held = n
	}
	// A space that cannot be read can still be deleted.
	body.Remote, err = s.RemoteOf(v, m.ID)
	body.Unknown = err != nil
	p.Title, p.Space, p.Current, p.Styles, p.Body = "Delete the space "+m.Name, &m, "space", []string{"activity.css"}, body
	return s.Page(v, status, "spacedelete", p)
}

// deleteSpace handles POST /spaces/{id}/end.
func (s *pages) deleteSpace(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	if strings.TrimSpace(v.R.PostFormValue("name")) != m.Name {
		return s.deletePage(v, m, http.StatusBadRequest, web.Page{Problem: "The name does not match. Type " + m.Name + ". Nothing was deleted.", Field: "space-name"})
	}
	_, err = s.Service.DeleteSpace(v.R.Context(), v.Actor(), service.DeleteSpaceInput{Space: service.SpaceRef{ID: m.ID}})
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/spaces?done=deleted")
	case fault.Conflict:
		return s.deletePage(v, m, http.StatusConflict, web.Page{Problem: "Nothing was deleted: this is your only space. Create another space first."})
	case fault.NotFound:
		return web.Gone(err)
	}
	return err
}

// givePage is the form that transfers a space to another owner.
type givePage struct {
	Space   service.View
	Action  string
	Only    bool // the visitor owns no other space
	To      space.UserID
	Members []store.Member // people who can become the owner
	More    int            // number of members that Members omits
	Remote  web.RemoteView
	Shares  int // number of sources that are published from the space
}

// askGive handles GET /spaces/{id}/give.
func (s *pages) askGive(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	return s.givePage(v, m, http.StatusOK, web.Page{})
}

func (s *pages) givePage(v *web.Visit, m service.View, status int, p web.Page) error {
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
	body.Members, body.More = web.FirstOf(members, v.R.URL.Query().Has("all"))
	list, err := s.Service.ListPublished(ctx, v.Actor(), service.ListPublishedInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return err
	}
	body.Shares = len(list)
	if body.Remote, err = s.RemoteOf(v, m.ID); err != nil {
		return err
	}
	p.Title, p.Space, p.Current, p.Styles, p.Body = "Transfer the space "+m.Name, &m, "space", []string{"activity.css"}, body
	return s.Page(v, status, "spacegive", p)
}

// giveSpace handles POST /spaces/{id}/give.
func (s *pages) giveSpace(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	wrong := func(problem, field string) error {
		return s.givePage(v, m, http.StatusBadRequest, web.Page{Problem: "Nothing was changed: " + problem, Field: field})
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
		return wrong("that person is no longer a member of this space.", "to")
	case v.R.PostFormValue("sure") != "1":
		return wrong("confirm that you want to transfer the space.", "sure")
	}
	in := service.GiveSpaceInput{Space: service.SpaceRef{ID: m.ID}, To: service.UserRef{ID: to}}
	_, err = s.Service.GiveSpace(v.R.Context(), v.Actor(), in)
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/spaces/"+string(m.ID)+"?done=given")
	case fault.Conflict:
		if all, err := s.Spaces(v); err == nil && len(mine(all)) < 2 {
			return wrong("this is your only space. Create another space first.", "")
		}
		return wrong(members[i].Name+" already has a space with this name. Rename this one first.", "to")
	case fault.NotFound:
		return web.Gone(err)
	}
	return err
}
