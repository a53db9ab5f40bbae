package egress

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestAPublicAddressOfTheMachineIsRefusedAtDialling(t *testing.T) {
	g := newGuard([]netip.Prefix{netip.MustParsePrefix("140.82.113.0/24")})
	g.own = func() ([]net.Addr, error) {
		var out []net.Addr
		for _, s := range []string{"140.82.112.3/20", "2606:50c0:8000::153/64", "140.82.113.3/20"} {
			ip, n, err := net.ParseCIDR(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		return out, nil
	}
	for addr, want := range map[string]bool{
		"140.82.112.3": false, "::ffff:140.82.112.3": false, "2606:50c0:8000::153": false,
		"140.82.112.4": true, "140.82.113.3": true, // allowed by the operator
	} {
		if err := g.checkDial(netip.MustParseAddr(addr)); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
	g.own = func() ([]net.Addr, error) { return nil, errors.New("unknown") }
	if g.checkDial(netip.MustParseAddr("140.82.112.4")) == nil {
		t.Error("an address passes although the machine's own are unknown")
	}
}
