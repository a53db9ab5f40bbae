package clientaddr

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Resolver reports where requests come from.
type Resolver struct{ trusted []netip.Prefix }

// New returns a resolver that trusts the X-Forwarded-For header of proxies in these
// networks. Without any networks it trusts no proxy.
func New(trusted []netip.Prefix) *Resolver {
	r := &Resolver{}
	for _, p := range trusted {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		if p.IsValid() {
			r.trusted = append(r.trusted, p.Masked())
		}
	}
	return r
}

// Of returns the address that a request comes from. It is the connection's address or, if the
// connection comes from a trusted proxy, the right-most address in X-Forwarded-For that is not
// a trusted proxy. If an entry of that header is not an address, Of ignores it and everything
// to its left, and returns the last known proxy. It returns IPv4 addresses in IPv6 form as
// IPv4, and no zones. The address is invalid if the connection has none, as on a unix socket.
func (r *Resolver) Of(req *http.Request) netip.Addr {
	addr := parse(req.RemoteAddr)
	if !r.trusts(addr) {
		return addr
	}
	for _, line := range slices.Backward(req.Header.Values("X-Forwarded-For")) {
		for line != "" {
			var hop string
			if i := strings.LastIndexByte(line, ','); i >= 0 {
				line, hop = line[:i], line[i+1:]
			} else {
				line, hop = "", line
			}
			if hop = strings.Trim(hop, " \t"); hop == "" {
				continue // an empty element of a list says nothing (RFC 9110 section 5.6.1)
			}
			a := parse(hop)
			if !a.IsValid() {
				return addr
			}
			if addr = a; !r.trusts(addr) {
				return addr
			}
		}
	}
	return addr
}

func (r *Resolver) trusts(a netip.Addr) bool {
	return a.IsValid() && slices.ContainsFunc(r.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// parse reads an address with or without a port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1], [2001:db8::1]:80.
func parse(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		inner, bracketed := strings.CutPrefix(s, "[")
		if inner, whole := strings.CutSuffix(inner, "]"); bracketed && whole {
			if a, err = netip.ParseAddr(inner); err == nil && a.Is4() {
				return netip.Addr{}
			}
		} else {
			var ap netip.AddrPort
			ap, err = netip.ParseAddrPort(s)
			a = ap.Addr()
		}
	}
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// unknown is the key of all requests without an address, which are counted together.
const unknown = "unknown"

// Key returns the key under which requests from an address are counted: an IPv4 address, or
// the /64 network of an IPv6 address, because one subscriber has the whole network.
func Key(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return unknown
	case a.Is4():
		return a.String()
	}
	p, _ := a.Prefix(64) // 64 is in range for IPv6
	return p.String()
}
