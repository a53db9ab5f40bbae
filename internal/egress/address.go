package egress

import (
	"fmt"
	"net"
	"net/netip"
)

// BlockedError is the error for an address that may not be reached.
type BlockedError struct {
	Host   string // as requested; empty if only the address is known
	Addr   netip.Addr
	Reason string // such as "loopback"
}

// Error names the address and why it is refused.
func (e *BlockedError) Error() string {
	if e.Host != "" && e.Host != e.Addr.String() {
		return fmt.Sprintf("egress: %s is at %s, which is refused: %s", e.Host, e.Addr, e.Reason)
	}
	return fmt.Sprintf("egress: %s is refused: %s", e.Addr, e.Reason)
}

// block is a range of addresses outside the public internet.
type block struct {
	prefix netip.Prefix
	reason string
}

// blocks4 and blocks6 follow IANA's special-purpose address registries (RFC 6890 and its
// updates). They also contain the addresses of clouds' metadata services.
func blocks4() []block {
	return []block{
		{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
		{netip.MustParsePrefix("10.0.0.0/8"), "private"},
		{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
		{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
		{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"}, // Azure's service, at a public address
		{netip.MustParsePrefix("169.254.0.0/16"), "link-local or cloud metadata"},
		{netip.MustParsePrefix("172.16.0.0/12"), "private"},
		{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments or cloud metadata"},
		{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
		{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
		{netip.MustParsePrefix("192.168.0.0/16"), "private"},
		{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
		{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
		{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
		{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
		{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast"},
	}
}

func blocks6() []block {
	return []block{
		{netip.MustParsePrefix("2001::/23"), "Teredo or protocol assignments"},
		{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
		{netip.MustParsePrefix("2002::/16"), "6to4"},
		{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112"},
		{netip.MustParsePrefix("3fff::/20"), "documentation"},
	}
}

// guard decides which addresses are allowed.
type guard struct {
	allow          []netip.Prefix
	four, six      []block
	global6, nat64 netip.Prefix
	own            func() ([]net.Addr, error)
}

func newGuard(allow []netip.Prefix) *guard {
	return &guard{
		allow: allow, four: blocks4(), six: blocks6(),
		global6: netip.MustParsePrefix("2000::/3"),
		nat64:   netip.MustParsePrefix("64:ff9b::/96"),
		own:     net.InterfaceAddrs,
	}
}

// Check returns nil if an address is on the public internet or in allow, and otherwise a
// *BlockedError. It does not refuse the machine's own public addresses; the proxy refuses these
// when it dials.
func Check(addr netip.Addr, allow ...netip.Prefix) error { return newGuard(allow).check(addr) }

func (g *guard) check(addr netip.Addr) error {
	refuse := func(reason string) error { return &BlockedError{Addr: addr, Reason: reason} }
	if addr.Zone() != "" {
		return refuse("an address with a zone")
	}
	a := addr.Unmap()
	for _, p := range g.allow {
		if p.Contains(a) {
			return nil
		}
	}
	if g.nat64.Contains(a) { // a NAT64 gateway connects to the IPv4 address in the last four bytes
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !a.IsValid():
		return refuse("not an address")
	case a.Is4():
		for _, b := range g.four {
			if b.prefix.Contains(a) {
				return refuse(b.reason)
			}
		}
		return nil
	case a.IsLoopback():
		return refuse("loopback")
	case a.IsUnspecified():
		return refuse("unspecified")
	case a.IsMulticast():
		return refuse("multicast")
	case a.IsLinkLocalUnicast():
		return refuse("link-local")
	case a.IsPrivate():
		return refuse("private")
	case !g.global6.Contains(a):
		return refuse("not a global address")
	}
	for _, b := range g.six {
		if b.prefix.Contains(a) {
			return refuse(b.reason)
		}
	}
	return nil
}

// checkDial checks an address that is about to be dialled. It also refuses the machine's own
// addresses, because such a connection would bypass the machine's firewall.
func (g *guard) checkDial(addr netip.Addr) error {
	if err := g.check(addr); err != nil {
		return err
	}
	a := addr.Unmap()
	for _, p := range g.allow {
		if p.Contains(a) {
			return nil
		}
	}
	own, err := g.own()
	if err != nil {
		return fmt.Errorf("egress: the machine's own addresses: %w", err)
	}
	for _, o := range own {
		if n, ok := o.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == a {
				return &BlockedError{Addr: addr, Reason: "the server's own address"}
			}
		}
	}
	return nil
}
