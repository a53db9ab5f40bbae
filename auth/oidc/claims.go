package oidc

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"satchel/auth"
	"satchel/internal/fault"
)

// claims are the claims of an ID token or of a userinfo response.
type claims struct {
	Subject           string          `json:"sub"`
	AuthorizedParty   string          `json:"azp"`
	Email             string          `json:"email"`
	EmailVerified     json.RawMessage `json:"email_verified"`
	Name              string          `json:"name"`
	PreferredUsername string          `json:"preferred_username"`
}

// verified reports whether the issuer verified the address. Some issuers write the boolean
// as a text.
func (c claims) verified() bool {
	s := string(c.EmailVerified)
	return s == "true" || s == `"true"`
}

// keys verifies signatures, and keeps every error of VerifySignature, such as a failure to fetch
// the issuer's keys. go-oidc's verifier turns the error into text.
type keys struct {
	*goidc.RemoteKeySet
	err *error
}

// VerifySignature implements goidc.KeySet.
func (k keys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.RemoteKeySet.VerifySignature(ctx, jwt)
	*k.err = err
	return payload, err
}

// identity returns the person whom the ID token names. It checks the ID token according to
// OpenID Connect Core 1.0 section 3.1.3.7.
func (p *Provider) identity(ctx context.Context, i *issuer, token *oauth2.Token, nonce string) (auth.ExternalIdentity, error) {
	raw, ok := token.Extra("id_token").(string)
	if !ok || raw == "" {
		return auth.ExternalIdentity{}, p.misconfigured(errors.New("oidc: the token response has no id_token"))
	}
	now := p.o.Now()
	var keyErr error
	verifier := goidc.NewVerifier(p.o.Issuer, keys{i.keys, &keyErr}, &goidc.Config{
		ClientID:             p.o.ClientID,
		SupportedSigningAlgs: i.algorithms,
		Now:                  func() time.Time { return now.Add(-p.o.ClockSkew) },
	})
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		if outage(keyErr) {
			return auth.ExternalIdentity{}, p.wrap(keyErr)
		}
		return auth.ExternalIdentity{}, p.untrusted(err)
	}
	var c claims
	if err := id.Claims(&c); err != nil {
		return auth.ExternalIdentity{}, p.untrusted(err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		err = errors.New("the nonce is another sign-in's")
	case c.AuthorizedParty != "" && c.AuthorizedParty != p.o.ClientID, c.AuthorizedParty == "" && len(id.Audience) > 1:
		err = fmt.Errorf("it is for %q and the authorized party is %q", id.Audience, c.AuthorizedParty)
	case id.IssuedAt.After(now.Add(p.o.ClockSkew)):
		err = fmt.Errorf("it was issued at %v, which is in the future", id.IssuedAt)
	case id.IssuedAt.Before(now.Add(-p.o.TokenMaxAge - p.o.ClockSkew)):
		err = fmt.Errorf("it was issued at %v, which is too long ago", id.IssuedAt)
	case c.Subject == "" || len(c.Subject) > 255 || strings.ContainsFunc(c.Subject, unicode.IsControl):
		err = errors.New("its subject is empty, too long, or contains control characters")
	case id.AccessTokenHash != "":
		err = id.VerifyAccessToken(token.AccessToken)
	}
	if err != nil {
		return auth.ExternalIdentity{}, p.untrusted(err)
	}
	// In the code flow, an issuer may return the claims of the scopes only from the
	// userinfo endpoint (OpenID Connect Core 1.0 section 5.4).
	if (c.Email == "" || c.Name == "") && i.userinfo != "" {
		more, err := p.userinfo(ctx, i, token)
		switch {
		case outage(err):
			return auth.ExternalIdentity{}, p.wrap(err)
		case err != nil:
			p.o.Logger.Warn("the OpenID provider does not say more about who signed in", "issuer", p.o.Issuer, "error", err)
		case more.Subject != c.Subject:
			return auth.ExternalIdentity{}, p.untrusted(errors.New("the userinfo response is about somebody else"))
		default:
			if c.Email == "" {
				c.Email, c.EmailVerified = more.Email, more.EmailVerified
			}
			if c.Name == "" {
				c.Name = more.Name
			}
			if c.PreferredUsername == "" {
				c.PreferredUsername = more.PreferredUsername
			}
		}
	}
	who := auth.ExternalIdentity{Issuer: p.o.Issuer, Subject: c.Subject, Name: label(c.Name), Login: label(c.PreferredUsername)}
	if c.verified() {
		who.Email = address(c.Email)
	}
	return who, nil
}

func (p *Provider) userinfo(ctx context.Context, i *issuer, token *oauth2.Token) (c claims, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, i.userinfo, nil)
	if err != nil {
		return c, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+token.AccessToken)
	resp, err := p.client.Do(r)
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return c, err
	}
	if resp.StatusCode != http.StatusOK {
		return c, fmt.Errorf("oidc: the userinfo endpoint answered %s", resp.Status)
	}
	return c, json.Unmarshal(body, &c)
}

func (p *Provider) untrusted(err error) error {
	err = short(err)
	p.o.Logger.Warn("the OpenID provider's answer cannot be trusted", "issuer", p.o.Issuer, "error", err)
	return fault.Wrap(fmt.Errorf("oidc: ID token: %w", err), fault.Unauthenticated, "The answer of %s could not be verified. Please sign in again.", p.o.Label)
}

// outage reports whether a request failed because the issuer did not answer or reported an
// outage, because its answer was too long, or because the sign-in was cancelled.
func outage(err error) bool {
	var o *outageError
	var t interface{ Timeout() bool } // url.Error and net.Error implement this
	return errors.As(err, &o) || errors.As(err, &t) || errors.Is(err, errOversized) || errors.Is(err, context.Canceled)
}

// address returns s if it is an e-mail address, and "" otherwise.
func address(s string) string {
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s || len(s) > 254 {
		return ""
	}
	return s
}

// label removes unprintable characters from a text of the issuer, and shortens the text.
func label(s string) string {
	const limit = 200 // in bytes, as for a user's name
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	for len(s) > limit {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return strings.TrimSpace(s)
}
