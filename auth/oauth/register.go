package oauth

import (
	"crypto/rand"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"satchel/auth"
	"satchel/internal/fault"
)

// register lets a client register itself (RFC 7591 section 3). Whatever the client requests, it
// becomes a public client of the authorization code flow, and the answer says so.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		writeError(w, http.StatusBadRequest, "invalid_client_metadata", "Send the metadata as application/json.")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	if err != nil {
		s.unreadable(w, err, "invalid_client_metadata")
		return
	}
	m, err := parseClientMetadata(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_client_metadata", "The body cannot be used: "+err.Error()+".")
		return
	}
	c, err := m.registered()
	if p := (*protocolError)(nil); errors.As(err, &p) {
		s.o.Logger.InfoContext(r.Context(), "A client that registers was refused.", "error", p.Error())
		writeError(w, http.StatusBadRequest, p.Code, p.Description)
		return
	}
	c.ID, c.Created = "client_"+strings.ToLower(rand.Text()), s.o.Now()
	if err := s.o.Store.RegisterClient(r.Context(), c); err != nil {
		s.storeError(w, r, err, "invalid_client_metadata")
		return
	}
	s.o.Logger.InfoContext(r.Context(), "A client registered.", "client", c.ID, "redirect", hostOf(c.RedirectURIs[0]))
	writeJSON(w, http.StatusCreated, registration{
		ID: c.ID, IssuedAt: c.Created.Unix(), Name: c.Name, URI: c.URI, RedirectURIs: c.RedirectURIs,
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		AuthMethod: "none", Scope: auth.ScopeList(offered()),
	})
}

// registration is the answer of RFC 7591 section 3.2.1.
type registration struct {
	ID            string   `json:"client_id"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	Name          string   `json:"client_name,omitempty"`
	URI           string   `json:"client_uri,omitempty"`
	RedirectURIs  []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	Scope         string   `json:"scope"`
}

func hostOf(redirect string) string {
	u, err := parseURL(redirect)
	if err != nil {
		return ""
	}
	if u.host == "" || u.scheme != "https" && u.scheme != "http" {
		return u.scheme + ":"
	}
	return u.host
}

func (s *Server) unreadable(w http.ResponseWriter, err error, code string) {
	if e := (*http.MaxBytesError)(nil); errors.As(err, &e) {
		writeError(w, http.StatusRequestEntityTooLarge, code, "The request is too large.")
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		writeError(w, http.StatusRequestTimeout, code, "The request did not arrive in time.")
		return
	}
	writeError(w, http.StatusBadRequest, code, "The request cannot be read.")
}

// storeError answers with an error of the store. tokenError handles the errors that only token
// requests have. invalid is the code for a request that the store refuses.
func (s *Server) storeError(w http.ResponseWriter, r *http.Request, err error, invalid string) {
	var f *fault.Error
	errors.As(err, &f)
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.Conflict, fault.NotFound, fault.TooLarge:
		writeError(w, http.StatusBadRequest, invalid, f.Public)
	case fault.Limited:
		s.o.Logger.WarnContext(r.Context(), "A request of a client met a limit.", "error", err)
		writeLimited(w, f.RetryAfter, f.Public)
	case fault.Unavailable, fault.Canceled:
		s.o.Logger.WarnContext(r.Context(), "A request of a client could not be answered.", "error", err)
		writeError(w, http.StatusServiceUnavailable, "temporarily_unavailable", f.Public)
	default:
		s.o.Logger.ErrorContext(r.Context(), "A request of a client failed.", "error", err)
		writeError(w, http.StatusInternalServerError, "server_error", fault.PublicOf(err))
	}
}
