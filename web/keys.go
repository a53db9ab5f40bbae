package web

import (
	"net/http"
	"slices"

	"satchel/auth/store"
)

// keysPage is a person's keys, and what can be done with one.
type keysPage struct {
	Keys      []store.GrantInfo
	More      int // where the next part of the list begins
	Spaces    []store.Membership
	Lifetimes []int // days
	API       string
}

// showKeys is GET /account/keys.
func (s *Server) showKeys(v *visit) error { return s.keys(v, http.StatusOK, "", "") }

func (s *Server) keys(v *visit, status int, problem, field string) error {
	ctx := v.r.Context()
	grants, err := s.o.Accounts.Grants(ctx, v.user.ID)
	if err != nil {
		return err
	}
	grants = slices.DeleteFunc(grants, func(g store.GrantInfo) bool { return g.Kind != "key" || !s.inUse(g) })
	slices.SortStableFunc(grants, func(a, b store.GrantInfo) int { return latest(b).Compare(latest(a)) })
	body := keysPage{Lifetimes: keyDays(), API: s.url("/api")}
	from := min(pageFrom(v.r), max(0, len(grants)-1))
	body.Keys = grants[from:min(from+maxShown, len(grants))]
	if n := from + len(body.Keys); n < len(grants) {
		body.More = n
	}
	if body.Spaces, err = s.o.Accounts.SpacesOf(ctx, v.user.ID); err != nil {
		return err
	}
	return s.page(v, status, "keys", page{Title: "API keys", Wide: true, Current: "/account", Styles: []string{"admin.css"}, Script: true, Body: body, Problem: problem, Field: field, Done: doneIn(v, accountDone())})
}

// keyProblem shows again the form from which a key was not made.
func (s *Server) keyProblem(v *visit, problem, field string) error {
	if v.r.PostFormValue("from") == "keys" {
		return s.keys(v, http.StatusBadRequest, problem, field)
	}
	return s.account(v, http.StatusBadRequest, problem, field)
}
