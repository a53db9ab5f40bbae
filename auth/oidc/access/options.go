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
// Fields without a default here are used as given, even an empty list. The package config sets
// the defaults that operators see.
type Options struct {
	// Issuer is the identifier of the issuer. Its metadata and every token must contain
	// exactly these bytes.
	Issuer string
	// Resource is the URL of the MCP endpoint.
	Resource string
	// Audience lists the accepted audiences: aud must contain one of them. The default is
	// Resource.
	Audience []string
	// Algorithms lists the accepted algorithms of RFC 7518 section 3.1, all with a public
	// key. The default is ES256, RS256, EdDSA.
	Algorithms []string
	// Types lists the accepted values of the header's typ. A token without typ counts as JWT.
	// If the list is empty, all values are accepted except those of other kinds of tokens.
	Types []string
	// ClientClaims lists claims that may name the client. The first of them that the token
	// has counts. The default is client_id, azp, cid, appid.
	ClientClaims []string
	// ScopeClaims lists claims that may contain scopes, as a text with spaces or a list of
	// texts. All of them count.
	ScopeClaims []string
	// ReadScopes and WriteScopes are the issuer's names for our scopes. Neither implies the
	// other.
	ReadScopes, WriteScopes []string
	// DefaultScopes are our scopes ("read", "write") for a token that has none of the names in
	// ReadScopes and WriteScopes.
	DefaultScopes []string
	// RequireClaims lists required claims in the form NAME=VALUE. The claim must be that
	// text, number or boolean, or a list that contains it.
	RequireClaims []string
	// EmailClaim and VerifiedClaim are names of claims. The address counts if the claim
	// VerifiedClaim is true, or if VerifiedClaim is empty.
	EmailClaim, VerifiedClaim string
	NameClaim                 string
	// SpaceClaim is the name of the claim that names the space. If it is empty, or if a token
	// lacks the claim, the person's default space is used.
	SpaceClaim string

	// ClockSkew is the maximum error of the issuer's clock. The default is zero.
	ClockSkew time.Duration
	// KeysMaxAge is the age at which the keys are fetched again in the background. The
	// default is 15 minutes.
	KeysMaxAge time.Duration
	// OutageGrace is how long after KeysMaxAge the keys are still used if fetching fails.
	// The default is zero.
	OutageGrace time.Duration
	// RequestTimeout is the maximum time of a request to the issuer, and of a caller's wait
	// for keys. The default is 10 seconds.
	RequestTimeout time.Duration
	// RefetchEvery and RefetchBurst limit the rate of fetches that tokens with an unknown
	// key cause. The defaults are 5 seconds and 10 fetches.
	RefetchEvery time.Duration
	RefetchBurst int

	// HTTP sends the requests. The default is a new client. Its redirect policy is ignored:
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

// check rejects options that would accept no token, or too many.
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
			errs = append(errs, fmt.Errorf("the duration %s must not be negative", d))
		}
	}
	if o.RefetchBurst < 0 {
		errs = append(errs, fmt.Errorf("the burst of %d fetches must not be negative", o.RefetchBurst))
	}
	return errors.Join(errs...)
}

// secure reports whether nobody can tamper with the URL's responses. The URL must be https,
// or http on this machine.
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
