package egress_test

import (
	"errors"
	"net/netip"
	"testing"

	"satchel/internal/egress"
)

func TestOnlyThePublicInternetsAddressesPass(t *testing.T) {
	for _, c := range []struct{ addr, reason string }{
		{"140.82.112.3", ""},
		{"1.1.1.1", ""},
		{"172.15.255.255", ""},
		{"172.32.0.1", ""},
		{"100.63.255.255", ""},
		{"100.128.0.1", ""},
		{"169.253.255.255", ""},
		{"223.255.255.255", ""},
		{"2606:50c0:8000::153", ""},
		{"2001:200::1", ""},
		{"::ffff:140.82.112.3", ""},
		{"64:ff9b::8c52:7003", ""}, // NAT64 of a public address, as in IPv6-only networks

		{"127.0.0.1", "loopback"},
		{"127.255.255.254", "loopback"},
		{"::1", "loopback"},
		{"::ffff:127.0.0.1", "loopback"},
		{"64:ff9b::7f00:1", "loopback"}, // NAT64
		{"64:ff9b::a9fe:a9fe", "link-local or cloud metadata"},
		{"64:ff9b:1::7f00:1", "not a global address"}, // a private NAT64 prefix
		{"2002:7f00:1::", "6to4"},
		{"2002:8c52:7003::1", "6to4"},
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo or protocol assignments"},
		{"::7f00:1", "not a global address"}, // IPv4-compatible
		{"0.0.0.0", "unspecified"},
		{"0.1.2.3", "unspecified"},
		{"::", "unspecified"},
		{"10.0.0.1", "private"},
		{"172.16.0.1", "private"},
		{"172.31.255.255", "private"},
		{"192.168.1.1", "private"},
		{"::ffff:192.168.1.1", "private"},
		{"fd00:ec2::254", "private"}, // AWS metadata
		{"fc00::1", "private"},
		{"fec0::1", "not a global address"}, // site-local
		{"100.64.0.1", "carrier-grade NAT"},
		{"100.100.100.200", "carrier-grade NAT"}, // Alibaba metadata
		{"169.254.169.254", "link-local or cloud metadata"},
		{"169.254.170.2", "link-local or cloud metadata"}, // ECS credentials
		{"fe80::1", "link-local"},
		{"fe80::1%eth0", "an address with a zone"},
		{"2606:50c0:8000::153%eth0", "an address with a zone"},
		{"168.63.129.16", "cloud metadata"},                       // Azure
		{"192.0.0.192", "protocol assignments or cloud metadata"}, // Oracle
		{"192.0.2.1", "documentation"},
		{"198.51.100.1", "documentation"},
		{"203.0.113.1", "documentation"},
		{"2001:db8::1", "documentation"},
		{"3fff::1", "documentation"},
		{"192.88.99.1", "6to4 relay"},
		{"198.18.0.1", "benchmarking"},
		{"198.19.255.255", "benchmarking"},
		{"224.0.0.1", "multicast"},
		{"239.255.255.250", "multicast"},
		{"ff02::1", "multicast"},
		{"240.0.0.1", "reserved or broadcast"},
		{"255.255.255.255", "reserved or broadcast"},
		{"100::1", "not a global address"},
		{"5f00::1", "not a global address"},
		{"4000::1", "not a global address"},
	} {
		err := egress.Check(netip.MustParseAddr(c.addr))
		var b *egress.BlockedError
		switch {
		case c.reason == "" && err != nil:
			t.Errorf("%s: %v", c.addr, err)
		case c.reason != "" && (!errors.As(err, &b) || b.Reason != c.reason):
			t.Errorf("%s: got %v, want %q", c.addr, err, c.reason)
		}
	}
	if egress.Check(netip.Addr{}) == nil {
		t.Error("no address at all passes")
	}
}

func TestTheOperatorsExceptionsPass(t *testing.T) {
	ten := netip.MustParsePrefix("10.1.0.0/16")
	ula := netip.MustParsePrefix("fd00:1::/32")
	for addr, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd00:1::5": true, "fd00:2::5": false, "127.0.0.1": false, "fd00:1::5%eth0": false,
	} {
		if err := egress.Check(netip.MustParseAddr(addr), ten, ula); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1%1", "1.1.1.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return
		}
		// An address that the standard library recognises as special must be refused, in every
		// form.
		for _, form := range []netip.Addr{a, a.Unmap()} {
			if egress.Check(form) == nil && (form.IsLoopback() || form.IsPrivate() || form.IsUnspecified() || form.IsMulticast() ||
				form.IsLinkLocalUnicast() || form.IsInterfaceLocalMulticast() || !form.IsGlobalUnicast()) {
				t.Errorf("%s passes", form)
			}
		}
		if (egress.Check(a) == nil) != (egress.Check(a.Unmap()) == nil) {
			t.Errorf("%s and %s are judged differently", a, a.Unmap())
		}
	})
}
