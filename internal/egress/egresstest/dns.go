// Package egresstest provides a name server for tests. It can return false addresses, and
// change its answers.
package egresstest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Answers maps each name to a list of answers. Each question gets the next answer, and the last
// answer repeats. Other names do not exist.
type Answers map[string][][]netip.Addr

// Resolver starts a name server with these answers. It returns a resolver that only asks this
// server.
func Resolver(t testing.TB, answers Answers) *net.Resolver {
	t.Helper()
	asked := map[dnsmessage.Question]int{}
	return At(Serve(t, func(q dnsmessage.Question) ([]netip.Addr, dnsmessage.RCode) {
		list, ok := answers[strings.TrimSuffix(q.Name.String(), ".")]
		if !ok {
			return nil, dnsmessage.RCodeNameError
		}
		// The two questions of one lookup, A and AAAA, get the same answer.
		turn := asked[q]
		asked[q]++
		return list[min(turn, len(list)-1)], dnsmessage.RCodeSuccess
	}))
}

// At returns a resolver that only asks the name server at an address.
func At(addr string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", addr)
	}}
}

// Serve starts a name server on loopback that runs until the test ends, and returns its
// address. It calls answer for one question at a time.
func Serve(t testing.TB, answer func(dnsmessage.Question) ([]netip.Addr, dnsmessage.RCode)) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			var list []netip.Addr
			list, m.RCode = answer(q)
			for _, a := range list {
				rh := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				switch {
				case q.Type == dnsmessage.TypeA && a.Is4():
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: rh, Body: &dnsmessage.AResource{A: a.As4()}})
				case q.Type == dnsmessage.TypeAAAA && a.Is6():
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: rh, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
				}
			}
			if out, err := m.Pack(); err == nil {
				conn.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return conn.LocalAddr().String()
}

// Addrs returns one answer with these addresses.
func Addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
