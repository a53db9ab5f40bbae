package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxDocument is the maximum size of the issuer's responses in bytes. Entra's keys with
// their certificates have about 20 KiB.
const maxDocument = 512 << 10

// maxRedirects is the maximum number of redirects, all on the same host.
const maxRedirects = 3

// errUnreachable reports that the issuer's host did not answer.
var errUnreachable = errors.New("no answer")

// source fetches the issuer's keys. Only one goroutine uses it.
type source struct {
	issuer  string
	http    *http.Client
	maxAge  time.Duration
	now     func() time.Time
	log     *slog.Logger
	found   string // the location that last had the metadata
	jwks    string // the URL of the keys; empty if not known yet
	checked time.Time
	skipped string // the last log message about unusable keys
}

func newSource(o Options) *source {
	c := *o.HTTP
	c.CheckRedirect = sameHost
	if c.Timeout == 0 || c.Timeout > o.RequestTimeout {
		c.Timeout = o.RequestTimeout
	}
	c.Jar = nil
	return &source{issuer: o.Issuer, http: &c, maxAge: o.KeysMaxAge, now: o.Now, log: o.Logger}
}

// sameHost allows redirects only to the same host, so that no other host can provide the keys.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("redirect to another host, %.100q", req.URL.Host)
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// fetch returns the issuer's current keys.
func (s *source) fetch(ctx context.Context) ([]key, error) {
	if s.jwks == "" || s.now().Sub(s.checked) >= s.maxAge {
		uri, err := s.discover(ctx)
		switch {
		case err == nil:
			s.jwks, s.checked = uri, s.now()
		case s.jwks == "":
			return nil, err
		default: // the keys are probably still at the same URL
			s.log.WarnContext(ctx, "issuer's metadata", "issuer", s.issuer, "error", err)
		}
	}
	body, err := s.get(ctx, s.jwks)
	if err != nil {
		s.checked = time.Time{} // the keys may have moved
		return nil, fmt.Errorf("keys of %s: %w", s.issuer, err)
	}
	keys, skipped, err := parseKeys(body)
	if said := strings.Join(skipped, "; "); said != s.skipped {
		s.skipped = said
		if said != "" {
			s.log.InfoContext(ctx, "keys of the issuer that are not used", "issuer", s.issuer, "keys", said)
		}
	}
	if err != nil {
		s.checked = time.Time{}
		return nil, fmt.Errorf("keys of %s: %w", s.issuer, err)
	}
	return keys, nil
}

// discover returns the URL of the issuer's keys.
func (s *source) discover(ctx context.Context) (string, error) {
	locations := locations(s.issuer)
	if s.found != "" {
		locations = append([]string{s.found}, locations...)
	}
	var errs []error
	for _, l := range locations {
		uri, err := s.metadata(ctx, l)
		if err == nil {
			s.found = l
			return uri, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", l, err))
		if errors.Is(err, errUnreachable) { // all locations are on one host
			break
		}
	}
	return "", fmt.Errorf("metadata of %s: %w", s.issuer, errors.Join(errs...))
}

// locations returns the possible URLs of an issuer's metadata. OpenID Connect Discovery
// appends its well-known path to the issuer (section 4). RFC 8414 inserts its well-known path
// before the issuer's path (section 3). Some servers mix the two.
func locations(issuer string) []string {
	const oidc, oauth = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
	base := strings.TrimSuffix(issuer, "/")
	u, err := url.Parse(base)
	if err != nil {
		return nil
	}
	path := u.EscapedPath()
	if path == "" {
		return []string{base + oidc, base + oauth}
	}
	origin := u.Scheme + "://" + u.Host
	return []string{base + oidc, origin + oauth + path, origin + oidc + path, base + oauth}
}

func (s *source) metadata(ctx context.Context, location string) (string, error) {
	body, err := s.get(ctx, location)
	if err != nil {
		return "", err
	}
	var m struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return "", fmt.Errorf("metadata: %w", err)
	}
	if m.Issuer != s.issuer { // must be identical (RFC 8414 section 3.3)
		return "", fmt.Errorf("it is the metadata of the issuer %.200q; if that is the same one, set auth.issuer.url to exactly that", m.Issuer)
	}
	u, err := url.Parse(m.JWKSURI)
	if err != nil || !secure(u) || strings.HasPrefix(s.issuer, "https:") && u.Scheme != "https" {
		return "", fmt.Errorf("jwks_uri %.200q must be an https URL", m.JWKSURI)
	}
	return m.JWKSURI, nil
}

func (s *source) get(ctx context.Context, location string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/jwk-set+json")
	req.Header.Set("User-Agent", "satchel")
	resp, err := s.http.Do(req)
	if err != nil {
		if resp != nil { // a redirect that was not followed
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("answered more than %d bytes", maxDocument)
	}
	return body, nil
}
