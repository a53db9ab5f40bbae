package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"satchel/auth/oauth"
)

// MaxFormBytes bounds what a page is sent; an attestation of a passkey is the
// largest.
const MaxFormBytes = 64 << 10

// Sources of content security policies that some pages allow besides.
const (
	policyBase = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'"
	// policyScript is of the pages that hold the script, which posts what a
	// passkey answers.
	policyScript = "; script-src 'self'; connect-src 'self'"
	formsHere    = "'self'"
)

// policy is the content security policy of a page whose forms lead to the
// sources in forms. scripts are its directives of scripts; "" allows none.
func policy(scripts, forms string) string {
	return policyBase + "; form-action " + forms + scripts
}

// secureHeaders are on every answer. Chromium applies form-action to where an
// answer to a form redirects, too.
func (s *Site) secureHeaders(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy("", formsHere))
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	// Nothing of an address reaches another site, as with no-referrer. That one
	// would make browsers send "Origin: null" with the forms of these pages too,
	// which is refused where they send no Sec-Fetch-Site: over plain http, and
	// Safari before 16.4.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	// Clients open the page of consent in a window of theirs and wait for it to
	// come back. Isolation would cut that window off for good, so that the pages
	// on the way through consent do without. Over plain http browsers complain of
	// the header, but for their own machine.
	if (s.Secure || s.Origin.Hostname() == "localhost") && !strings.HasPrefix(r.URL.Path, "/oauth/") && !strings.HasPrefix(r.URL.Path, "/signin") {
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
}

// sameOrigin refuses what a browser sends for another site. The protection of
// net/http compares hosts alone where a browser does not say Sec-Fetch-Site, and
// so would take the http page of an https server, which who is on the way can
// write.
func (s *Site) sameOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if r.Header.Get("Sec-Fetch-Site") == "" && origin != "" && !strings.EqualFold(origin, strings.TrimSuffix(s.Origin.String(), defaultPort(s.Origin.Scheme))) {
		return errOrigin
	}
	return s.cross.Check(r)
}

var errOrigin = errors.New("the form is of another origin")

// otherName ends the query of a request that was sent here from another name of the server.
const otherName = "from-another-name"

// atIssuer sends a browser that came by another name of the server, such as
// 127.0.0.1, to the one name for which there are cookies and passkeys. ok is
// false if it answered.
func (s *Site) atIssuer(v *Visit) (ok bool, err error) {
	r := v.R
	raw, marked := strings.CutSuffix(r.URL.RawQuery, otherName)
	if strings.EqualFold(r.Host, s.Origin.Host) || strings.EqualFold(r.Host, s.Origin.Host+defaultPort(s.Origin.Scheme)) {
		r.URL.RawQuery = strings.TrimSuffix(raw, "&")
		if !marked || r.Method != http.MethodGet && r.Method != http.MethodHead {
			return true, nil
		}
		// The mark did its work, and nobody need see it.
		return false, s.See(v, LocalPath(r.URL.RequestURI()))
	}
	for _, h := range [...]string{"X-Forwarded-For", "X-Forwarded-Host", "Forwarded"} {
		if r.Header.Get(h) != "" {
			return true, nil // a proxy is in front, and says Host as it likes
		}
	}
	switch {
	case marked:
		return false, &PageError{Status: http.StatusMisdirectedRequest, Title: "The proxy hides this server's name",
			Text: "Requests arrive here for another host than " + s.Origin.Host + ". Let the proxy in front of the server pass the Host header on as it came."}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return false, &PageError{Status: http.StatusMisdirectedRequest, Title: "This is not the server's own address",
			Text: "Nothing was changed. Open " + s.Origin.String() + " and try again there."}
	}
	if raw != "" {
		raw += "&"
	}
	// A client that asks for consent under that name expects it as the issuer in the
	// answer.
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

// formToken is what the forms of a session carry: nobody who does not know the
// session's secret can make one, and it tells nothing of the secret.
func formToken(session string) string {
	mac := hmac.New(sha256.New, []byte(session))
	mac.Write([]byte("satchel web form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// CheckForm refuses a form without the token of the visitor's session.
func CheckForm(v *Visit) error {
	got := v.R.Header.Get("X-Satchel-Form")
	if got == "" {
		got = v.R.PostFormValue("form")
	}
	if subtle.ConstantTimeCompare([]byte(got), []byte(formToken(v.Secret))) == 1 {
		return nil
	}
	return errStale
}

// Host is the host, and the port, of this server's address.
func (s *Site) Host() string { return s.Origin.Host }
