package oauth

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"satchel/internal/space"
)

// offered lists all scopes in display order.
func offered() []space.Scope { return []space.Scope{space.ScopeRead, space.ScopeWrite} }

// metadata serves the server's metadata (RFC 8414). The metadata depends on the host of the
// request.
func (s *Server) metadata() http.Handler {
	at := map[string]http.Handler{}
	for issuer, resource := range s.issuers {
		at[issuer] = fixed(s.description(issuer, resource))
	}
	return cors(http.MethodGet, s.limited(LimitMetadata, func(w http.ResponseWriter, r *http.Request) {
		at[s.IssuerAt(r.Host)].ServeHTTP(w, r)
	}))
}

// IssuerAt returns the issuer for a client that reaches the server at a host.
func (s *Server) IssuerAt(host string) string {
	if at := s.o.At(host); s.issuers[at] != "" {
		return at
	}
	return s.o.Issuer
}

func (s *Server) description(issuer, resource string) map[string]any {
	doc := map[string]any{
		"issuer":                                         issuer,
		"authorization_endpoint":                         issuer + PathAuthorize,
		"token_endpoint":                                 issuer + PathToken,
		"revocation_endpoint":                            issuer + PathRevoke,
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"scopes_supported":                               offered(),
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          s.o.Documents,
		"protected_resources":                            []string{resource}, // RFC 9728 section 4
	}
	if s.o.Registration {
		doc["registration_endpoint"] = issuer + PathRegister
	}
	if s.o.Documentation != "" {
		doc["service_documentation"] = s.o.Documentation
	}
	return doc
}

// ResourceMetadata serves the description of the protected resource (RFC 9728 section 3.2).
// Its paths are /.well-known/oauth-protected-resource, and the same with the resource's path
// appended. A client compares resource with the URL that its user typed, byte for byte. scopes
// are the scopes that clients should request. The list is empty if the servers have no scopes.
func ResourceMetadata(resource string, servers, scopes []string) http.Handler {
	doc := map[string]any{
		"resource":                 resource,
		"authorization_servers":    slices.Clone(servers),
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "Satchel",
	}
	if len(scopes) > 0 {
		doc["scopes_supported"] = slices.Clone(scopes)
	}
	return cors(http.MethodGet, fixed(doc))
}

// fixed serves a document that is the same for everybody and changes only with the
// configuration.
func fixed(v any) http.HandlerFunc {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible for maps of texts and lists
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		// The time is short, because an operator who changes a setting tries again at once.
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("X-Content-Type-Options", "nosniff")
		w.Write(body)
	}
}

// normalResource returns a resource indicator (RFC 8707 section 2) in the form in which it
// is compared: scheme and host in lower case, without the default port, and without the
// final slash that URL classes of clients add. ok is false if the indicator is invalid.
func normalResource(s string) (string, bool) {
	if len(s) > maxURL {
		return "", false
	}
	u, err := parseURL(s)
	if err != nil || u.scheme != "https" && u.scheme != "http" || u.host == "" || strings.ContainsAny(s, "?#") {
		return "", false
	}
	host := strings.ToLower(u.host)
	if u.port != "" && !(u.scheme == "https" && u.port == "443") && !(u.scheme == "http" && u.port == "80") {
		host += ":" + u.port
	}
	return u.scheme + "://" + host + strings.TrimSuffix(u.path, "/"), true
}

func originOf(normal string) string {
	scheme, rest, _ := strings.Cut(normal, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// resource returns the server's resource if all requested resources mean it (RFC 8707
// section 2), or if none is requested.
func (s *Server) resource(asked []string) (string, bool) {
	for _, a := range asked {
		if a == "" {
			continue // counts as omitted (RFC 6749 section 3.1)
		}
		if n, ok := normalResource(a); !ok || !s.resources[n] {
			return "", false
		}
	}
	return s.o.Resource, true
}
