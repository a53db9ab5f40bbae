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

// Options configure a Mailer. Zero fields take the defaults.
type Options struct {
	// URL is the mail server: smtps://user:password@host (TLS from the first byte,
	// port 465) or smtp://user:password@host (STARTTLS, port 587).
	URL string
	// From is the sender, such as Satchel <satchel@example.com>.
	From string
	// Password is the user's, where it is not in URL.
	Password string
	// RootCAs are the authorities whose certificate the server may have; default
	// the machine's.
	RootCAs *x509.CertPool
	// Timeout bounds one mail, from dialling to the server's last answer; default
	// 30 seconds.
	Timeout time.Duration
	// MaxText bounds a text in bytes; default 64 KiB.
	MaxText int
	// Hello is what the mailer calls itself to the server; default the domain of
	// From.
	Hello  string
	Logger *slog.Logger
	Now    func() time.Time
}

// Mailer sends mail through one server, with a connection for each. It is safe
// for concurrent use.
type Mailer struct {
	o        Options
	implicit bool   // TLS from the first byte
	host     string // that the certificate must name
	address  string // to dial
	user     string // empty: no authentication
	password string
	from     *netmail.Address
	domain   string // of from
	tls      *tls.Config
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a Mailer without a connection to the server. The error says what is
// wrong with the options, without the password.
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
		// The parser's error would repeat the password.
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
		return nil, fmt.Errorf("mail: %q is no name of a host", m.o.Hello)
	}
	m.tls = &tls.Config{ServerName: m.host, RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}
	return m, nil
}

// maxReason bounds, in bytes, what of a server's answer the log has.
const maxReason = 1000

// Send sends a text in UTF-8 to one address, which may be anything that somebody
// typed. The error is a fault: Invalid where the address is none or the subject
// cannot be one, TooLarge, Unavailable where the mail server did not take it
// (whether for the recipient or another reason is not said, since it would tell
// strangers who has an address), Canceled.
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

// checkAddress returns the domain of an address that can go into an SMTP command
// and a header as it is: a dot-atom, an @ and a name (RFC 5321 section 4.1.2),
// without quotes, comments or other letters than ASCII's.
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

// atext are the characters of RFC 5322 section 3.2.3.
func atext(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 0x80 && r > 0 && strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

// wireName reports whether s is a name of a host in letters, digits and hyphens.
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
