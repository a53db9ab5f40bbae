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

// maxAnswers is the maximum size in bytes of all answers of a server to one mail.
const maxAnswers = 64 << 10

// deliver sends a message over its own connection. The connection ends with ctx.
func (m *Mailer) deliver(ctx context.Context, to string, message []byte) (err error) {
	conn, err := m.dial(ctx, "tcp", m.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	// When the context ends, end reads and writes that are waiting.
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
	// Nobody can listen between two programs on one machine, and a local server's
	// certificate usually has another name. A password still needs TLS.
	if !secure && (!own || m.user != "") {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			// An attacker on the network can remove the offer (RFC 3207 section 6).
			return errors.New("the server does not offer STARTTLS")
		}
		if err := c.StartTLS(m.tls.Clone()); err != nil {
			return fmt.Errorf("STARTTLS: %w", err)
		}
		secure = true
	}
	if m.user != "" {
		if !secure {
			return errors.New("a password is sent only over TLS")
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
	// The server has accepted the mail, so later errors do not matter.
	_ = c.Quit()
	return nil
}

// login implements the mechanism LOGIN. It sends the user and the password when the server
// asks for each. No RFC defines LOGIN, but some servers offer nothing else, such as Office
// 365.
type login struct {
	user, password string
	asked          int
}

// Start implements smtp.Auth.
func (l *login) Start(s *smtp.ServerInfo) (string, []byte, error) {
	if !s.TLS {
		return "", nil, errors.New("a password is sent only over TLS")
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

// bounded ends a connection when the server has sent too much.
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
