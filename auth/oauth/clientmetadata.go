package oauth

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/auth"
)

const (
	maxRedirects         = 10  // in a registration
	maxDocumentRedirects = 100 // in a document, for which its vendor is responsible
	maxName              = 100 // characters
	maxNameBytes         = 200
)

// clientMetadata holds the members of RFC 7591 section 2 that the server uses. The server never
// fetches a URL in them.
type clientMetadata struct {
	clientID, name, uri, authMethod string
	hasSecret                       bool
	redirects, grants, responses    []string
}

var errNotMetadata = errors.New("it is not a JSON object of client metadata")

// parseClientMetadata reads one JSON object. Unlike encoding/json, it compares the names of
// members exactly.
func parseClientMetadata(body []byte) (clientMetadata, error) {
	var m clientMetadata
	var members map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &members) != nil || members == nil {
		return m, errNotMetadata
	}
	for name, to := range map[string]any{
		"client_id": &m.clientID, "client_name": &m.name, "client_uri": &m.uri, "token_endpoint_auth_method": &m.authMethod,
		"redirect_uris": &m.redirects, "grant_types": &m.grants, "response_types": &m.responses,
	} {
		if raw, ok := members[name]; ok && json.Unmarshal(raw, to) != nil {
			return m, errors.New(name + " has the wrong type")
		}
	}
	_, secret := members["client_secret"]
	_, expiry := members["client_secret_expires_at"]
	m.hasSecret = secret || expiry
	m.name = cleanName(m.name)
	// The URI is only shown as text. It is dropped if it cannot be shown.
	if u, err := parseURL(m.uri); err != nil || u.scheme != "https" || u.userinfo || len(m.uri) > maxURL || checkHost(u.host) != nil {
		m.uri = ""
	}
	return m, nil
}

// flow returns an error with the reason if a client cannot use the authorization code flow, which
// is the server's only one. The server replaces other grant and response types (RFC 7591 section
// 3.2.1).
func (m clientMetadata) flow() error {
	if len(m.grants) > 0 && !slices.Contains(m.grants, "authorization_code") {
		return errors.New("grant_types must have authorization_code")
	}
	if len(m.responses) > 0 && !slices.Contains(m.responses, "code") {
		return errors.New("response_types must have code")
	}
	return nil
}

// registered returns the client of a registration. The error is a *protocolError of RFC
// 7591 section 3.2.2.
func (m clientMetadata) registered() (auth.Client, error) {
	if n := len(m.redirects); n == 0 || n > maxRedirects {
		return auth.Client{}, &protocolError{"invalid_redirect_uri", "redirect_uris must have 1 to " + strconv.Itoa(maxRedirects) + " entries."}
	}
	var redirects []string
	for i, r := range m.redirects {
		if _, err := checkRedirect(r); err != nil {
			return auth.Client{}, &protocolError{"invalid_redirect_uri", "Entry " + strconv.Itoa(i+1) + " of redirect_uris cannot be used: " + err.Error() + "."}
		}
		if !slices.Contains(redirects, r) {
			redirects = append(redirects, r)
		}
	}
	if err := m.flow(); err != nil {
		return auth.Client{}, &protocolError{"invalid_client_metadata", err.Error() + "."}
	}
	return auth.Client{Kind: auth.ClientRegistered, Name: m.name, URI: m.uri, RedirectURIs: redirects}, nil
}

// document returns the client of the metadata document at the URL id.
func (m clientMetadata) document(id string) (auth.Client, error) {
	switch {
	case m.clientID != id:
		return auth.Client{}, errors.New("its client_id is not its URL")
	case m.hasSecret:
		return auth.Client{}, errors.New("it has a client secret")
	case m.authMethod != "" && m.authMethod != "none" && m.authMethod != "private_key_jwt":
		// A shared secret is impossible, because everyone can read the document. Signatures
		// by the document's keys are not needed here, and not checked.
		return auth.Client{}, errors.New("its token_endpoint_auth_method must be none")
	case len(m.redirects) == 0 || len(m.redirects) > maxDocumentRedirects:
		return auth.Client{}, errors.New("its redirect_uris must have 1 to " + strconv.Itoa(maxDocumentRedirects) + " entries")
	}
	if err := m.flow(); err != nil {
		return auth.Client{}, err
	}
	c := auth.Client{ID: id, Kind: auth.ClientDocument, Name: m.name, URI: m.uri}
	for _, r := range m.redirects {
		// A redirect that is invalid here may be for another server.
		if _, err := checkRedirect(r); err == nil {
			c.RedirectURIs = append(c.RedirectURIs, r)
		}
	}
	if len(c.RedirectURIs) == 0 {
		return auth.Client{}, errors.New("none of its redirect_uris can be used")
	}
	return c, nil
}

// cleanName removes characters from a name that people cannot read or that could deceive
// them: control and formatting characters (which are invisible or change the direction of
// text), invisible blanks, and stacks of accents. It also shortens long names.
func cleanName(s string) string {
	var b strings.Builder
	count, marks, space := 0, 0, false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || isBlank(r):
			space = true
			continue
		case r == utf8.RuneError || !unicode.IsPrint(r):
			continue
		}
		if unicode.Is(unicode.M, r) {
			if marks++; marks > 2 {
				continue
			}
		} else {
			marks = 0
		}
		if space && count > 0 {
			b.WriteByte(' ')
			count++
		}
		space = false
		if count >= maxName || b.Len()+utf8.RuneLen(r) > maxNameBytes {
			break
		}
		b.WriteRune(r)
		count++
	}
	return strings.TrimSuffix(b.String(), " ")
}

// isBlank reports whether a letter or symbol is invisible.
func isBlank(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0:
		return true
	}
	return false
}
