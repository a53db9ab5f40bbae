package egress

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// The statuses of the proxy when it opens no tunnel. git prints the status, so the caller of
// git can see the reason.
const (
	StatusBlocked  = http.StatusForbidden          // the address or the port is refused
	StatusNoHost   = http.StatusNotFound           // the name does not resolve
	StatusNetwork  = http.StatusBadGateway         // the host cannot be reached
	StatusTimeout  = http.StatusGatewayTimeout     // the host did not answer in time
	StatusTooMany  = http.StatusServiceUnavailable // Options.MaxTunnels tunnels are open
	proxyUser      = "satchel"
	maxProxyHeader = 16 << 10
)

// Proxy is a CONNECT proxy on a loopback port, for one process and the programs
// that it starts.
type Proxy struct {
	o        Options
	d        *dialer
	client   *http.Client
	listener net.Listener
	server   *http.Server
	url      *url.URL
	want     [sha256.Size]byte // the hash of the required Proxy-Authorization
	tunnels  chan struct{}
	cancel   context.CancelFunc // ends dials that are under way
	stop     func() bool        // ends the wait for the end of NewProxy's context

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	wg     sync.WaitGroup
}

// NewProxy starts a proxy on a loopback port. It runs until Close, or until ctx ends.
func NewProxy(ctx context.Context, o Options) (*Proxy, error) {
	o = o.withDefaults()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	password := rand.Text()
	p := &Proxy{
		o: o, d: newDialer(o), listener: l,
		url:     &url.URL{Scheme: "http", User: url.UserPassword(proxyUser, password), Host: l.Addr().String()},
		want:    sha256.Sum256([]byte("Basic " + base64.StdEncoding.EncodeToString([]byte(proxyUser+":"+password)))),
		tunnels: make(chan struct{}, o.MaxTunnels),
		open:    map[net.Conn]struct{}{},
	}
	p.client = newClient(p.Transport(nil))
	dialing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	p.server = &http.Server{
		BaseContext:       func(net.Listener) context.Context { return dialing },
		Handler:           http.HandlerFunc(p.serve),
		ReadHeaderTimeout: o.DialTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    maxProxyHeader,
		Protocols:         new(http.Protocols),
	}
	p.server.Protocols.SetHTTP1(true)
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			o.Logger.Error("The egress proxy ended.", "error", err)
		}
	}()
	p.stop = context.AfterFunc(ctx, p.shut)
	return p, nil
}

// URL returns the proxy's address with its credential. Pass it only in the environment of a
// child process, and never in an argument, a file or a log.
func (p *Proxy) URL() *url.URL { u := *p.url; return &u }

// Options returns the proxy's options, with the defaults filled in.
func (p *Proxy) Options() Options {
	o := p.o
	o.Allow, o.Ports = slices.Clone(o.Allow), slices.Clone(o.Ports)
	return o
}

// Allowed returns nil if the rules allow an address. Like Check, it does not refuse the
// machine's own public addresses.
func (p *Proxy) Allowed(addr netip.Addr) error { return p.d.guard.check(addr) }

// Close ends the proxy and every tunnel, and waits until they have ended.
func (p *Proxy) Close() error {
	p.stop()
	p.shut()
	p.wg.Wait()
	return nil
}

// shut closes the listener first, so that no new tunnel begins while it ends the open ones.
func (p *Proxy) shut() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.server.Close()
	p.mu.Lock()
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.cancel()
	p.client.CloseIdleConnections()
}

// enter counts a request, so that Close can wait for it. It returns false if the proxy is
// closed. The method leave ends the count.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Add(1)
	return true
}

func (p *Proxy) leave() { p.wg.Done() }

// hold registers connections, so that shut closes them. It returns false if the proxy is already
// closed. The method release removes the connections.
func (p *Proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.open[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) release(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.open, c)
	}
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		http.Error(w, "The proxy is stopping.", StatusNetwork)
		return
	}
	defer p.leave()
	given := sha256.Sum256([]byte(r.Header.Get("Proxy-Authorization")))
	if subtle.ConstantTimeCompare(given[:], p.want[:]) != 1 {
		w.Header().Set("Proxy-Authenticate", `Basic realm="egress"`)
		http.Error(w, "The proxy asks for its credential.", http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		http.Error(w, "Only CONNECT is served.", http.StatusMethodNotAllowed)
		return
	}
	select {
	case p.tunnels <- struct{}{}:
		defer func() { <-p.tunnels }()
	default:
		http.Error(w, "Too many tunnels are open.", StatusTooMany)
		return
	}
	up, err := p.d.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		p.o.Logger.Info("A connection was refused or failed.", "target", r.Host, "error", err)
		http.Error(w, "The host cannot be reached.", statusOf(err))
		return
	}
	defer up.Close()
	down, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.o.Logger.Error("A tunnel could not be made.", "error", err)
		http.Error(w, "No tunnel can be made.", http.StatusInternalServerError)
		return
	}
	defer down.Close()
	defer p.release(up, down)
	if !p.hold(up, down) {
		return
	}
	p.tunnel(up, down, rest)
}

func statusOf(err error) int {
	var (
		blocked *BlockedError
		port    *PortError
		dns     *net.DNSError
	)
	switch {
	case errors.As(err, &blocked), errors.As(err, &port):
		return StatusBlocked
	case errors.As(err, &dns):
		return StatusNoHost
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return StatusTimeout
	}
	return StatusNetwork
}

// tunnel copies in both directions until one side ends, or until there is no traffic for the
// idle timeout.
func (p *Proxy) tunnel(up, down net.Conn, rest *bufio.ReadWriter) {
	down.SetDeadline(time.Time{})
	if _, err := io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var from io.Reader = down
		if n := rest.Reader.Buffered(); n > 0 {
			from = io.MultiReader(io.LimitReader(rest.Reader, int64(n)), down)
		}
		p.pipe(up, down, from)
	}()
	p.pipe(down, up, up)
	<-done
}

// pipe copies the data of the reader from to dst, and then closes dst for writing. from reads
// src. After an error, pipe closes src, or both connections.
func (p *Proxy) pipe(dst, src net.Conn, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		// Traffic in one direction keeps both directions open, because a long upload gets no
		// answer before its end.
		until := time.Now().Add(p.o.IdleTimeout)
		dst.SetDeadline(until)
		src.SetDeadline(until)
		n, err := from.Read(buf)
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				src.Close()
				return
			}
		}
		if err == nil {
			continue
		}
		if half, ok := dst.(interface{ CloseWrite() error }); ok && errors.Is(err, io.EOF) {
			half.CloseWrite()
			return
		}
		dst.Close()
		src.Close()
		return
	}
}
