package account

import (
	"net/http"
	"slices"

	"satchel/internal/service"
	"satchel/web"
)

// keysPage lists a person's keys and creates new ones.
type keysPage struct {
	Keys      []client
	More      int // index of the next part of the list; 0 for the last part
	Spaces    []service.View
	Lifetimes []int // in days
	API       string
	Write     bool   // the new key may change files
	Name      string // name of the new key, as typed
}

// showKeys handles GET /account/keys.
func (s *pages) showKeys(v *web.Visit) error { return s.keys(v, http.StatusOK, "", "") }

func (s *pages) keys(v *web.Visit, status int, problem, field string) error {
	keys, err := s.clientsOf(v)
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(c client) bool { return !c.isKey() })
	body := keysPage{
		Lifetimes: keyDays(), API: s.URL("/api"), Name: web.Shorten(v.R.PostFormValue("name"), 100),
		Write: v.R.URL.Query().Get("write") == "1" || v.R.PostFormValue("write") == "1",
	}
	body.Keys, body.More = web.PartOf(v.R, keys)
	if body.Spaces, err = s.Spaces(v); err != nil {
		return err
	}
	return s.Page(v, status, "keys", web.Page{Title: "Keys", Current: "/account", Styles: []string{"admin.css"}, Script: true, Body: body, Problem: problem, Field: field, Done: web.DoneIn(v, accountDone())})
}
