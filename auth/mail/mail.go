package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"satchel/internal/fault"
)

// Options configures a Mailer. Zero fields mean the defaults.
type Options struct {
	// URL is the address of the mail server: smtps://user:password@host (TLS from the first
	// byte, port 465) or smtp://user:password@host (STARTTLS, port 587).
	URL string
	// From is the sender, such as Satchel <satchel@example.com>.
	From string
	// Password is the user's password, if URL does not contain it.
	Password string
	// RootCAs are the authorities that may sign the server's certificate. The default is
	// those of the machine.
	RootCAs *x509.CertPool
	// Timeout is the maximum time of one mail, from the connection to the server's last
	// answer. The default is 30 seconds.
	Timeout time.Duration
	// MaxText is the maximum size of a text in bytes. The default is 64 KiB.
	MaxText int
	// Hello is the name that the mailer gives to the server. The default is the domain of
	// From.
	Hello  string
	Logger *slog.Logger
	Now    func() time.Time
}

// Mailer sends mail through one server, with one connection for each mail. It is safe for
// concurrent use.
type Mailer struct {
	o        Options
	implicit bool   // TLS from the first byte
	host     string // the name in the certificate
	address  string // the address to connect to
	user     string // empty for no authentication
	password string
	from     *netmail.Address
	domain   string // the domain of from
	tls      *tls.Config
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a Mailer. It does not connect to the server. If the options are invalid, it
// returns an error, which does not contain the password.
func New(o Options) (*Mailer, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxText == 0 {
		o.MaxText = 64 << 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		// The parser's error would contain the password.
		return nil, errors.New("mail: the server's address must be of the form smtps://user@host or smtp://user@host:587")
	}
	m := &Mailer{o: o, implicit: u.Scheme == "smtps", host: u.Hostname(), user: u.User.Username(), password: o.Password, dial: new(net.Dialer).DialContext}
	if p, ok := u.User.Password(); ok && m.password == "" {
		m.password = p
	}
	if strings.ContainsAny(m.user+m.password, "\x00\r\n") {
		return nil, errors.New("mail: the user or the password has characters that SMTP cannot carry")
	}
	port := u.Port()
	switch {
	case port != "":
	case m.implicit:
		port = "465"
	default:
		port = "587"
	}
	m.address = net.JoinHostPort(m.host, port)
	if m.from, err = netmail.ParseAddress(o.From); err != nil {
		return nil, fmt.Errorf("mail: the sender %q must be an address such as Satchel <satchel@example.com>", o.From)
	}
	if m.domain, err = checkAddress(m.from.Address); err != nil {
		return nil, fmt.Errorf("mail: the sender %q: %w", o.From, err)
	}
	if m.o.Hello == "" {
		m.o.Hello = m.domain
	}
	if !wireName(m.o.Hello) {
		return nil, fmt.Errorf("mail: %q is not a host name", m.o.Hello)
	}
	m.tls = &tls.Config{ServerName: m.host, RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}
	return m, nil
}

// maxReason is the maximum size in bytes of a server's answer in the log.
const maxReason = 1000

// Send sends a text in UTF-8 to one address. Send checks its arguments, so they may be any input.
// The error is a fault: Invalid for an invalid address, subject or text, TooLarge, Unavailable if
// the mail server did not accept the mail, or Canceled. The error's public message does not say
// whether the server refused the recipient, because strangers could then learn which addresses
// exist.
func (m *Mailer) Send(ctx context.Context, to, subject, text string) error {
	if _, err := checkAddress(to); err != nil {
		return fault.Wrap(fmt.Errorf("mail: %w", err), fault.Invalid, "This is not an e-mail address to which mail can be sent.")
	}
	if len(text) > m.o.MaxText {
		return fault.New(fault.TooLarge, "The mail has %d bytes, and %d are allowed.", len(text), m.o.MaxText)
	}
	message, err := m.compose(to, subject, text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.Timeout)
	defer cancel()
	err = m.deliver(ctx, to, message)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if errors.Is(err, context.Canceled) {
		return fault.Wrap(fmt.Errorf("mail: %w", err), fault.Canceled, "The mail was not sent: it was cancelled.")
	}
	if s := err.Error(); len(s) > maxReason {
		err = errors.New(s[:maxReason] + "…")
	}
	m.o.Logger.Error("a mail could not be sent", "server", m.address, "error", err)
	return fault.Wrap(fmt.Errorf("mail: %w", err), fault.Unavailable, "The mail could not be sent. Please try again later, or tell the people who run this server.")
}

// checkAddress returns the domain of an address that can be part of an SMTP command and a
// header without changes. Such an address has a dot-atom, an @ and a name (RFC 5321 section
// 4.1.2), all in ASCII, without quotes or comments.
func checkAddress(s string) (domain string, err error) {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || len(s) > 254 || len(local) > 64 || !wireName(domain) {
		return "", errors.New("it is not of the form name@example.com")
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || strings.ContainsFunc(atom, func(r rune) bool { return !atext(r) }) {
			return "", errors.New("it has characters that are not allowed before the @")
		}
	}
	return domain, nil
}

// atext reports whether r is one of the characters of RFC 5322 section 3.2.3.
func atext(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 0x80 && r > 0 && strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

// wireName reports whether s is a host name of letters, digits and hyphens.
func wireName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for l := range strings.SplitSeq(s, ".") {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' ||
			strings.ContainsFunc(l, func(r rune) bool {
				return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
			}) {
			return false
		}
	}
	return true
}

func loopback(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}
