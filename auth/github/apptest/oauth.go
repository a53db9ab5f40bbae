package apptest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const codeLife = 10 * time.Minute

// authorize is the page at which a person lets an app act for them.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method == http.MethodPost {
		q = r.PostForm
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.client(q.Get("client_id"))
	if a == nil {
		s.page(w, r, http.StatusNotFound, "message", "Page not found", "There is no such app.")
		return
	}
	redirect := q.Get("redirect_uri")
	if redirect == "" && len(a.manifest.Callbacks) > 0 {
		redirect = a.manifest.Callbacks[0]
	}
	if !slices.Contains(a.manifest.Callbacks, redirect) {
		s.page(w, r, http.StatusBadRequest, "message", "Be careful!", "The redirect_uri is not associated with this application.")
		return
	}
	back := func(v url.Values) {
		v.Set("state", q.Get("state"))
		http.Redirect(w, r, withQuery(redirect, v), http.StatusFound)
	}
	if q.Get("code_challenge") != "" && q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" && q.Get("code_challenge_method") != "" {
		back(url.Values{"error": {"invalid_request"}, "error_description": {"The code_challenge_method must be S256."}})
		return
	}
	p := s.visitor(r)
	if p == nil {
		s.toSignIn(w, r)
		return
	}
	switch {
	case r.Method == http.MethodPost && q.Get("deny") != "":
		back(url.Values{"error": {"access_denied"}, "error_description": {"The user has denied your application access."}, "error_uri": {s.URL + "/docs"}})
		return
	case r.Method == http.MethodPost:
		a.authorized[p.id] = true
	case !a.authorized[p.id], q.Get("prompt") == "select_account":
		s.page(w, r, http.StatusOK, "authorize", "Authorize "+a.name, object{
			"App": a.name, "Login": p.login, "Known": a.authorized[p.id], "Host": hostOf(redirect), "Query": pairs(q), "Return": r.URL.RequestURI(),
		})
		return
	}
	c := fresh("")[:20]
	s.world.codes[c] = code{app: a, person: p, redirect: redirect, challenge: q.Get("code_challenge"), expires: s.now().Add(codeLife)}
	back(url.Values{"code": {c}})
}

func withQuery(target string, v url.Values) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	q := u.Query()
	maps.Copy(q, v)
	for name, values := range q {
		if len(values) == 1 && values[0] == "" {
			delete(q, name)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func hostOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	return u.Host
}

// accessToken redeems codes. It answers to errors with 200, and
// with a form unless asked for JSON.
func (s *Server) accessToken(w http.ResponseWriter, r *http.Request) {
	answer := func(v object) {
		if strings.Contains(r.Header.Get("Accept"), "application/json") {
			reply(w, http.StatusOK, v)
			return
		}
		form := url.Values{}
		for name, value := range v {
			form.Set(name, fmt.Sprint(value))
		}
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		fmt.Fprint(w, form.Encode())
	}
	refuse := func(code, description string) {
		answer(object{"error": code, "error_description": description, "error_uri": "https://docs.github.com/apps"})
	}
	f := r.Form // GitHub takes the parameters from the query as well
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.client(f.Get("client_id"))
	switch {
	case s.behaviour.TokenError != "":
		refuse(s.behaviour.TokenError, "SECRET-DETAIL of "+s.behaviour.TokenError)
		return
	case r.URL.Query().Has("client_secret") || r.URL.Query().Has("code"):
		s.violations = append(s.violations, "a secret in the query of the token endpoint")
	}
	if a == nil || a.clientSecret != f.Get("client_secret") {
		refuse("incorrect_client_credentials", "The client_id and/or client_secret passed are incorrect.")
		return
	}
	c, known := s.world.codes[f.Get("code")]
	delete(s.world.codes, f.Get("code")) // for one use, whatever comes of it
	sum := sha256.Sum256([]byte(f.Get("code_verifier")))
	switch {
	case !known || c.app != a || !c.expires.After(s.now()):
		refuse("bad_verification_code", "The code passed is incorrect or expired.")
	case f.Get("redirect_uri") != "" && f.Get("redirect_uri") != c.redirect:
		refuse("redirect_uri_mismatch", "The redirect_uri MUST match the registered callback URL for this application.")
	case c.challenge != "" && b64(sum[:]) != c.challenge:
		refuse("bad_verification_code", "The code passed is incorrect or expired.")
	default:
		answer(s.userToken(a, c.person))
	}
}

func (s *Server) userToken(a *app, p *account) object {
	t := &token{app: a, person: p, expires: s.now().Add(userLife)}
	access, refresh := fresh("ghu_"), fresh("ghr_")
	s.world.tokens[access] = t
	s.world.issued = append(s.world.issued, access, refresh)
	return object{
		"access_token": access, "expires_in": int(userLife.Seconds()), "refresh_token": refresh, "refresh_token_expires_in": 15897600,
		"token_type": "bearer", "scope": "",
	}
}

// UserToken makes a token of somebody's for an app, without a browser.
func (s *Server) UserToken(slug, login string) (name string) {
	s.with(func(w *world) {
		v := s.userToken(must(w.app(slug), slug), must(w.account(login), login))
		name = v["access_token"].(string)
	})
	return name
}
