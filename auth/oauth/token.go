package oauth

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"satchel/auth"
	"satchel/internal/fault"
)

const maxToken = 4096 // length of a code or a token in bytes

// tokenAnswer is the answer of RFC 6749 section 5.1.
type tokenAnswer struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"` // seconds
	Refresh   string `json:"refresh_token,omitempty"`
	Scope     string `json:"scope"`
}

// token exchanges a code or a refresh token (RFC 6749 sections 4.1.3 and 6).
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	grant := form.Get("grant_type")
	if grant == "" {
		writeError(w, http.StatusBadRequest, "invalid_request", "grant_type is missing.")
		return
	}
	if grant != "authorization_code" && grant != "refresh_token" {
		writeError(w, http.StatusBadRequest, "unsupported_grant_type", "grant_type must be authorization_code or refresh_token.")
		return
	}
	client, ok := s.caller(w, r, form)
	if !ok {
		return
	}
	resource := ""
	if named := form["resource"]; len(named) > 0 {
		if len(named) > maxResource {
			writeError(w, http.StatusBadRequest, "invalid_target", "Too many resources are named.")
			return
		}
		if resource, ok = s.resource(named); !ok {
			writeError(w, http.StatusBadRequest, "invalid_target", "The resource must be "+s.o.Resource+".")
			return
		}
	}
	var tokens auth.Tokens
	var err error
	if grant == "authorization_code" {
		tokens, err = s.redeem(r, form, client, resource)
	} else {
		tokens, err = s.refresh(r, form, client, resource)
	}
	if err != nil {
		s.tokenError(w, r, client, err)
		return
	}
	writeJSON(w, http.StatusOK, tokenAnswer{
		Access: tokens.Access.Reveal(), Type: "Bearer", ExpiresIn: max(0, int64(tokens.Expires.Sub(s.o.Now()).Seconds())),
		Refresh: tokens.Refresh.Reveal(), Scope: auth.ScopeList(tokens.Scopes),
	})
}

func (s *Server) redeem(r *http.Request, form url.Values, client, resource string) (auth.Tokens, error) {
	code, verifier, redirect := form.Get("code"), form.Get("code_verifier"), form.Get("redirect_uri")
	switch {
	case code == "" || verifier == "" || redirect == "":
		return auth.Tokens{}, &protocolError{"invalid_request", "code, code_verifier and redirect_uri are required."}
	case !isVisible(code, maxToken) || !isVisible(redirect, maxURL) || !isVerifier(verifier):
		return auth.Tokens{}, &protocolError{"invalid_grant", "The code, the code_verifier or the redirect_uri is malformed."}
	}
	return s.o.Store.Redeem(r.Context(), auth.Redemption{
		Code: code, Client: client, RedirectURI: redirect, Verifier: verifier, Resource: resource,
	})
}

func (s *Server) refresh(r *http.Request, form url.Values, client, resource string) (auth.Tokens, error) {
	token := form.Get("refresh_token")
	switch {
	case token == "":
		return auth.Tokens{}, &protocolError{"invalid_request", "refresh_token is missing."}
	case !isVisible(token, maxToken):
		return auth.Tokens{}, &protocolError{"invalid_grant", "The refresh token is malformed."}
	}
	scopes, ok := knownScopes(form.Get("scope"))
	if !ok {
		return auth.Tokens{}, &protocolError{"invalid_scope", "The scope is malformed."}
	}
	return s.o.Store.Refresh(r.Context(), auth.RefreshRequest{Refresh: token, Client: client, Resource: resource, Scopes: scopes})
}

// tokenError answers with the error of a token request (RFC 6749 section 5.2).
func (s *Server) tokenError(w http.ResponseWriter, r *http.Request, client string, err error) {
	p := (*protocolError)(nil)
	if !errors.As(err, &p) {
		for _, known := range []error{auth.ErrInvalidGrant, auth.ErrInvalidTarget, auth.ErrInvalidScope} {
			if errors.Is(err, known) {
				p = &protocolError{known.Error(), fault.PublicOf(err)}
			}
		}
	}
	switch code := fault.CodeOf(err); {
	case p != nil:
	case code == fault.Unauthenticated || code == fault.Forbidden || code == fault.NotFound:
		// The person who gave the grant was removed or lost the right.
		p = &protocolError{"invalid_grant", fault.PublicOf(err)}
	default:
		s.storeError(w, r, err, "invalid_request")
		return
	}
	s.o.Logger.InfoContext(r.Context(), "A token request was refused.", "client", client, "error", p.Error())
	writeError(w, http.StatusBadRequest, p.Code, p.Description)
}

// revoke revokes the grant of a token (RFC 7009). It answers 200 for an invalid token too.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	client, ok := s.caller(w, r, form)
	if !ok {
		return
	}
	token := form.Get("token")
	if token == "" {
		writeError(w, http.StatusBadRequest, "invalid_request", "token is missing.")
		return
	}
	if isVisible(token, maxToken) {
		if err := s.o.Store.RevokeToken(r.Context(), client, token); err != nil {
			s.storeError(w, r, err, "invalid_request")
			return
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// form reads a form from the body only, because URLs end up in logs (RFC 6749 section
// 2.3.1). Only resource may occur more than once (section 3.2). A parameter without a value
// counts as omitted.
func (s *Server) form(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/x-www-form-urlencoded" {
		writeError(w, http.StatusBadRequest, "invalid_request", "Send the parameters as application/x-www-form-urlencoded.")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	if err != nil {
		s.unreadable(w, err, "invalid_request")
		return nil, false
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request", "The form is malformed.")
		return nil, false
	}
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			writeError(w, http.StatusBadRequest, "invalid_request", "A parameter is sent twice.")
			return nil, false
		}
	}
	return form, true
}

// caller returns the client that a request names. All clients are public, so the id proves
// nothing, but the code or token of the request is bound to the id. A secret in the form or in
// a Basic header is ignored, because no client has one.
func (s *Server) caller(w http.ResponseWriter, r *http.Request, form url.Values) (string, bool) {
	id := form.Get("client_id")
	user, _, basic := r.BasicAuth()
	if basic {
		named, err := url.QueryUnescape(user) // RFC 6749 section 2.3.1
		if err != nil || id != "" && named != id && user != id {
			s.unknownClient(w, r, basic, id)
			return "", false
		}
		if id == "" {
			id = named
		}
	}
	switch {
	case id == "":
		writeError(w, http.StatusBadRequest, "invalid_request", "client_id is missing.")
		return "", false
	case !isVisible(id, maxClientID):
		s.unknownClient(w, r, basic, "")
		return "", false
	case strings.HasPrefix(id, "https://"):
		return id, true // a document's client; the code or token is bound to the id
	}
	if _, err := s.o.Store.Client(r.Context(), id); fault.CodeOf(err) == fault.NotFound {
		s.unknownClient(w, r, basic, id)
		return "", false
	} else if err != nil {
		s.storeError(w, r, err, "invalid_client")
		return "", false
	}
	return id, true
}

// unknownClient answers 401, so that the client registers again.
func (s *Server) unknownClient(w http.ResponseWriter, r *http.Request, basic bool, id string) {
	s.o.Logger.InfoContext(r.Context(), "A client is not known.", "client", clip(id))
	if basic {
		// Only a client that used Basic gets this header (RFC 6749 section 5.2). Other
		// clients would read the challenge and ignore the error.
		w.Header().Set("WWW-Authenticate", `Basic realm="Satchel"`)
	}
	writeError(w, http.StatusUnauthorized, "invalid_client", "The client is not known here. Register it again.")
}

// clip shortens a text for logs.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
