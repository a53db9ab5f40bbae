package oidctest

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func (s *Server) configuration(w http.ResponseWriter, _ *http.Request) {
	b, _, _ := s.now()
	methods := []string{"client_secret_basic", "client_secret_post"}
	if s.o.ClientSecret == "" {
		methods = []string{"none"}
	}
	doc := map[string]any{
		"issuer":                                         s.URL,
		"authorization_endpoint":                         s.URL + "/authorize",
		"token_endpoint":                                 s.URL + "/token",
		"userinfo_endpoint":                              s.URL + "/userinfo",
		"jwks_uri":                                       s.URL + "/jwks",
		"scopes_supported":                               []string{"openid", "email", "profile"},
		"response_types_supported":                       []string{"code"},
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"ES256", "EdDSA", "RS256", "PS256", "HS256", "none"},
		"token_endpoint_auth_methods_supported":          methods,
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if b.Metadata != nil {
		b.Metadata(doc)
	}
	reply(w, http.StatusOK, doc)
}

func (s *Server) jwks(w http.ResponseWriter, _ *http.Request) {
	_, _, k := s.now()
	reply(w, http.StatusOK, map[string]any{"keys": k.public()})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	b, person, _ := s.now()
	q := r.URL.Query()
	redirect := q.Get("redirect_uri")
	target, err := url.Parse(redirect)
	if q.Get("client_id") != s.o.ClientID || err != nil || !target.IsAbs() || len(s.o.Redirects) > 0 && !slices.Contains(s.o.Redirects, redirect) {
		// Never redirect to an unknown client (RFC 6749 section 4.1.2.1).
		http.Error(w, "unknown client or redirect URI", http.StatusBadRequest)
		return
	}
	answer := target.Query()
	answer.Set("state", q.Get("state"))
	if !b.OmitIss {
		answer.Set("iss", s.URL)
	}
	if b.Iss != "" {
		answer.Set("iss", b.Iss)
	}
	scopes := strings.Fields(q.Get("scope"))
	refuse := func(code string) {
		answer.Set("error", code)
		answer.Set("error_description", "SECRET-DETAIL of "+code)
	}
	switch {
	case b.Refuse != "":
		refuse(b.Refuse)
	case q.Get("response_type") != "code":
		refuse("unsupported_response_type")
	case !slices.Contains(scopes, "openid"):
		refuse("invalid_scope")
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		refuse("invalid_request")
	default:
		code := fresh()
		s.mu.Lock()
		s.codes[code] = authorization{person: person, redirect: redirect, challenge: q.Get("code_challenge"), nonce: q.Get("nonce"), scope: q.Get("scope")}
		s.mu.Unlock()
		answer.Set("code", code)
	}
	target.RawQuery = answer.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound)
}

// authenticated reports whether the request authenticates the client (RFC 6749 section 2.3.1).
func (s *Server) authenticated(r *http.Request) bool {
	if id, secret, ok := r.BasicAuth(); ok {
		id, err1 := url.QueryUnescape(id)
		secret, err2 := url.QueryUnescape(secret)
		return err1 == nil && err2 == nil && s.o.ClientSecret != "" && id == s.o.ClientID && secret == s.o.ClientSecret
	}
	return r.PostForm.Get("client_id") == s.o.ClientID && r.PostForm.Get("client_secret") == s.o.ClientSecret
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	b, _, k := s.now()
	if err := r.ParseForm(); err != nil {
		fail(w, http.StatusBadRequest, "invalid_request")
		return
	}
	if b.TokenError != "" {
		fail(w, http.StatusBadRequest, b.TokenError)
		return
	}
	if !s.authenticated(r) {
		fail(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	code := r.PostForm.Get("code")
	s.mu.Lock()
	a, known := s.codes[code]
	delete(s.codes, code)
	s.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if r.PostForm.Get("grant_type") != "authorization_code" || !known || a.redirect != r.PostForm.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge {
		fail(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	now := s.o.Now()
	access := fresh()
	s.mu.Lock()
	s.tokens[access] = a.person
	s.mu.Unlock()
	claims := map[string]any{
		"iss": s.URL, "sub": a.person.Subject, "aud": s.o.ClientID,
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": a.nonce,
	}
	alg := b.Algorithm
	if alg == "" {
		alg = "ES256"
	}
	if alg != "EdDSA" {
		half := sha256.Sum256([]byte(access))
		claims["at_hash"] = base64.RawURLEncoding.EncodeToString(half[:16])
	}
	if !b.LeanIDToken {
		maps.Copy(claims, a.person.claims())
	}
	if b.Claims != nil {
		b.Claims(claims)
	}
	signed := k.sign(alg, s.o.ClientSecret, claims, b.Header)
	if b.Token != nil {
		signed = b.Token(signed)
	}
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": signed, "scope": a.scope}
	if b.Response != nil {
		b.Response(answer)
	}
	reply(w, http.StatusOK, answer)
}

func (s *Server) userinfo(w http.ResponseWriter, r *http.Request) {
	b, _, _ := s.now()
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	person, ok := s.tokens[bearer]
	s.mu.Unlock()
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		fail(w, http.StatusUnauthorized, "invalid_token")
		return
	}
	claims := person.claims()
	claims["sub"] = person.Subject
	if b.Userinfo != nil {
		b.Userinfo(claims)
	}
	reply(w, http.StatusOK, claims)
}

func (p Person) claims() map[string]any {
	c := map[string]any{}
	for name, v := range map[string]string{"email": p.Email, "name": p.Name, "preferred_username": p.Username} {
		if v != "" {
			c[name] = v
		}
	}
	if p.Verified != nil {
		c["email_verified"] = p.Verified
	}
	return c
}
