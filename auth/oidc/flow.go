package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"satchel/auth"
	"satchel/internal/fault"
)

// flow is the data that Begin passes to Finish. It contains secrets: the caller must keep
// it private and use it once.
type flow struct {
	Issuer   string `json:"issuer"`
	Redirect string `json:"redirect"`
	State    string `json:"state"`
	Verifier string `json:"verifier"`
	Nonce    string `json:"nonce"`
}

// The maximum lengths of Finish's arguments in bytes.
const (
	maxFlow      = 8 << 10
	maxParameter = 8 << 10
)

// Begin returns the address to which the caller sends the browser, and the data for one
// call of Finish. The state must be fresh and unguessable, and the caller must tie it to
// the browser. The error is a fault.Unavailable while the issuer is down.
func (p *Provider) Begin(ctx context.Context, redirectURI, state string) (location string, data []byte, err error) {
	i, err := p.issuer(ctx)
	if err != nil {
		return "", nil, err
	}
	f := flow{Issuer: p.o.Issuer, Redirect: redirectURI, State: state, Verifier: oauth2.GenerateVerifier(), Nonce: rand.Text()}
	if data, err = json.Marshal(f); err != nil {
		return "", nil, fmt.Errorf("oidc: %w", err)
	}
	return p.config(i, redirectURI).AuthCodeURL(state, oauth2.S256ChallengeOption(f.Verifier), goidc.Nonce(f.Nonce)), data, nil
}

func (p *Provider) config(i *issuer, redirectURI string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret,
		Endpoint: i.endpoint, RedirectURL: redirectURI, Scopes: p.o.Scopes,
	}
}

// Finish returns the identity of the person who signed in. It takes the data from Begin,
// and the query of the request to the redirect URI. The caller checks that the flow belongs
// to this browser and is used once. The error is a fault: Forbidden if the person or the
// issuer declined, Invalid if the person must start the sign-in again, Unauthenticated if
// the issuer's answer cannot be trusted, and Unavailable if the issuer is down or this
// server is not set up correctly there.
func (p *Provider) Finish(ctx context.Context, redirectURI string, data []byte, q url.Values) (auth.ExternalIdentity, error) {
	var f flow
	if len(data) > maxFlow || json.Unmarshal(data, &f) != nil || f.Issuer != p.o.Issuer || f.Redirect != redirectURI || f.Verifier == "" || f.Nonce == "" {
		return auth.ExternalIdentity{}, again("of another sign-in")
	}
	for name, values := range q {
		// A parameter must not occur more than once (RFC 6749 section 3.1).
		if len(values) != 1 || len(values[0]) > maxParameter {
			return auth.ExternalIdentity{}, again("the parameter " + name[:min(len(name), 40)] + " came several times or is too long")
		}
	}
	if f.State == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.State)) != 1 {
		return auth.ExternalIdentity{}, again("another state")
	}
	i, err := p.issuer(ctx)
	if err != nil {
		return auth.ExternalIdentity{}, err
	}
	// Check iss before anything else in the response, even an error (RFC 9207 section 2.4).
	if iss := q.Get("iss"); (i.namesItself || q.Has("iss")) && iss != p.o.Issuer {
		return auth.ExternalIdentity{}, again(fmt.Sprintf("the response is of the issuer %q", cut(iss, 200)))
	}
	if code := q.Get("error"); code != "" {
		return auth.ExternalIdentity{}, p.refused(code, q.Get("error_description"))
	}
	if q.Get("code") == "" {
		return auth.ExternalIdentity{}, again("no code")
	}
	ctx = goidc.ClientContext(ctx, p.client)
	token, err := p.config(i, redirectURI).Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return auth.ExternalIdentity{}, p.exchangeError(err)
	}
	return p.identity(ctx, i, token, f.Nonce)
}

// again returns the error for a sign-in that the person must start again.
func again(why string) error {
	return fault.Wrap(errors.New("oidc: "+why), fault.Invalid, "This sign-in has ended or was started elsewhere. Please sign in again.")
}

// refused returns the fault for an error of the authorization response (RFC 6749 section
// 4.1.2.1, OpenID Connect Core 1.0 section 3.1.2.6). Anybody can write a description into a
// link, so the description is only logged.
func (p *Provider) refused(code, description string) error {
	cause := fmt.Errorf("oidc: the issuer answered %q: %q", cut(code, 100), cut(description, 500))
	switch code {
	case "access_denied":
		return fault.Wrap(cause, fault.Forbidden, "The sign-in was refused or cancelled. You can try again, or sign in another way.")
	case "server_error", "temporarily_unavailable":
		return p.unavailable(cause)
	case "login_required", "interaction_required", "consent_required", "account_selection_required":
		return fault.Wrap(cause, fault.Invalid, "The sign-in was not completed. Please sign in again.")
	}
	return p.misconfigured(cause)
}

// exchangeError returns the fault for an error of the token response (RFC 6749 section 5.2).
func (p *Provider) exchangeError(err error) error {
	var r *oauth2.RetrieveError
	if !errors.As(err, &r) {
		return p.wrap(err)
	}
	cause := fmt.Errorf("oidc: the token endpoint answered %d, %q: %q", r.Response.StatusCode, cut(r.ErrorCode, 100), cut(r.ErrorDescription, 500))
	if r.ErrorCode == "invalid_grant" {
		return fault.Wrap(cause, fault.Invalid, "This sign-in has ended or was started elsewhere. Please sign in again.")
	}
	return p.misconfigured(cause)
}

func (p *Provider) misconfigured(cause error) error {
	p.o.Logger.Error("sign-in with the OpenID provider is not set up properly", "issuer", p.o.Issuer, "error", cause)
	return fault.Wrap(cause, fault.Unavailable, "Sign-in with %s is not set up properly. Please tell the people who run this server.", p.o.Label)
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

// short shortens an error's text for logs. An issuer can fill the text, for example with a
// megabyte of invalid JSON.
func short(err error) error {
	const limit = 1000 // in bytes
	if s := err.Error(); len(s) > limit {
		return errors.New(cut(s, limit) + "…")
	}
	return err
}
