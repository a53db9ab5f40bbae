package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
)

// Options configures a [Manager].
type Options struct {
	Domain       string // the name in lower case, and in its ASCII form if it is international
	Dir          string // the directory for the certificate and the account's key; created with mode 0700
	DirectoryURL string // URL of the authority's directory (RFC 8555 section 7.1.1)
	Email        string // address for the authority's messages; may be empty
	CAFile       string // PEM file of authorities that may sign the directory's certificate, in addition to the system's; may be empty
	// RetryMin and RetryMax are the shortest and longest pause after a failure. The pause
	// doubles with each failure. The defaults are 5 minutes and 6 hours. Let's Encrypt
	// allows 5 failed attempts per hour. If the request did not reach the authority, the
	// first pause is at most 15 seconds.
	RetryMin, RetryMax time.Duration
	// Timeout is the maximum time of one attempt. The default is 5 minutes.
	Timeout time.Duration
	Logger  *slog.Logger     // nil discards all messages
	Now     func() time.Time // nil means time.Now
}

// Manager keeps the certificate of one name current. It is safe for concurrent use.
type Manager struct {
	o     Options
	dir   string // holds the files for this authority
	http  *http.Client
	log   *slog.Logger
	sleep func(ctx context.Context, d time.Duration) error

	cert      atomic.Pointer[tls.Certificate]
	challenge atomic.Pointer[challenge]
	http01    atomic.Bool // reports whether HTTPHandler is in use
	ready     chan struct{}

	client *acme.Client // used only by the loop
	worked string       // the challenge that last succeeded; used only by the loop

	mu     sync.Mutex
	status Status
	end    context.CancelFunc // nil before Start
	closed bool
	loop   sync.WaitGroup
}

// challenge is the response that the authority gets when it checks that we control the name.
type challenge struct {
	cert       *tls.Certificate // for tls-alpn-01
	path, body string           // for http-01
}

// Status describes the state of the certificate.
type Status struct {
	Domain      string
	Authority   string    // URL of the authority's directory
	Issuer      string    // name of the issuer in the certificate; empty if there is none
	NotBefore   time.Time // zero if there is no certificate
	NotAfter    time.Time
	Failures    int       // the number of failures since the last success
	LastError   string    // the last failure and its remedy; empty after a success
	LastFailure time.Time // zero after a success
	NextAttempt time.Time // when the server sends the next request to the authority
}

// New checks the options, and loads the stored certificate. It sends no requests. Start
// sends them.
func New(o Options) (*Manager, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RetryMin <= 0 {
		o.RetryMin = 5 * time.Minute
	}
	if o.RetryMax <= 0 {
		o.RetryMax = 6 * time.Hour
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	roots, err := authorities(o.CAFile)
	if err != nil {
		return nil, err
	}
	dir, err := makeDir(o.Dir, o.DirectoryURL)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	m := &Manager{
		o: o, dir: dir, log: o.Logger.With("domain", o.Domain), sleep: sleep,
		http:  &http.Client{Transport: transport, Timeout: time.Minute},
		ready: make(chan struct{}), status: Status{Domain: o.Domain, Authority: o.DirectoryURL},
	}
	cert, err := m.loadCertificate()
	switch {
	case err == nil:
		m.use(cert)
	case !errors.Is(err, os.ErrNotExist):
		m.log.Warn("the certificate on disk is of no use, and another one is asked for", "err", err)
	}
	return m, nil
}

func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil // the system's authorities
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("authorities for the ACME directory: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// Start begins to request a certificate in the background, if there is none or if it must
// be renewed. It returns at once. The listeners must already accept connections, because
// the authority connects to them. Close ends the background work.
func (m *Manager) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil || m.closed {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	m.loop.Go(func() { m.run(ctx) })
}

// Close ends the background work, and waits for it. Handshakes still get the certificate.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	if m.end != nil {
		m.end()
	}
	m.mu.Unlock()
	m.loop.Wait()
	m.http.CloseIdleConnections()
}

// Status returns the current state of the certificate.
func (m *Manager) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// TLSConfig returns the configuration of the https listener: TLS 1.2 or later, HTTP/2 and
// HTTP/1.1, and the authority's tls-alpn-01 challenge (RFC 8737). It refuses connections
// with another name or without a name.
func (m *Manager) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1", acme.ALPNProto},
		GetCertificate: m.certificateFor,
	}
}

// Errors of a handshake. They are logged, so they contain nothing from the client.
var (
	errOtherName     = errors.New("acme: the client asks for another name than this server's")
	errNoChallenge   = errors.New("acme: a challenge is asked for while none is under way")
	errNoCertificate = errors.New("acme: there is no certificate yet")
)

func (m *Manager) certificateFor(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if !strings.EqualFold(strings.TrimSuffix(hello.ServerName, "."), m.o.Domain) {
		return nil, errOtherName
	}
	// Only the authority's connections offer no other protocol than this (RFC 8737 section 3).
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto {
		if c := m.challenge.Load(); c != nil && c.cert != nil {
			return c.cert, nil
		}
		return nil, errNoChallenge
	}
	if c := m.cert.Load(); c != nil {
		return c, nil
	}
	return nil, errNoCertificate
}

// use makes c the certificate for handshakes.
func (m *Manager) use(c *tls.Certificate) {
	first := m.cert.Swap(c) == nil
	m.mu.Lock()
	s := &m.status
	s.Issuer, s.NotBefore, s.NotAfter = c.Leaf.Issuer.String(), c.Leaf.NotBefore, c.Leaf.NotAfter
	s.Failures, s.LastError, s.LastFailure, s.NextAttempt = 0, "", time.Time{}, renewAt(c.Leaf)
	m.mu.Unlock()
	if first {
		close(m.ready)
	}
}
