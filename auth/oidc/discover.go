package oidc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"satchel/internal/fault"
)

// algorithms returns the accepted signature algorithms. Only the issuer can create such
// signatures.
func algorithms() []string {
	return []string{
		goidc.ES256, goidc.ES384, goidc.ES512, goidc.EdDSA,
		goidc.RS256, goidc.RS384, goidc.RS512, goidc.PS256, goidc.PS384, goidc.PS512,
	}
}

// issuer is the metadata of the issuer.
type issuer struct {
	fetched    time.Time
	endpoint   oauth2.Endpoint
	userinfo   string // empty if there is none
	keys       *goidc.RemoteKeySet
	algorithms []string
	// namesItself reports whether every authorization response has the parameter iss (RFC
	// 9207 section 3).
	namesItself bool
}

// issuer returns the issuer's metadata. It fetches the metadata if there is none or if it
// is old. The error is a fault: Unavailable, or Canceled if the caller leaves.
func (p *Provider) issuer(ctx context.Context) (*issuer, error) {
	p.mu.Lock()
	known, failed, cause := p.known, p.failed, p.cause
	p.mu.Unlock()
	now := p.o.Now()
	if known != nil && now.Sub(known.fetched) < p.o.MetadataMaxAge {
		return known, nil
	}
	if cause != nil && now.Sub(failed) < p.o.RetryAfter {
		if known != nil {
			return known, nil
		}
		return nil, p.unavailable(cause)
	}
	// All waiting callers share one request. It continues if one of them leaves.
	answer := p.single.DoChan("", func() (any, error) {
		// Another caller may have fetched the metadata meanwhile.
		p.mu.Lock()
		since, again, problem := p.known, p.failed, p.cause
		p.mu.Unlock()
		switch {
		case since != known, since != nil && again != failed:
			return since, nil
		case problem != nil && again != failed:
			return nil, problem
		}
		ctx, cancel := p.detached(ctx)
		defer cancel()
		found, err := p.discover(ctx)
		if err != nil {
			err = short(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			p.o.Logger.Warn("the OpenID provider cannot be asked", "issuer", p.o.Issuer, "error", err)
			p.failed, p.cause = p.o.Now(), err
			if p.known != nil {
				return p.known, nil
			}
			return nil, err
		}
		p.known, p.cause = found, nil
		return found, nil
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return nil, p.unavailable(r.Err)
		}
		return r.Val.(*issuer), nil
	case <-ctx.Done():
		return nil, p.wrap(ctx.Err())
	}
}

// discover fetches the configuration (OpenID Connect Discovery 1.0 section 4).
func (p *Provider) discover(ctx context.Context) (*issuer, error) {
	ctx = goidc.ClientContext(ctx, p.client)
	found, err := goidc.NewProvider(ctx, p.o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("oidc: discovery: %w", err)
	}
	var more struct {
		JWKS        string   `json:"jwks_uri"`
		Algorithms  []string `json:"id_token_signing_alg_values_supported"`
		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
		NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return nil, fmt.Errorf("oidc: discovery: %w", err)
	}
	i := &issuer{
		fetched: p.o.Now(), endpoint: found.Endpoint(), userinfo: found.UserInfoEndpoint(),
		keys: goidc.NewRemoteKeySet(ctx, more.JWKS), namesItself: more.NamesItself,
	}
	for name, u := range map[string]string{"authorization_endpoint": i.endpoint.AuthURL, "token_endpoint": i.endpoint.TokenURL, "jwks_uri": more.JWKS} {
		if err := checkEndpoint(u); err != nil {
			return nil, fmt.Errorf("oidc: discovery: %s %q: %w", name, u, err)
		}
	}
	if i.userinfo != "" {
		if err := checkEndpoint(i.userinfo); err != nil {
			return nil, fmt.Errorf("oidc: discovery: userinfo_endpoint %q: %w", i.userinfo, err)
		}
	}
	for _, a := range algorithms() {
		if len(more.Algorithms) == 0 || slices.Contains(more.Algorithms, a) {
			i.algorithms = append(i.algorithms, a)
		}
	}
	if len(i.algorithms) == 0 {
		return nil, fmt.Errorf("oidc: discovery: the issuer signs with none of %v", algorithms())
	}
	// Basic authentication is the default of OpenID Connect Discovery 1.0 section 3. Trying
	// both Basic and the form would send the code twice.
	i.endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if p.o.ClientSecret == "" || len(more.AuthMethods) > 0 && !slices.Contains(more.AuthMethods, "client_secret_basic") {
		i.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return i, nil
}

func (p *Provider) unavailable(err error) error {
	return &fault.Error{
		Code: fault.Unavailable, Err: err, RetryAfter: p.o.RetryAfter,
		Public: fmt.Sprintf("Sign-in with %s does not work at the moment. Please try again later, or sign in another way.", p.o.Label),
	}
}

// wrap returns the fault for a failed request to the issuer.
func (p *Provider) wrap(err error) error {
	if errors.Is(err, context.Canceled) {
		return fault.Wrap(err, fault.Canceled, "The sign-in was cancelled.")
	}
	return p.unavailable(short(err))
}
