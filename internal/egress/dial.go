package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options configure a Proxy. Zero fields take the defaults.
type Options struct {
	// Allow lists the networks outside the public internet that the operator lets users
	// reach.
	Allow []netip.Prefix
	// Ports lists the ports that may be dialled; default 443.
	Ports []uint16
	// Resolver finds the addresses of names; default the machine's.
	Resolver *net.Resolver
	// DialTimeout bounds the resolution of a name and the connection, and then the TLS
	// handshake; default 15 seconds.
	DialTimeout time.Duration
	// IdleTimeout ends a tunnel without traffic, an unused connection, and the wait for an
	// answer; default 5 minutes.
	IdleTimeout time.Duration
	// MaxTunnels bounds the open tunnels; default 256.
	MaxTunnels int
	Logger     *slog.Logger
}

func (o Options) withDefaults() Options {
	if len(o.Ports) == 0 {
		o.Ports = []uint16{443}
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 15 * time.Second
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 5 * time.Minute
	}
	if o.MaxTunnels == 0 {
		o.MaxTunnels = 256
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// dialer dials the addresses that a guard allows.
type dialer struct {
	guard *guard
	ports []uint16
	net   *net.Dialer
}

func newDialer(o Options) *dialer {
	d := &dialer{guard: newGuard(o.Allow), ports: o.Ports}
	d.net = &net.Dialer{Timeout: o.DialTimeout, Resolver: o.Resolver, ControlContext: d.control}
	return d
}

// control runs between the resolution of a name and the connection, once for each address.
func (d *dialer) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return fmt.Errorf("egress: %s is not dialled", network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("egress: %q: %w", address, err)
	}
	return d.guard.checkDial(ap.Addr())
}

// PortError is the error for a port that may not be dialled.
type PortError struct{ Port uint16 }

// Error names the port.
func (e *PortError) Error() string { return fmt.Sprintf("egress: port %d is refused", e.Port) }

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("egress: %q is not a port", portText)
	}
	if !slices.Contains(d.ports, uint16(port)) {
		return nil, &PortError{Port: uint16(port)}
	}
	conn, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		var b *BlockedError
		if errors.As(err, &b) {
			return nil, &BlockedError{Host: host, Addr: b.Addr, Reason: b.Reason}
		}
		return nil, err
	}
	return conn, nil
}

// Resolve returns an address of a host that may be dialled, for a program that needs an address
// instead of a name. If the rules refuse all addresses of the host, the error is a *BlockedError.
func (p *Proxy) Resolve(ctx context.Context, host string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.DialTimeout)
	defer cancel()
	r := p.o.Resolver
	if r == nil {
		r = net.DefaultResolver
	}
	addrs, err := r.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	var refused error
	for _, a := range addrs {
		if err := p.d.guard.checkDial(a); err != nil {
			refused = err
			continue
		}
		return a.Unmap(), nil
	}
	if refused == nil {
		refused = fmt.Errorf("egress: %s has no address", host)
	}
	return netip.Addr{}, refused
}

// Transport returns a new transport that dials by the package's rules and uses no proxy.
// The caller closes its idle connections.
func (p *Proxy) Transport(config *tls.Config) *http.Transport {
	return newTransport(p.o, p.d, config)
}

// HTTPClient returns a client that dials by the package's rules. It does not follow redirects,
// but returns the redirecting answer.
func (p *Proxy) HTTPClient() *http.Client { return p.client }

// NewClient returns a client like Proxy.HTTPClient, but needs no Proxy. It is for requests of
// the server itself. The caller closes its idle connections.
func NewClient(o Options, config *tls.Config) *http.Client {
	o = o.withDefaults()
	return newClient(newTransport(o, newDialer(o), config))
}

func newClient(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func newTransport(o Options, d *dialer, config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            d.dial,
		TLSClientConfig:        config,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    o.DialTimeout,
		ResponseHeaderTimeout:  o.IdleTimeout,
		IdleConnTimeout:        o.IdleTimeout,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
