package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/smtp"
	"slices"
	"strings"
	"time"
)

// maxAnswers bounds, in bytes, what a server may say while one mail is sent.
const maxAnswers = 64 << 10

// deliver sends a message over a connection of its own, which ends with ctx.
func (m *Mailer) deliver(ctx context.Context, to string, message []byte) (err error) {
	conn, err := m.dial(ctx, "tcp", m.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A read or a write that waits ends when the context does.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	own := loopback(conn.RemoteAddr())
	var wire net.Conn = &bounded{Conn: conn, left: maxAnswers}
	secure := m.implicit
	if m.implicit {
		t := tls.Client(wire, m.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
		wire = t
	}
	c, err := smtp.NewClient(wire, m.host)
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if err := c.Hello(m.o.Hello); err != nil {
		return fmt.Errorf("EHLO: %w", err)
	}
	// Between two programs of one machine nobody listens, and the certificate of a
	// server there names something else as a rule; a password is another matter.
	if !secure && (!own || m.user != "") {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			// Whoever is on the way can take the offer out (RFC 3207 section 6).
			return errors.New("the server does not offer STARTTLS")
		}
		if err := c.StartTLS(m.tls.Clone()); err != nil {
			return fmt.Errorf("STARTTLS: %w", err)
		}
		secure = true
	}
	if m.user != "" {
		if !secure {
			return errors.New("a password is sent over TLS alone")
		}
		_, offered := c.Extension("AUTH")
		var how smtp.Auth
		switch mechanisms := strings.Fields(strings.ToUpper(offered)); {
		case slices.Contains(mechanisms, "PLAIN"):
			how = smtp.PlainAuth("", m.user, m.password, m.host)
		case slices.Contains(mechanisms, "LOGIN"):
			how = &login{user: m.user, password: m.password}
		default:
			return fmt.Errorf("the server takes no user and password: it offers %q", offered)
		}
		if err := c.Auth(how); err != nil {
			return fmt.Errorf("AUTH: %w", err)
		}
	}
	if err := c.Mail(m.from.Address); err != nil {
		return fmt.Errorf("MAIL: %w", err)
	}
	if err := c.Rcpt(to); err != nil {
		return fmt.Errorf("RCPT: %w", err)
	}
	w, err := c.Data()
	if err != nil {
		return fmt.Errorf("DATA: %w", err)
	}
	if _, err := w.Write(message); err != nil {
		return fmt.Errorf("DATA: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("end of DATA: %w", err)
	}
	// The mail is the server's now: what goes wrong from here does not matter.
	_ = c.Quit()
	return nil
}

// login is the mechanism LOGIN, which no RFC has and which is all that some
// servers offer, such as Office 365: the user and the password, each when asked.
type login struct {
	user, password string
	asked          int
}

// Start implements smtp.Auth.
func (l *login) Start(s *smtp.ServerInfo) (string, []byte, error) {
	if !s.TLS {
		return "", nil, errors.New("a password is sent over TLS alone")
	}
	return "LOGIN", nil, nil
}

// Next implements smtp.Auth.
func (l *login) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	l.asked++
	switch l.asked {
	case 1:
		return []byte(l.user), nil
	case 2:
		return []byte(l.password), nil
	}
	return nil, errors.New("the server asks for more than a user and a password")
}

// bounded ends a connection over which a server says too much.
type bounded struct {
	net.Conn
	left int
}

// Read implements net.Conn.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server said more than %d bytes: %w", maxAnswers, io.ErrShortBuffer)
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
