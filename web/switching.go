package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// NewSpace makes a space of a person's, with its starting tree. The name passed
// store.CheckName, or the error is a fault.Invalid; one that they have already is a
// fault.Conflict.
type NewSpace func(ctx context.Context, by store.Actor, owner space.UserID, name string) (store.Space, error)

// DefaultMaxSpaces is how many spaces a person may make for themselves.
const DefaultMaxSpaces = 50

// routeSpaces adds the list of a person's spaces, and making one.
func (s *Server) routeSpaces(add adder) {
	if s.o.MaxSpaces == 0 {
		s.o.MaxSpaces = DefaultMaxSpaces
	}
	add("GET /spaces", LimitPage, signedIn, s.listSpaces)
	add("POST /spaces", LimitPage, signedIn, s.createSpace)
	add("POST /spaces/{id}/name", LimitPage, signedIn, s.renameSpace)
	s.routeOwnership(add)
}

// spaceList is a person's spaces.
type spaceList struct {
	Own, Shared []spaceItem
	More        int // that are not shown
	May         bool
	Full        int // how many spaces of their own are the most, where there are so many
	Name        string
}

// spaceItem is a space in a list.
type spaceItem struct {
	store.Membership
	Here    bool // it is the one that pages are of where they name none
	Changed time.Time
	State   string
	Waiting int
}

const spacesShown = 50

// listSpaces is GET /spaces.
func (s *Server) listSpaces(v *visit) error {
	return s.spacesPage(v, "", page{Done: doneIn(v, spacesDone())})
}

func (s *Server) spacesPage(v *visit, name string, p page) error {
	all, err := s.spacesOf(v)
	if err != nil {
		return err
	}
	body := spaceList{Name: name, May: s.o.NewSpace != nil}
	look, stop := context.WithTimeout(v.r.Context(), s.o.WaitingTime)
	defer stop()
	own := 0
	for i, m := range all {
		if m.Role == space.Owner {
			own++
		}
		if i >= spacesShown && !v.r.URL.Query().Has("all") {
			body.More++
			continue
		}
		it := spaceItem{Membership: m, Here: i == 0, Waiting: s.waitingIn(look, &m)}
		if list, err := s.o.History.Log(v.r.Context(), m.ID, LogQuery{Limit: 1}); err == nil && len(list) > 0 {
			it.Changed = list[0].Time
		}
		if s.o.Remotes != nil {
			it.State = s.o.Remotes.State(m.ID)
		}
		if m.Role == space.Owner {
			body.Own = append(body.Own, it)
		} else {
			body.Shared = append(body.Shared, it)
		}
	}
	if own >= s.o.MaxSpaces {
		body.May, body.Full = false, s.o.MaxSpaces
	}
	status := http.StatusOK
	if p.Problem != "" {
		status = http.StatusBadRequest
	}
	p.Title, p.Wide, p.Styles, p.Body = "Spaces", true, []string{"activity.css"}, body
	return s.page(v, status, "spaces", p)
}

// createSpace is POST /spaces.
func (s *Server) createSpace(v *visit) error {
	if s.o.NewSpace == nil {
		return errNoPage
	}
	all, err := s.spacesOf(v)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(v.r.PostFormValue("name"))
	if len(mine(all)) >= s.o.MaxSpaces {
		return s.spacesPage(v, name, page{Problem: "You have as many spaces of your own as this server allows."})
	}
	sp, err := s.o.NewSpace(v.r.Context(), v.by(), v.user.ID, name)
	switch fault.CodeOf(err) {
	case "":
		return s.see(v, "/spaces/"+string(sp.ID))
	case fault.Invalid, fault.Conflict:
		return s.spacesPage(v, name, page{Problem: nameProblem(err, name), Field: "space-name"})
	}
	return err
}

// nameProblem is what is wrong with a space's name, to who chose it.
func nameProblem(err error, name string) string {
	if fault.CodeOf(err) == fault.Conflict {
		return "You have a space " + shorten(name, 60) + " already. Choose another name."
	}
	return fault.PublicOf(err)
}

// renameSpace is POST /spaces/{id}/name.
func (s *Server) renameSpace(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(v.r.PostFormValue("name"))
	err = s.o.Accounts.RenameSpace(v.r.Context(), v.by(), m.ID, name)
	switch fault.CodeOf(err) {
	case "":
		return s.see(v, "/spaces/"+string(m.ID))
	case fault.Invalid, fault.Conflict:
		return &pageError{status: http.StatusBadRequest, title: "The name cannot be used", text: nameProblem(err, name)}
	}
	return err
}
