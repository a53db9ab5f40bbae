package acme

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/testenv"
)

const domain = "satchel.example.com"

// problem is an error in the authority's format.
type problem struct {
	status       int
	kind, detail string
	retryAfter   string
}

// authority is an ACME server that the test controls. It verifies no signatures.
// e2e/https.test.mjs uses a real server, which does.
type authority struct {
	*httptest.Server
	t      *testing.T
	clock  *clock
	caFile string
	key    *ecdsa.PrivateKey
	ca     *x509.Certificate

	mu       sync.Mutex
	validity time.Duration
	behind   time.Duration // how far its clock is behind ours
	offered  []string
	fails    map[string]*problem // by step: "account", "order", "finalize", or a challenge's type
	broken   string              // the fault of the certificates: "name", "key" or "expired"
	manager  *Manager            // where the authority checks challenges; nil to accept them unchecked
	http     http.Handler
	accounts int
	orders   []*order
	hang     chan struct{} // closed when an order arrives that gets no answer; nil to answer all
}

type order struct {
	status, authz, detail string
	problem               *problem
	failed                string // the failed challenge
	cert                  []byte
}

func newAuthority(t *testing.T, c *clock) *authority {
	a := &authority{t: t, clock: c, validity: 90 * 24 * time.Hour, offered: []string{http01, "dns-01", tlsALPN01}, fails: map[string]*problem{}}
	a.Server = httptest.NewUnstartedServer(a)
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.StartTLS()
	t.Cleanup(a.Close)
	a.caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(a.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.ca = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Authority"}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<34, 0), IsCA: true, BasicConstraintsValid: true}
	return a
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Replay-Nonce", rand.Text())
	var n int
	step, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var typ string
	if number, more, _ := strings.Cut(rest, "/"); number != "" {
		fmt.Sscan(number, &n)
		typ = more
	}
	switch step {
	case "dir":
		a.json(w, 200, map[string]any{"newNonce": a.URL + "/nonce", "newAccount": a.URL + "/account", "newOrder": a.URL + "/order", "meta": map[string]any{"termsOfService": a.URL + "/terms"}})
		return
	case "nonce":
		return
	}
	if p := a.fails[step]; p != nil {
		a.problem(w, p)
		return
	}
	var o *order
	if n > 0 {
		o = a.orders[n-1]
	}
	var body struct{ Payload string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		a.t.Error(err)
	}
	payload, _ := base64.RawURLEncoding.DecodeString(body.Payload)
	switch {
	case step == "account":
		a.accounts++
		w.Header().Set("Location", fmt.Sprintf("%s/account/%d", a.URL, a.accounts))
		a.json(w, 201, map[string]any{"status": "valid"})
	case step == "order" && o == nil:
		if a.hang != nil {
			close(a.hang)
			<-r.Context().Done()
			return
		}
		a.orders = append(a.orders, &order{status: "pending", authz: "pending"})
		a.order(w, 201, len(a.orders))
	case step == "order":
		a.order(w, 200, n)
	case step == "authz":
		a.authz(w, n)
	case step == "chal":
		a.validate(o, typ, string(payload))
		a.json(w, 200, map[string]any{"type": typ, "status": "processing", "url": r.URL.Path, "token": token(n)})
	case step == "finalize":
		var csr struct{ CSR string }
		json.Unmarshal(payload, &csr)
		der, _ := base64.RawURLEncoding.DecodeString(csr.CSR)
		o.cert, o.status = a.sign(der), "valid"
		a.order(w, 200, n)
	case step == "cert":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		w.Write(o.cert)
	default:
		http.NotFound(w, r)
	}
}

func token(n int) string { return fmt.Sprintf("token-%d", n) }

func (a *authority) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func (a *authority) problem(w http.ResponseWriter, p *problem) {
	if p.retryAfter != "" {
		w.Header().Set("Retry-After", p.retryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	json.NewEncoder(w).Encode(p.wire())
}

func (p *problem) wire() map[string]any {
	return map[string]any{"type": "urn:ietf:params:acme:error:" + p.kind, "detail": p.detail, "status": p.status}
}

func (a *authority) order(w http.ResponseWriter, status, n int) {
	o := a.orders[n-1]
	at := func(step string) string { return fmt.Sprintf("%s/%s/%d", a.URL, step, n) }
	w.Header().Set("Location", at("order"))
	doc := map[string]any{"status": o.status, "identifiers": []any{map[string]any{"type": "dns", "value": domain}}, "authorizations": []string{at("authz")}, "finalize": at("finalize")}
	if o.cert != nil {
		doc["certificate"] = at("cert")
	}
	a.json(w, status, doc)
}

func (a *authority) authz(w http.ResponseWriter, n int) {
	o := a.orders[n-1]
	var challenges []any
	for _, typ := range a.offered {
		c := map[string]any{"type": typ, "url": fmt.Sprintf("%s/chal/%d/%s", a.URL, n, typ), "token": token(n), "status": "pending"}
		if typ == o.failed {
			c["status"], c["error"] = "invalid", o.problem.wire()
		}
		challenges = append(challenges, c)
	}
	a.json(w, 200, map[string]any{"status": o.authz, "identifier": map[string]any{"type": "dns", "value": domain}, "challenges": challenges})
}

// validate checks the manager's response to the challenge.
func (a *authority) validate(o *order, typ, payload string) {
	if payload != "{}" {
		a.t.Errorf("the challenge is accepted with %q", payload)
	}
	if p := a.fails[typ]; p != nil {
		o.authz, o.status, o.failed, o.problem = "invalid", "invalid", typ, p
		return
	}
	n := len(a.orders)
	switch {
	case a.manager == nil:
	case typ == http01:
		w := httptest.NewRecorder()
		a.http.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+domain+"/.well-known/acme-challenge/"+token(n), nil))
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), token(n)+".") {
			a.t.Errorf("the challenge is answered with %d %q", w.Code, w.Body)
		}
	case typ == tlsALPN01:
		c, err := handshake(a.t, a.manager, &tls.Config{ServerName: domain, NextProtos: []string{"acme-tls/1"}, InsecureSkipVerify: true})
		if err != nil || c.NegotiatedProtocol != "acme-tls/1" || c.PeerCertificates[0].VerifyHostname(domain) != nil || len(c.PeerCertificates[0].UnhandledCriticalExtensions) != 1 {
			a.t.Errorf("the challenge's handshake: %v", err)
		}
		if _, err := handshake(a.t, a.manager, &tls.Config{ServerName: domain, NextProtos: []string{"acme-tls/1", "h2"}, InsecureSkipVerify: true}); err == nil && a.manager.cert.Load() == nil {
			a.t.Error("somebody else is shown the challenge's certificate")
		}
	default:
		a.t.Errorf("the challenge %s is answered", typ)
	}
	o.authz, o.status = "valid", "ready"
}

func (a *authority) sign(csr []byte) []byte {
	r, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		a.t.Error(err)
		return nil
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(int64(len(a.orders))), Subject: pkix.Name{CommonName: "leaf"}, DNSNames: r.DNSNames, NotBefore: a.clock.now().Add(-a.behind), NotAfter: a.clock.now().Add(a.validity - a.behind)}
	key := r.PublicKey
	switch a.broken {
	case "name":
		c.DNSNames = []string{"other.example.com"}
	case "key":
		key = a.key.Public()
	case "expired":
		c.NotBefore, c.NotAfter = c.NotBefore.Add(-time.Hour), c.NotBefore.Add(-time.Minute)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.ca, key, a.key)
	if err != nil {
		a.t.Error(err)
	}
	ca, err := x509.CreateCertificate(rand.Reader, a.ca, a.ca, a.key.Public(), a.key)
	if err != nil {
		a.t.Error(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})...)
}

// count returns the counts of requested orders and accounts.
func (a *authority) count() (orders, accounts int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.orders), a.accounts
}

func (a *authority) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// handshake connects to the manager over a pipe.
func handshake(t *testing.T, m *Manager, config *tls.Config) (tls.ConnectionState, error) {
	here, there := net.Pipe()
	defer here.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer there.Close()
		s := tls.Server(there, m.TLSConfig())
		if s.Handshake() == nil {
			io.Copy(io.Discard, there)
		}
	}()
	c := tls.Client(here, config)
	err := c.HandshakeContext(t.Context())
	here.Close()
	<-done
	return c.ConnectionState(), err
}

// clock is a clock that tests set. It also replaces sleeping.
type clock struct {
	mu     sync.Mutex
	t      time.Time
	sleeps chan time.Duration
	wake   chan struct{}
}

func newClock() *clock {
	return &clock{t: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), sleeps: make(chan time.Duration), wake: make(chan struct{})}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	select {
	case c.sleeps <- d:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// asleep waits until the loop sleeps, and returns the duration of its sleep.
func (c *clock) asleep(t *testing.T) time.Duration {
	t.Helper()
	return testenv.Receive(t, "the loop's sleep", c.sleeps)
}

// pass moves the clock while the loop sleeps. It returns when the loop sleeps again after
// at least d has passed.
func (c *clock) pass(t *testing.T, asleep, d time.Duration) (next time.Duration) {
	t.Helper()
	for end := c.now().Add(d); ; {
		c.forward(asleep)
		c.wake <- struct{}{}
		asleep = c.asleep(t)
		if !c.now().Before(end) {
			return asleep
		}
	}
}

// logged collects the manager's log.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// open returns a manager for the authority. Its loop is not started.
func (a *authority) open(dir string) (*Manager, *logged) {
	a.t.Helper()
	log := &logged{}
	m, err := New(Options{Domain: domain, Dir: dir, DirectoryURL: a.URL + "/dir", CAFile: a.caFile, Now: a.clock.now, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		a.t.Fatal(err)
	}
	m.sleep = a.clock.sleep
	a.t.Cleanup(m.Close)
	a.set(func() { a.manager = m })
	return m, log
}
