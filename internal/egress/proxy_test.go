package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/egress"
	"satchel/internal/egress/egresstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newProxy(t *testing.T, o egress.Options) *egress.Proxy {
	t.Helper()
	p, err := egress.NewProxy(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// here returns options that allow this machine, at the ports of the given servers.
func here(servers ...string) egress.Options {
	o := egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, s := range servers {
		u, err := url.Parse(s)
		if err != nil {
			panic(err)
		}
		o.Ports = append(o.Ports, netip.MustParseAddrPort(u.Host).Port())
	}
	return o
}

// through returns a client that uses the proxy as git does.
func through(t *testing.T, p *url.URL) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(p), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// connect asks the proxy for a tunnel and returns its answer.
func connect(t *testing.T, p *egress.Proxy, target, auth string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", p.URL().Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if auth != "" {
		auth = "Proxy-Authorization: " + auth + "\r\n"
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, auth)
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func basic(u *url.URL) string {
	password, _ := u.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
}

func TestTunnels(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the proxy's credential reached the server")
		}
		io.Copy(w, r.Body)
	}))
	defer s.Close()
	p := newProxy(t, here(s.URL))
	want := strings.Repeat("there and back ", 1<<16)
	resp, err := through(t, p.URL()).Post(s.URL, "text/plain", strings.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
		t.Errorf("%d bytes came back of %d: %v", len(got), len(want), err)
	}
	if u := p.URL(); u.Hostname() != "127.0.0.1" || u.User == nil {
		t.Errorf("the proxy listens at %s", u.Redacted())
	}
}

func TestOnlyWhoHasTheCredentialIsServed(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	target := strings.TrimPrefix(s.URL, "http://")
	p, other := newProxy(t, here(s.URL)), newProxy(t, here(s.URL))
	for name, auth := range map[string]string{
		"none": "", "empty": "Basic ", "another proxy's": basic(other.URL()), "garbage": "Basic !!!", "bearer": "Bearer " + basic(p.URL())[6:],
		"user alone": "Basic " + base64.StdEncoding.EncodeToString([]byte("satchel:")), "longer": basic(p.URL()) + "AA",
	} {
		resp := connect(t, p, target, auth)
		if resp.StatusCode != http.StatusProxyAuthRequired || resp.Header.Get("Proxy-Authenticate") == "" {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	if resp := connect(t, p, target, basic(p.URL())); resp.StatusCode != http.StatusOK {
		t.Errorf("the right one: %s", resp.Status)
	}
}

func TestOnlyCONNECTIsServed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	defer s.Close()
	p := newProxy(t, here(s.URL))
	resp, err := through(t, p.URL()).Get(s.URL) // for plain http, a client sends the whole URL to the proxy
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("got %s", resp.Status)
	}
}

func TestAttackTargetsAreRefused(t *testing.T) {
	resolver := egresstest.Resolver(t, egresstest.Answers{
		"loop.example":     {egresstest.Addrs("127.0.0.1")},
		"loop6.example":    {egresstest.Addrs("::1")},
		"metadata.example": {egresstest.Addrs("169.254.169.254")},
		"mapped.example":   {egresstest.Addrs("::ffff:10.0.0.1")},
		"nat64.example":    {egresstest.Addrs("64:ff9b::a9fe:a9fe")},
	})
	p := newProxy(t, egress.Options{Resolver: resolver, Ports: []uint16{443, 80}})
	for target, want := range map[string]int{
		"127.0.0.1:443":          egress.StatusBlocked,
		"[::1]:443":              egress.StatusBlocked,
		"[::ffff:127.0.0.1]:443": egress.StatusBlocked,
		"[::ffff:7f00:1]:443":    egress.StatusBlocked,
		"[64:ff9b::7f00:1]:443":  egress.StatusBlocked,
		"[fe80::1%25lo]:443":     egress.StatusBlocked,
		"169.254.169.254:80":     egress.StatusBlocked,
		"10.0.0.1:443":           egress.StatusBlocked,
		"0.0.0.0:443":            egress.StatusBlocked,
		"[::]:443":               egress.StatusBlocked,
		"loop.example:443":       egress.StatusBlocked,
		"loop6.example:443":      egress.StatusBlocked,
		"metadata.example:80":    egress.StatusBlocked,
		"mapped.example:443":     egress.StatusBlocked,
		"nat64.example:443":      egress.StatusBlocked,
		"localhost:443":          egress.StatusBlocked,
		"140.82.112.3:22":        egress.StatusBlocked, // refused for the port
		"140.82.112.3:8443":      egress.StatusBlocked,
		"140.82.112.3:0":         egress.StatusBlocked,
		"unknown.example:443":    egress.StatusNoHost,
		"2130706433:443":         egress.StatusNoHost, // our resolvers must not read it as an address
		"0x7f000001:443":         egress.StatusNoHost,
		"0177.0.0.1:443":         egress.StatusNoHost,
		"127.1:443":              egress.StatusNoHost,
	} {
		if resp := connect(t, p, target, basic(p.URL())); resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", target, resp.Status, want)
		}
	}
}

// Attack: a name is public when it is checked and loopback when it is dialled (DNS rebinding).
func TestANameThatChangesItsAddressGainsNothing(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	defer s.Close()
	resolver := egresstest.Resolver(t, egresstest.Answers{"rebind.example": {egresstest.Addrs("140.82.112.3"), egresstest.Addrs("127.0.0.1")}})
	o := here(s.URL)
	o.Allow, o.Resolver = nil, resolver
	p := newProxy(t, o)
	a, err := p.Resolve(t.Context(), "rebind.example")
	if err != nil || a != netip.MustParseAddr("140.82.112.3") {
		t.Fatalf("the first look-up: %v, %v", a, err)
	}
	target := fmt.Sprintf("rebind.example:%d", o.Ports[0])
	if resp := connect(t, p, target, basic(p.URL())); resp.StatusCode != egress.StatusBlocked {
		t.Errorf("the proxy: %s", resp.Status)
	}
	_, err = p.HTTPClient().Get("https://" + target)
	var b *egress.BlockedError
	if !errors.As(err, &b) || b.Host != "rebind.example" || b.Reason != "loopback" {
		t.Errorf("the client: %v", err)
	}
	if _, err := p.Resolve(t.Context(), "rebind.example"); !errors.As(err, &b) {
		t.Errorf("the second look-up: %v", err)
	}
}

func TestOfMixedAnswersOnlyThePublicOneIsUsed(t *testing.T) {
	resolver := egresstest.Resolver(t, egresstest.Answers{"mixed.example": {egresstest.Addrs("127.0.0.1", "140.82.112.3", "::1")}})
	p := newProxy(t, egress.Options{Resolver: resolver})
	for range 5 {
		if a, err := p.Resolve(t.Context(), "mixed.example"); err != nil || a != netip.MustParseAddr("140.82.112.3") {
			t.Fatalf("got %v, %v", a, err)
		}
	}
}

// Attack: connect to this machine by its own public address, to bypass its firewall.
func TestTheMachinesOwnAddressesAreRefused(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, egress.Options{})
	for _, o := range own {
		ip, _ := netip.AddrFromSlice(o.(*net.IPNet).IP)
		if resp := connect(t, p, netip.AddrPortFrom(ip, 443).String(), basic(p.URL())); resp.StatusCode != egress.StatusBlocked {
			t.Errorf("%s: %s", ip, resp.Status)
		}
	}
}

func TestTheClientFollowsNoRedirect(t *testing.T) {
	s := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound))
	defer s.Close()
	p := newProxy(t, here(s.URL))
	resp, err := p.HTTPClient().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("got %s", resp.Status)
	}
}

func TestTunnelsAreBounded(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	o := here(s.URL)
	o.MaxTunnels = 2
	p := newProxy(t, o)
	target := strings.TrimPrefix(s.URL, "http://")
	for range 2 {
		if resp := connect(t, p, target, basic(p.URL())); resp.StatusCode != http.StatusOK {
			t.Fatalf("got %s", resp.Status)
		}
	}
	if resp := connect(t, p, target, basic(p.URL())); resp.StatusCode != egress.StatusTooMany {
		t.Errorf("the third: %s", resp.Status)
	}
}

// silent returns a server that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range open {
					c.Close()
				}
				return
			}
			open = append(open, c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestATunnelInWhichNothingMovesEnds(t *testing.T) {
	s := silent(t)
	o := here(s)
	o.IdleTimeout = 30 * time.Millisecond
	p := newProxy(t, o)
	c := dialTunnel(t, p, s)
	if _, err := io.ReadAll(c); err != nil {
		t.Logf("the tunnel ended with %v", err)
	}
}

func TestTunnelsEndWithTheProxy(t *testing.T) {
	s := silent(t)
	for name, end := range map[string]func(*egress.Proxy, context.CancelFunc){
		"Close":   func(p *egress.Proxy, _ context.CancelFunc) { p.Close() },
		"context": func(_ *egress.Proxy, cancel context.CancelFunc) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := egress.NewProxy(ctx, here(s))
		if err != nil {
			t.Fatal(err)
		}
		c := dialTunnel(t, p, s)
		end(p, cancel)
		io.ReadAll(c) // returns only after the tunnel has ended
		if _, err := net.Dial("tcp", p.URL().Host); err == nil {
			t.Errorf("%s: the proxy still listens", name)
		}
		p.Close()
		cancel()
	}
}

func dialTunnel(t *testing.T, p *egress.Proxy, server string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.URL().Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nProxy-Authorization: %s\r\n\r\n", strings.TrimPrefix(server, "http://"), basic(p.URL()))
	line, err := bufio.NewReader(io.LimitReader(c, 40)).ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		t.Fatalf("got %q, %v", line, err)
	}
	return c
}

func TestEachProxyHasItsOwnCredential(t *testing.T) {
	a, b := newProxy(t, egress.Options{}), newProxy(t, egress.Options{})
	one, _ := a.URL().User.Password()
	two, _ := b.URL().User.Password()
	if one == two || len(one) < 20 {
		t.Errorf("%q and %q", one, two)
	}
}
