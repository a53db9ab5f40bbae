// Package egresstest provides a name server for tests. It can return false addresses, and
// change its answers.
package egresstest

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

type server struct {
	mu      sync.Mutex
	answers Answers
	asked   map[string]int
}

// Answers maps each name to a list of answers. Each question gets the next answer, and the last
// one repeats. Other names do not exist.
type Answers map[string][][]netip.Addr

// Resolver starts a name server on loopback that runs until the test ends. It returns a
// resolver that only asks this server.
func Resolver(t testing.TB, answers Answers) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &server{answers: answers, asked: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if out := d.answer(buf[:n]); out != nil {
				conn.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var nd net.Dialer
		return nd.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (d *server) answer(question []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(question)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name := q.Name.String()
	name = name[:len(name)-1]
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true}, Questions: []dnsmessage.Question{q}}
	d.mu.Lock()
	defer d.mu.Unlock()
	list, ok := d.answers[name]
	if !ok {
		out.RCode = dnsmessage.RCodeNameError
	} else {
		// The two questions of one lookup, A and AAAA, get the same answer.
		turn := d.asked[name+"/"+q.Type.String()]
		d.asked[name+"/"+q.Type.String()]++
		for _, a := range list[min(turn, len(list)-1)] {
			rh := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0}
			switch {
			case q.Type == dnsmessage.TypeA && a.Is4():
				out.Answers = append(out.Answers, dnsmessage.Resource{Header: rh, Body: &dnsmessage.AResource{A: a.As4()}})
			case q.Type == dnsmessage.TypeAAAA && a.Is6():
				out.Answers = append(out.Answers, dnsmessage.Resource{Header: rh, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
	}
	b, err := out.Pack()
	if err != nil {
		return nil
	}
	return b
}

// Addrs returns one answer.
func Addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
