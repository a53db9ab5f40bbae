package clientaddr

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func prefixes(ss ...string) (ps []netip.Prefix) {
	for _, s := range ss {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func TestOf(t *testing.T) {
	proxies := []string{"10.0.0.0/8", "127.0.0.1/32", "::1/128", "fd00::/8", "fe80::/10"}
	for _, tt := range []struct {
		name    string
		trusted []string
		peer    string
		xff     []string // one per header line
		want    string   // "" for none
	}{
		{"no proxy", nil, "192.0.2.7:1234", nil, "192.0.2.7"},
		{"no proxy, IPv6", nil, "[2001:db8::7]:1234", nil, "2001:db8::7"},
		{"no proxy, IPv4 in IPv6 form", nil, "[::ffff:192.0.2.7]:1234", nil, "192.0.2.7"},
		{"no proxy, a zone", nil, "[fe80::7%eth0]:1234", nil, "fe80::7"},
		{"unix socket", proxies, "@", []string{"192.0.2.7"}, ""},
		{"empty", proxies, "", []string{"192.0.2.7"}, ""},
		{"garbage", proxies, "10.0.0.1:http", []string{"192.0.2.7"}, ""},

		{"proxy", proxies, "10.0.0.1:1234", []string{"192.0.2.7"}, "192.0.2.7"},
		{"proxy on this machine", proxies, "127.0.0.1:1234", []string{"192.0.2.7"}, "192.0.2.7"},
		{"proxy over IPv6", proxies, "[::1]:1234", []string{"2001:db8::7"}, "2001:db8::7"},
		{"proxy with a zone", proxies, "[fe80::1%eth0]:1234", []string{"192.0.2.7"}, "192.0.2.7"},
		{"proxy in IPv6 form", proxies, "[::ffff:10.0.0.1]:1234", []string{"192.0.2.7"}, "192.0.2.7"},
		{"network in IPv6 form", []string{"::ffff:10.0.0.0/104"}, "10.0.0.1:1234", []string{"192.0.2.7"}, "192.0.2.7"},
		{"two proxies", proxies, "10.0.0.1:1234", []string{"192.0.2.7, 10.0.0.2"}, "192.0.2.7"},
		{"two proxies, a line each", proxies, "10.0.0.1:1234", []string{"192.0.2.7", "10.0.0.2"}, "192.0.2.7"},
		{"no spaces", proxies, "10.0.0.1:1234", []string{"192.0.2.7,10.0.0.2"}, "192.0.2.7"},
		{"empty elements", proxies, "10.0.0.1:1234", []string{" , 192.0.2.7 ,\t, ", ""}, "192.0.2.7"},
		{"a port", proxies, "10.0.0.1:1234", []string{"192.0.2.7:5678"}, "192.0.2.7"},
		{"IPv6 in brackets", proxies, "10.0.0.1:1234", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"IPv6 with a port", proxies, "10.0.0.1:1234", []string{"[2001:db8::7]:5678"}, "2001:db8::7"},
		{"IPv4 in IPv6 form", proxies, "10.0.0.1:1234", []string{"::ffff:192.0.2.7"}, "192.0.2.7"},
		{"a trusted proxy in IPv6 form", proxies, "10.0.0.1:1234", []string{"192.0.2.7, ::ffff:10.0.0.2"}, "192.0.2.7"},
		{"proxies alone", proxies, "10.0.0.1:1234", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"proxy without the header", proxies, "10.0.0.1:1234", nil, "10.0.0.1"},
		{"proxy with an empty header", proxies, "10.0.0.1:1234", []string{""}, "10.0.0.1"},
		{"not the proxy's network", proxies, "11.0.0.1:1234", []string{"192.0.2.7"}, "11.0.0.1"},

		{"attack: made up by a client without a proxy", nil, "192.0.2.7:1234", []string{"203.0.113.9"}, "192.0.2.7"},
		{"attack: made up by a client past the proxy", proxies, "192.0.2.7:1234", []string{"203.0.113.9, 10.0.0.1"}, "192.0.2.7"},
		{"attack: left of what the proxy wrote", proxies, "10.0.0.1:1234", []string{"203.0.113.9, 192.0.2.7"}, "192.0.2.7"},
		{"attack: in a line before the proxy's", proxies, "10.0.0.1:1234", []string{"203.0.113.9", "192.0.2.7"}, "192.0.2.7"},
		{"attack: a proxy's address left of what the proxy wrote", proxies, "10.0.0.1:1234", []string{"203.0.113.9, 10.0.0.9, 192.0.2.7"}, "192.0.2.7"},
		{"attack: garbage that hides what is left of it", proxies, "10.0.0.1:1234", []string{"203.0.113.9, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"attack: garbage alone", proxies, "10.0.0.1:1234", []string{"'; DROP TABLE"}, "10.0.0.1"},
		{"attack: several addresses with spaces", proxies, "10.0.0.1:1234", []string{"203.0.113.9 192.0.2.7"}, "10.0.0.1"},
		{"attack: an octal octet", proxies, "10.0.0.1:1234", []string{"010.0.0.1"}, "10.0.0.1"},
		{"attack: a short form", proxies, "10.0.0.1:1234", []string{"10.1"}, "10.0.0.1"},
		{"attack: IPv4 in brackets", proxies, "10.0.0.1:1234", []string{"[203.0.113.9]"}, "10.0.0.1"},
		{"attack: half a bracket", proxies, "10.0.0.1:1234", []string{"[2001:db8::7"}, "10.0.0.1"},
		{"attack: a full-width digit", proxies, "10.0.0.1:1234", []string{"１92.0.2.7"}, "10.0.0.1"},
		{"attack: very many commas", proxies, "10.0.0.1:1234", []string{"203.0.113.9" + strings.Repeat(",", 1<<16) + "192.0.2.7"}, "192.0.2.7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := &http.Request{RemoteAddr: tt.peer, Header: http.Header{
				"Forwarded": {"for=203.0.113.50"}, "X-Real-Ip": {"203.0.113.51"}, "True-Client-Ip": {"203.0.113.52"}, "Cf-Connecting-Ip": {"203.0.113.53"},
			}}
			if tt.xff != nil {
				req.Header["X-Forwarded-For"] = tt.xff
			}
			var want netip.Addr
			if tt.want != "" {
				want = netip.MustParseAddr(tt.want)
			}
			if got := New(prefixes(tt.trusted...)).Of(req); got != want {
				t.Errorf("%v, not %v", got, want)
			}
		})
	}
}

func TestKey(t *testing.T) {
	for _, tt := range []struct{ name, addr, want string }{
		{"IPv4 alone", "192.0.2.7", "192.0.2.7"},
		{"IPv4 in IPv6 form is the same", "::ffff:192.0.2.7", "192.0.2.7"},
		{"IPv6 by what one subscriber has", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"another address of theirs is the same", "2001:db8:1:2::", "2001:db8:1:2::/64"},
		{"a zone is no part of it", "fe80::1%eth0", "fe80::/64"},
		{"none", "", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a netip.Addr
			if tt.addr != "" {
				a = netip.MustParseAddr(tt.addr)
			}
			if got := Key(a); got != tt.want {
				t.Errorf("%q, not %q", got, tt.want)
			}
		})
	}
}

// Whatever a header says, what is left of the first untrusted address changes
// nothing, and without a trusted proxy nothing does.
func FuzzOf(f *testing.F) {
	f.Add("10.0.0.1:1", "203.0.113.9, 192.0.2.7")
	f.Add("10.0.0.1:1", "[2001:db8::7]:5678,\t10.0.0.2")
	f.Add("[::1]:1", "unknown, ::ffff:10.0.0.2")
	f.Add("@", "")
	f.Add("192.0.2.7:1", ",,,")
	f.Fuzz(func(t *testing.T, peer, xff string) {
		trusted := prefixes("10.0.0.0/8", "::1/128")
		req := func(lines ...string) *http.Request {
			return &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": lines}}
		}
		if a, b := New(nil).Of(req(xff)), New(nil).Of(req()); a != b {
			t.Fatalf("%v without a trusted proxy, not %v", a, b)
		}
		r := New(trusted)
		a := r.Of(req(xff))
		if a.Is4In6() || a.Zone() != "" {
			t.Fatalf("%v is not in plain form", a)
		}
		in := slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
		if a.IsValid() && !in {
			for _, more := range [][]string{{"203.0.113.9", xff}, {"203.0.113.9," + xff}, {"garbage, " + xff}} {
				if b := r.Of(req(more...)); b != a {
					t.Fatalf("%v with something put before, not %v", b, a)
				}
			}
		}
		if Key(a) == "" {
			t.Fatal("no key")
		}
	})
}
