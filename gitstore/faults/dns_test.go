//go:build unix

package faults

import (
	"context"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// resolver answers every name with 127.0.0.1, unless refuse says otherwise of
// its first label: with no such name, with a failure, or never.
type resolver struct {
	conn *net.UDPConn
	done chan struct{}
}

type dnsFault int

const (
	dnsFine dnsFault = iota
	dnsUnknown
	dnsFails
)

func newResolver(t testing.TB, refuse func(label string) dnsFault) *resolver {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	r := &resolver{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.serve(refuse)
	}()
	t.Cleanup(func() { conn.Close(); <-r.done })
	return r
}

func (r *resolver) addr() string { return r.conn.LocalAddr().String() }

func (r *resolver) client() *net.Resolver { return resolveAt(r.addr()) }

// resolveAt asks one server for every name.
func resolveAt(addr string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", addr)
	}}
}

func (r *resolver) serve(refuse func(string) dnsFault) {
	buf := make([]byte, 2048)
	for {
		n, from, err := r.conn.ReadFromUDP(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		label, _, _ := strings.Cut(q.Name.String(), ".")
		switch refuse(label) {
		case dnsUnknown:
			m.RCode = dnsmessage.RCodeNameError
		case dnsFails:
			m.RCode = dnsmessage.RCodeServerFailure
		default:
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
		}
		if out, err := m.Pack(); err == nil {
			r.conn.WriteToUDP(out, from)
		}
	}
}
