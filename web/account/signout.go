package account

import (
	"net/http"
	"net/url"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/web"
)

// signOutPage asks for confirmation if the person could not sign in again without help.
type signOutPage struct {
	Action string
	ID     string // id of the session, if Action needs the id
	Return string
	// Passkeys and Others report which ways to sign in the person can add.
	Passkeys, Others bool
}

// sureToSignOut reports whether the session may end, because the person can sign in again
// or has confirmed. Otherwise it answers with a page that asks for confirmation, or returns
// an error.
func (s *pages) sureToSignOut(v *web.Visit) (bool, error) {
	if v.R.PostFormValue("sure") == "1" {
		return true, nil
	}
	alone, err := s.Stranded(v)
	if err != nil || !alone {
		return !alone, err
	}
	return false, s.Page(v, http.StatusOK, "signout", web.Page{Title: "Sign out?", Script: s.Passkeys != nil, Body: signOutPage{
		Action: v.R.URL.Path, ID: v.R.PostFormValue("id"), Return: web.LocalPath(v.R.PostFormValue("return")),
		Passkeys: s.Passkeys != nil, Others: len(s.Offered()) > 0,
	}})
}

// signOut handles POST /signout. The answer is the same if the visitor is already signed out.
func (s *pages) signOut(v *web.Visit) error {
	if v.In {
		if ok, err := s.sureToSignOut(v); !ok {
			return err
		}
		if _, err := s.Service.EndSession(v.R.Context(), v.Actor(), service.EndSessionInput{ID: v.Session.ID}); err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		s.Live.EndSession(v.User.ID, v.Session.ID)
	}
	s.ForgetSession(v)
	to := "/signin"
	if back := web.LocalPath(v.R.PostFormValue("return")); back != "/" {
		to += "?return=" + url.QueryEscape(back)
	}
	return s.See(v, to)
}
