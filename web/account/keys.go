package account

import (
	"net/http"
	"slices"

	"satchel/internal/service"
	"satchel/web"
)

// keysPage lists a person's keys and creates new ones.
type keysPage struct {
	Keys      []service.Grant
	More      int // index of the next part of the list; 0 for the last part
	Spaces    []service.View
	Lifetimes []int // in days
	API       string
	Write     bool   // the new key may change files
	Name      string // of the new key, as typed
}

// showKeys handles GET /account/keys.
func (s *pages) showKeys(v *web.Visit) error { return s.keys(v, http.StatusOK, "", "") }

func (s *pages) keys(v *web.Visit, status int, problem, field string) error {
	ctx := v.R.Context()
	grants, err := s.Service.ListGrants(ctx, v.Actor(), service.ListGrantsInput{})
	if err != nil {
		return err
	}
	grants = slices.DeleteFunc(grants, func(g service.Grant) bool { return g.Kind != "key" })
	slices.SortStableFunc(grants, func(a, b service.Grant) int { return latest(b).Compare(latest(a)) })
	body := keysPage{
		Lifetimes: keyDays(), API: s.URL("/api"), Name: web.Shorten(v.R.PostFormValue("name"), 100),
		Write: v.R.URL.Query().Get("write") == "1" || v.R.PostFormValue("write") == "1",
	}
	body.Keys, body.More = web.PartOf(v.R, grants)
	if body.Spaces, err = s.Spaces(v); err != nil {
		return err
	}
	return s.Page(v, status, "keys", web.Page{Title: "Keys", Current: "/account", Styles: []string{"admin.css"}, Script: true, Body: body, Problem: problem, Field: field, Done: web.DoneIn(v, accountDone())})
}

// keyProblem shows the form for a key again, with a problem.
func (s *pages) keyProblem(v *web.Visit, problem, field string) error {
	if v.R.PostFormValue("from") == "keys" {
		return s.keys(v, http.StatusBadRequest, problem, field)
	}
	return s.account(v, http.StatusBadRequest, problem, field)
}
