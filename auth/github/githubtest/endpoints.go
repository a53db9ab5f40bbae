package githubtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	b, person := s.now()
	q := r.URL.Query()
	redirect := q.Get("redirect_uri")
	target, err := url.Parse(redirect)
	if q.Get("client_id") != s.o.ClientID || err != nil || !target.IsAbs() || !strings.HasPrefix(redirect, s.o.Callback) {
		http.NotFound(w, r)
		return
	}
	answer := target.Query()
	answer.Set("state", q.Get("state"))
	switch {
	case b.Refuse != "":
		answer.Set("error", b.Refuse)
		answer.Set("error_description", "SECRET-DETAIL of "+b.Refuse)
	case q.Get("code_challenge") != "" && q.Get("code_challenge_method") != "S256":
		answer.Set("error", "invalid_request")
	default:
		code := fresh("")[:20]
		s.mu.Lock()
		s.codes[code] = grant{person: person, redirect: redirect, challenge: q.Get("code_challenge"), scope: q.Get("scope")}
		s.mu.Unlock()
		answer.Set("code", code)
	}
	target.RawQuery = answer.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	b, _ := s.now()
	// GitHub answers errors with status 200, and with a form unless the client asks for JSON.
	answer := func(v map[string]string) {
		if strings.Contains(r.Header.Get("Accept"), "application/json") {
			reply(w, http.StatusOK, v)
			return
		}
		form := url.Values{}
		for name, value := range v {
			form.Set(name, value)
		}
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		fmt.Fprint(w, form.Encode())
	}
	refuse := func(code string) {
		answer(map[string]string{"error": code, "error_description": "SECRET-DETAIL of " + code, "error_uri": "https://docs.github.com/"})
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, "bad form", http.StatusBadRequest)
		return
	}
	f := r.PostForm
	if b.TokenError != "" {
		refuse(b.TokenError)
		return
	}
	if f.Get("client_id") != s.o.ClientID || f.Get("client_secret") != s.o.ClientSecret {
		refuse("incorrect_client_credentials")
		return
	}
	code := f.Get("code")
	s.mu.Lock()
	g, known := s.codes[code]
	delete(s.codes, code)
	s.mu.Unlock()
	sum := sha256.Sum256([]byte(f.Get("code_verifier")))
	switch {
	case !known, g.challenge != "" && base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		refuse("bad_verification_code")
	case f.Get("redirect_uri") != "" && f.Get("redirect_uri") != g.redirect:
		refuse("redirect_uri_mismatch")
	default:
		t := fresh("gho_")
		s.mu.Lock()
		s.tokens[t] = g
		s.mu.Unlock()
		answer(map[string]string{"access_token": t, "token_type": "bearer", "scope": strings.ReplaceAll(g.scope, " ", ",")})
	}
}

// bearer returns the grant of the request's token.
func (s *Server) bearer(w http.ResponseWriter, r *http.Request) (grant, bool) {
	t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	g, known := s.tokens[t]
	s.mu.Unlock()
	switch {
	case !ok || !known:
		fail(w, http.StatusUnauthorized, "Bad credentials")
		return g, false
	case r.Header.Get("User-Agent") == "":
		fail(w, http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header")
		return g, false
	}
	return g, true
}

func (s *Server) user(w http.ResponseWriter, r *http.Request) {
	g, ok := s.bearer(w, r)
	if !ok {
		return
	}
	p := g.person
	if p.Type == "" {
		p.Type = "User"
	}
	v := map[string]any{"id": p.ID, "login": p.Login, "type": p.Type, "name": nil, "email": nil, "node_id": "MDQ6VXNlcjU4MzIzMQ=="}
	if p.Name != "" {
		v["name"] = p.Name
	}
	if p.Suspended != "" {
		v["suspended_at"] = p.Suspended
	}
	reply(w, http.StatusOK, v)
}

func (s *Server) emails(w http.ResponseWriter, r *http.Request) {
	g, ok := s.bearer(w, r)
	if !ok {
		return
	}
	if !slices.Contains(strings.Fields(g.scope), "user:email") {
		fail(w, http.StatusNotFound, "Not Found")
		return
	}
	page(s, w, r, g.person.Emails)
}

func (s *Server) orgs(w http.ResponseWriter, r *http.Request) {
	g, ok := s.bearer(w, r)
	if !ok {
		return
	}
	if !slices.Contains(strings.Fields(g.scope), "read:org") {
		fail(w, http.StatusForbidden, "You need at least read:org scope or user scope to list your organization memberships.")
		return
	}
	b, _ := s.now()
	var all []map[string]any
	for _, m := range g.person.Orgs {
		if state := r.URL.Query().Get("state"); state == "" || state == m.State || b.IgnoreOrg {
			all = append(all, map[string]any{"state": m.State, "role": "member", "organization": map[string]any{"login": m.Org, "id": len(m.Org)}})
		}
	}
	page(s, w, r, all)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok || id != s.o.ClientID || secret != s.o.ClientSecret || r.PathValue("client") != id {
		fail(w, http.StatusUnauthorized, "Bad credentials")
		return
	}
	var body struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, http.StatusUnprocessableEntity, "Validation Failed")
		return
	}
	s.mu.Lock()
	_, known := s.tokens[body.AccessToken]
	delete(s.tokens, body.AccessToken)
	if known {
		s.revoked++
	}
	s.mu.Unlock()
	if !known {
		fail(w, http.StatusNotFound, "Not Found")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func page[T any](s *Server, w http.ResponseWriter, r *http.Request, all []T) {
	b, _ := s.now()
	q := r.URL.Query()
	size, number := 30, 1
	if n, err := strconv.Atoi(q.Get("per_page")); err == nil && n > 0 {
		size = min(n, 100)
	}
	if b.PerPage > 0 {
		size = min(size, b.PerPage)
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		number = n
	}
	start, end := min((number-1)*size, len(all)), min(number*size, len(all))
	if end < len(all) {
		q.Set("page", strconv.Itoa(number+1))
		w.Header().Set("Link", fmt.Sprintf("<%s%s?%s>; rel=\"next\", <%s%s?page=99>; rel=\"last\"", s.URL, r.URL.Path, q.Encode(), s.URL, r.URL.Path))
	}
	entries := all[start:end]
	if entries == nil {
		entries = []T{}
	}
	reply(w, http.StatusOK, entries)
}
