package mail

import (
	"context"
	"net"
	"strings"
	"testing"

	"satchel/auth/mail/mailtest"
	"satchel/internal/fault"
)

// elsewhere is a connection that looks as if its server were on another machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 587} }

func TestOnlyThisMachineMayDoWithoutTLS(t *testing.T) {
	s := mailtest.New(mailtest.Options{})
	t.Cleanup(s.Close)
	m, err := New(Options{URL: s.URL(), From: "satchel@example.com", RootCAs: s.CAs})
	if err != nil {
		t.Fatal(err)
	}
	m.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return elsewhere{c}, err
	}
	if err := m.Send(t.Context(), "ada@example.org", "s", "t"); err != nil {
		t.Fatal(err)
	}
	if got := s.Mails(); len(got) != 1 || !got[0].TLS {
		t.Fatalf("got %+v", got)
	}
	s.Behave(mailtest.Behaviour{NoStartTLS: true})
	err = m.Send(t.Context(), "ada@example.org", "s", "t")
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("got %v", err)
	}
	if got := s.Mails(); len(got) != 1 {
		t.Errorf("a mail came: %+v", got[1:])
	}
}
