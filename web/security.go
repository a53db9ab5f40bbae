package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"satchel/auth/oauth"
)

// MaxFormBytes limits the size of a form; the attestation of a passkey is the largest.
const MaxFormBytes = 64 << 10

// Parts of content security policies.
const (
	policyBase = "default-src 'none'; style-src 'self'; img-src 'self' data:; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'"
	// policyScript is for pages with satchel.js, which posts the response of a passkey, or with
	// other scripts of their own.
	policyScript = "; script-src 'self'; connect-src 'self'"
	formsHere    = "'self'"
)

// policy returns the content security policy of a page. forms are the sources that forms
// may lead to. scripts are the directives for scripts; "" allows none.
func policy(scripts, forms string) string {
	return policyBase + "; form-action " + forms + scripts
}

// secureHeaders sets the security headers of every answer. Its content security policy allows no
// scripts. Page replaces it with the policy of the page.
func (s *Site) secureHeaders(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy("", formsHere))
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	// Like no-referrer, same-origin hides addresses from other sites. But no-referrer
	// would make browsers send "Origin: null" with forms, which sameOrigin rejects if
	// there is no Sec-Fetch-Site: over plain http, and in Safari before 16.4.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	// Clients open the consent page in a window of their own and wait for it to return.
	// Cross-Origin-Opener-Policy would cut that window off, so the pages on the way to consent
	// omit it. Over plain http, browsers complain about the header except on localhost.
	if (s.Secure || s.Origin.Hostname() == "localhost") && !strings.HasPrefix(r.URL.Path, "/oauth/") && !strings.HasPrefix(r.URL.Path, "/signin") {
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
}

// sameOrigin rejects requests that a browser sends for another site. Without
// Sec-Fetch-Site, the protection of net/http compares only hosts. It would accept the http
// page of an https server, which anybody on the network path can forge.
func (s *Site) sameOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if r.Header.Get("Sec-Fetch-Site") == "" && origin != "" && !strings.EqualFold(origin, strings.TrimSuffix(s.Origin.String(), defaultPort(s.Origin.Scheme))) {
		return errOrigin
	}
	return s.cross.Check(r)
}

var errOrigin = errors.New("the form is of another origin")

// otherName ends the query of a request that was redirected here from another name of the
// server.
const otherName = "from-another-name"

// atIssuer redirects a browser that uses another name of the server, such as 127.0.0.1, to the name
// for which cookies and passkeys are valid. ok is false if atIssuer has answered the request or
// returns an error.
func (s *Site) atIssuer(v *Visit) (ok bool, err error) {
	r := v.R
	raw, marked := strings.CutSuffix(r.URL.RawQuery, otherName)
	if strings.EqualFold(r.Host, s.Origin.Host) || strings.EqualFold(r.Host, s.Origin.Host+defaultPort(s.Origin.Scheme)) {
		r.URL.RawQuery = strings.TrimSuffix(raw, "&")
		if !marked || r.Method != http.MethodGet && r.Method != http.MethodHead {
			return true, nil
		}
		// The mark is no longer needed, so remove it from the address.
		return false, s.See(v, LocalPath(r.URL.RequestURI()))
	}
	for _, h := range [...]string{"X-Forwarded-For", "X-Forwarded-Host", "Forwarded"} {
		if r.Header.Get(h) != "" {
			return true, nil // a proxy in front may send any Host
		}
	}
	switch {
	case marked:
		return false, &PageError{Status: http.StatusMisdirectedRequest, Title: "The proxy hides this server's name",
			Text: "Requests arrive here for a host other than " + s.Origin.Host + ". Make the proxy in front of the server pass the Host header on unchanged."}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return false, &PageError{Status: http.StatusMisdirectedRequest, Title: "This is not the server's own address",
			Text: "Nothing was changed. Open " + s.Origin.String() + " and try again there."}
	}
	if raw != "" {
		raw += "&"
	}
	// A client that uses the other name expects that name as the issuer in the answer.
	if s.OAuth != nil && r.URL.Path == oauth.PathAuthorize {
		raw += oauth.IssuerParameter + "=" + url.QueryEscape(s.OAuth.IssuerAt(r.Host)) + "&"
	}
	return false, s.See(v, r.URL.EscapedPath()+"?"+raw+otherName)
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return ":443"
	}
	return ":80"
}

// Host returns the host and port of the server's address.
func (s *Site) Host() string { return s.Origin.Host }
