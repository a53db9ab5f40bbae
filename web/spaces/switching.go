package spaces

import (
	"context"
	"net/http"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

type spaceList struct {
	Own, Shared []spaceItem
	More        int  // number of spaces that are not shown
	May         bool // the visitor can create another space
	Full        int  // the maximum number of own spaces, if the visitor has that many
	Name        string
}

type spaceItem struct {
	service.View
	Here    bool // the default space of pages that name no space
	Changed time.Time
	State   space.RemoteState
	Waiting int
}

// listSpaces handles GET /spaces.
func (s *pages) listSpaces(v *web.Visit) error {
	return s.spacesPage(v, "", web.Page{Done: web.DoneIn(v, spacesDone())})
}

func (s *pages) spacesPage(v *web.Visit, name string, p web.Page) error {
	all, err := s.Spaces(v)
	if err != nil {
		return err
	}
	body := spaceList{Name: name, May: true}
	look, stop := context.WithTimeout(v.R.Context(), s.WaitingTime)
	defer stop()
	states, err := s.Service.ListRemoteStates(v.R.Context(), v.Actor(), service.ListRemoteStatesInput{})
	if err != nil {
		return err
	}
	own := 0
	for i, m := range all {
		if m.Role == space.Owner {
			own++
		}
		if i >= web.SpacesShown && !v.R.URL.Query().Has("all") {
			body.More++
			continue
		}
		it := spaceItem{View: m, Here: i == 0, Waiting: web.Waiting(look, &m), State: states[m.ID]}
		if list, err := m.Log(v.R.Context(), space.LogQuery{Limit: 1}); err == nil && len(list) > 0 {
			it.Changed = list[0].Time
		}
		if m.Role == space.Owner {
			body.Own = append(body.Own, it)
		} else {
			body.Shared = append(body.Shared, it)
		}
	}
	if most := s.Service.MaxSpaces(); own >= most {
		body.May, body.Full = false, most
	}
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusBadRequest
	}
	p.Title, p.Styles, p.Body = "Spaces", []string{"activity.css"}, body
	return s.Page(v, status, "spaces", p)
}

// createSpace handles POST /spaces.
func (s *pages) createSpace(v *web.Visit) error {
	name := strings.TrimSpace(v.R.PostFormValue("name"))
	sp, err := s.Service.CreateSpace(v.R.Context(), v.Actor(), service.CreateSpaceInput{Name: name})
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/spaces/"+string(sp.ID))
	case fault.Limited:
		return s.spacesPage(v, name, web.Page{Problem: fault.PublicOf(err)})
	case fault.Invalid, fault.Conflict:
		return s.spacesPage(v, name, web.Page{Problem: nameProblem(err, name), Field: "space-name"})
	}
	return err
}

// nameProblem returns the problem with the name that a person chose for a space.
func nameProblem(err error, name string) string {
	if fault.CodeOf(err) == fault.Conflict {
		return "You already have a space " + web.Shorten(name, 60) + ". Choose another name."
	}
	if words := strings.Fields(strings.ToLower(name)); fault.CodeOf(err) == fault.Invalid && len(words) > 1 {
		return "A name cannot contain spaces. Try “" + web.Shorten(strings.Join(words, "-"), 60) + "”."
	}
	return fault.PublicOf(err)
}

// renameSpace handles POST /spaces/{id}/name.
func (s *pages) renameSpace(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(v.R.PostFormValue("name"))
	_, err = s.Service.RenameSpace(v.R.Context(), v.Actor(), service.RenameSpaceInput{Space: service.SpaceRef{ID: m.ID}, Name: name})
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/spaces/"+string(m.ID))
	case fault.Invalid, fault.Conflict:
		return &web.PageError{Status: http.StatusBadRequest, Title: "The name cannot be used", Text: nameProblem(err, name)}
	}
	return err
}
