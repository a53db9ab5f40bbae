package access

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/internal/space"
)

// Options configures a Verifier. Issuer and one of Audience and Resource are required.
// Fields without a default here are used as given, even an empty list. The configuration
// has the defaults for users.
type Options struct {
	// Issuer is the issuer's identifier. Its exact bytes must be in its metadata
	// and in every token.
	Issuer string
	// Resource is the URL of the MCP endpoint.
	Resource string
	// Audience lists values of which aud must have one; default Resource.
	Audience []string
	// Algorithms lists the accepted algorithms of RFC 7518 section 3.1 with a public key;
	// default ES256, RS256, EdDSA.
	Algorithms []string
	// Types lists the accepted values of the header's typ. A token without typ counts as
	// JWT. If empty, all are accepted but those of other kinds of tokens.
	Types []string
	// ClientClaims lists claims that may name the client. The first that does counts;
	// default client_id, azp, cid, appid.
	ClientClaims []string
	// ScopeClaims lists claims that may have scopes, as a text with spaces or a list of
	// texts. All of them count.
	ScopeClaims []string
	// ReadScopes and WriteScopes are the issuer's names of our scopes. Neither
	// implies the other.
	ReadScopes, WriteScopes []string
	// DefaultScopes ("read", "write") are the scopes of a token that has none of these.
	DefaultScopes []string
	// RequireClaims have the form NAME=VALUE. In each, the claim must be that text, number
	// or boolean, or a list that contains it.
	RequireClaims []string
	// EmailClaim and VerifiedClaim name claims. The address counts if the second claim is
	// true, or if VerifiedClaim is empty.
	EmailClaim, VerifiedClaim string
	NameClaim                 string
	// SpaceClaim names the space; empty: the person's first.
	SpaceClaim string

	// ClockSkew is how far the issuer's clock may be off; default none.
	ClockSkew time.Duration
	// KeysMaxAge is the age at which the keys are fetched again, in the background; default
	// 15 minutes.
	KeysMaxAge time.Duration
	// OutageGrace is how long after KeysMaxAge the keys are still used if fetching fails;
	// default none.
	OutageGrace time.Duration
	// RequestTimeout bounds a request to the issuer, and a caller's wait for keys; default
	// 10 seconds.
	RequestTimeout time.Duration
	// RefetchEvery and RefetchBurst are the rate limit of fetches because of tokens with an
	// unknown key; default 5 seconds and 10.
	RefetchEvery time.Duration
	RefetchBurst int

	// HTTP makes the requests; default one of its own. Its redirect policy is ignored:
	// redirects never leave the host.
	HTTP   *http.Client
	Logger *slog.Logger
	Now    func() time.Time
}

func (o Options) withDefaults() Options {
	list := func(l *[]string, def ...string) {
		if len(*l) == 0 {
			*l = def
		}
	}
	list(&o.Algorithms, "ES256", "RS256", "EdDSA")
	list(&o.ClientClaims, "client_id", "azp", "cid", "appid")
	if o.Resource != "" {
		list(&o.Audience, o.Resource)
	}
	duration := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	duration(&o.KeysMaxAge, 15*time.Minute)
	duration(&o.RequestTimeout, 10*time.Second)
	duration(&o.RefetchEvery, 5*time.Second)
	if o.RefetchBurst == 0 {
		o.RefetchBurst = 10
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// check rejects options with which every token would fail, or too many pass.
func (o Options) check() error {
	var errs []error
	if u, err := url.Parse(o.Issuer); err != nil || !secure(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, fmt.Errorf("issuer %q must be an https URL without user, query and fragment", o.Issuer))
	}
	if len(o.Audience) == 0 || slices.Contains(o.Audience, "") {
		errs = append(errs, errors.New("no audience, or an empty one"))
	}
	for _, a := range o.Algorithms {
		if _, ok := kindOf(a); !ok {
			errs = append(errs, fmt.Errorf("algorithm %q is not one that needs a public key", a))
		}
	}
	for _, s := range o.DefaultScopes {
		if s != string(space.ScopeRead) && s != string(space.ScopeWrite) {
			errs = append(errs, fmt.Errorf("default scope %q must be read or write", s))
		}
	}
	for _, c := range o.RequireClaims {
		if name, _, ok := strings.Cut(c, "="); !ok || name == "" {
			errs = append(errs, fmt.Errorf("required claim %q must be of the form NAME=VALUE", c))
		}
	}
	for _, d := range []time.Duration{o.ClockSkew, o.KeysMaxAge, o.OutageGrace, o.RequestTimeout, o.RefetchEvery} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s is no time to wait", d))
		}
	}
	if o.RefetchBurst < 0 {
		errs = append(errs, fmt.Errorf("%d fetches at once are none", o.RefetchBurst))
	}
	return errors.Join(errs...)
}

// secure reports whether nobody can tamper with the URL's responses: it is https, or http
// to this machine.
func secure(u *url.URL) bool {
	if u.Opaque != "" || u.Hostname() == "" {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && a.IsLoopback())
}
