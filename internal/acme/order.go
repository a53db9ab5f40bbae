package acme

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/acme"
)

const (
	tlsALPN01 = "tls-alpn-01"
	http01    = "http-01"
)

// obtain gets a certificate with a new key.
func (m *Manager) obtain(ctx context.Context) (*tls.Certificate, error) {
	client, err := m.account(ctx)
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	o, err := m.order(ctx, client)
	if err != nil {
		if isProblem(err, "accountDoesNotExist") {
			m.client = nil // the authority no longer knows the account: register again
		}
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: commonName(m.o.Domain)}, DNSNames: []string{m.o.Domain},
	}, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, o, csr, true)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	cert := &tls.Certificate{Certificate: chain, PrivateKey: key}
	if cert.Leaf, err = x509.ParseCertificate(chain[0]); err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	if err := m.check(cert); err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	return cert, nil
}

// commonName returns the common name of a certificate. It is empty if the domain is too
// long for it (64 characters, RFC 5280).
func commonName(domain string) string {
	if len(domain) > 64 {
		return ""
	}
	return domain
}

// check returns an error unless a certificate is for our name and key and has not expired. It
// accepts a certificate that is not valid yet, because the clock of this machine is probably
// slow.
func (m *Manager) check(c *tls.Certificate) error {
	key, ok := c.PrivateKey.(crypto.Signer)
	if !ok {
		return errors.New("its key cannot sign")
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(c.Leaf.PublicKey):
		return errors.New("it is for another key")
	case c.Leaf.VerifyHostname(m.o.Domain) != nil:
		return errors.New("it is for another name")
	case m.o.Now().After(c.Leaf.NotAfter):
		return fmt.Errorf("it has expired on %s", c.Leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// account returns a client with a registered account.
func (m *Manager) account(ctx context.Context) (*acme.Client, error) {
	if m.client != nil {
		return m.client, nil
	}
	key, err := m.accountKey()
	if err != nil {
		return nil, err
	}
	c := &acme.Client{Key: key, DirectoryURL: m.o.DirectoryURL, HTTPClient: m.http, UserAgent: "satchel", RetryBackoff: backoff}
	a := &acme.Account{}
	if m.o.Email != "" {
		a.Contact = []string{"mailto:" + m.o.Email}
	}
	// The operator agreed to the terms by setting the domain; see docs/https.md.
	if _, err := c.Register(ctx, a, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, err
	}
	m.client = c
	return c, nil
}

// backoff returns the pause before a request is repeated in one attempt. It allows a few
// repetitions after an error of the authority, but none if the authority asks to wait.
func backoff(n int, _ *http.Request, res *http.Response) time.Duration {
	if n > 5 || res.StatusCode == http.StatusTooManyRequests {
		return -1
	}
	if res.StatusCode == http.StatusBadRequest { // the nonce was too old
		return time.Millisecond
	}
	return time.Second << n
}

// order returns an order for which the authority is ready to issue the certificate. It uses the
// first challenge that succeeds.
func (m *Manager) order(ctx context.Context, client *acme.Client) (*acme.Order, error) {
	// The challenge over https comes first, because its port must be open anyway.
	types := []string{tlsALPN01}
	if m.http01.Load() {
		types = append(types, http01)
	}
	if m.worked == http01 {
		slices.Reverse(types)
	}
	var failed challengeErrors
	for _, typ := range types {
		o, err := client.AuthorizeOrder(ctx, acme.DomainIDs(m.o.Domain))
		if err != nil {
			return nil, fmt.Errorf("order: %w", err)
		}
		if err := m.authorize(ctx, client, o, typ); err != nil {
			if _, ok := errors.AsType[*acme.AuthorizationError](err); !ok && !errors.Is(err, errNotOffered) {
				return nil, fmt.Errorf("%s: %w", typ, err)
			}
			failed = append(failed, challengeError{typ, err})
			continue
		}
		if o, err = client.WaitOrder(ctx, o.URI); err != nil {
			return nil, fmt.Errorf("order: %w", err)
		}
		m.worked = typ
		return o, nil
	}
	return nil, failed
}

var errNotOffered = errors.New("the authority offers no such challenge")

// authorize completes the authorizations of an order with one type of challenge.
func (m *Manager) authorize(ctx context.Context, client *acme.Client, o *acme.Order, typ string) error {
	for _, u := range o.AuthzURLs {
		z, err := client.GetAuthorization(ctx, u)
		if err != nil {
			return err
		}
		if z.Status != acme.StatusPending {
			continue // the authority has checked it before
		}
		i := slices.IndexFunc(z.Challenges, func(c *acme.Challenge) bool { return c.Type == typ })
		if i < 0 {
			return errNotOffered
		}
		if err := m.answer(ctx, client, z.Challenges[i], z.URI); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) answer(ctx context.Context, client *acme.Client, c *acme.Challenge, authorization string) error {
	var shown challenge
	if c.Type == tlsALPN01 {
		cert, err := client.TLSALPN01ChallengeCert(c.Token, m.o.Domain)
		if err != nil {
			return err
		}
		shown.cert = &cert
	} else {
		body, err := client.HTTP01ChallengeResponse(c.Token)
		if err != nil {
			return err
		}
		shown.path, shown.body = client.HTTP01ChallengePath(c.Token), body
	}
	m.challenge.Store(&shown)
	defer m.challenge.Store(nil)
	if _, err := client.Accept(ctx, c); err != nil {
		return err
	}
	_, err := client.WaitAuthorization(ctx, authorization)
	return err
}

// challengeErrors lists the reasons why challenges failed.
type challengeErrors []challengeError

type challengeError struct {
	typ string
	err error
}

func (e challengeErrors) Error() string {
	var all []string
	for _, c := range e {
		all = append(all, c.typ+": "+c.err.Error())
	}
	return strings.Join(all, "; ")
}

func (e challengeErrors) Unwrap() []error {
	var all []error
	for _, c := range e {
		all = append(all, c.err)
	}
	return all
}
