package mailtest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"sync"
)

// Options configures a Server. Zero fields mean the defaults.
type Options struct {
	// TLS makes the server speak TLS from the first byte (smtps).
	TLS bool
	// If User is not empty, a client must authenticate with User and Password before it sends a
	// mail.
	User, Password string
	// Names are the names in the certificate. The default is localhost, 127.0.0.1 and ::1.
	Names []string
	// Address is the address to listen on. The default is a free port of 127.0.0.1.
	Address string
}

// Behaviour describes faults of the server. The zero value has none.
type Behaviour struct {
	NoStartTLS bool // STARTTLS is not offered, as if an attacker had removed the offer
	NoAuth     bool // AUTH is not offered
	Login      bool // LOGIN is offered instead of PLAIN
	Greedy     bool // LOGIN asks one more question
	// Answers replace the usual answers, by command such as "RCPT". The key "" means the
	// greeting, and "." the end of a mail.
	Answers map[string]string
	// Stall is a channel that the server waits for before it answers the command Stalled.
	Stall   <-chan struct{}
	Stalled string
	// Garbage is the number of bytes, without a line end, that the server sends before its
	// greeting.
	Garbage int
}

// Mail is a mail that arrived.
type Mail struct {
	From, To string // the addresses in the envelope
	Raw      string // the mail with dots unstuffed
	TLS      bool
	User     string // the authenticated user
}

// Message parses the mail.
func (m Mail) Message() (*mail.Message, error) { return mail.ReadMessage(strings.NewReader(m.Raw)) }

// Server is a running server. It is safe for concurrent use.
type Server struct {
	// Address is the host and the port of the server.
	Address string
	// CAs holds the authority that signed the server's certificate.
	CAs *x509.CertPool
	// CA is the same authority in PEM.
	CA []byte

	o   Options
	l   net.Listener
	tls *tls.Config

	mu        sync.Mutex
	behaviour Behaviour
	mails     []Mail
	arrived   chan struct{} // closed and replaced when a mail arrives
	commands  []string
	conns     map[net.Conn]bool
	closed    chan struct{}
	once      sync.Once
	wg        sync.WaitGroup
}

// New starts a server. Close ends it.
func New(o Options) *Server {
	if len(o.Names) == 0 {
		o.Names = []string{"localhost", "127.0.0.1", "::1"}
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	s := &Server{o: o, conns: map[net.Conn]bool{}, closed: make(chan struct{}), arrived: make(chan struct{})}
	s.tls, s.CAs, s.CA = certificate(o.Names)
	var err error
	if s.l, err = net.Listen("tcp", o.Address); err != nil {
		panic(fmt.Sprintf("mailtest: %v", err))
	}
	s.Address = s.l.Addr().String()
	s.wg.Go(s.accept)
	return s
}

// URL returns the server's address in the form of the configuration, with the user and the
// password.
func (s *Server) URL() string {
	scheme, user := "smtp://", ""
	if s.o.TLS {
		scheme = "smtps://"
	}
	if s.o.User != "" {
		user = url.UserPassword(s.o.User, s.o.Password).String() + "@"
	}
	return scheme + user + s.Address
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Behave sets the behaviour of the server from now on.
func (s *Server) Behave(b Behaviour) { s.mu.Lock(); s.behaviour = b; s.mu.Unlock() }

// Mails returns the mails that arrived, oldest first.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Wait returns the n-th mail (from 1) after it has arrived. It returns false if done is
// closed first.
func (s *Server) Wait(n int, done <-chan struct{}) (Mail, bool) {
	for {
		s.mu.Lock()
		arrived := s.arrived
		if len(s.mails) >= n {
			defer s.mu.Unlock()
			return s.mails[n-1], true
		}
		s.mu.Unlock()
		select {
		case <-arrived:
		case <-done:
			return Mail{}, false
		}
	}
}

// Commands returns every line that arrived outside of a mail, without credentials.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

func (s *Server) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			defer func() {
				c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			}()
			s.serve(c)
		})
	}
}

func (s *Server) serve(c net.Conn) {
	k := &conversation{s: s}
	if s.o.TLS {
		t := tls.Server(c, s.tls)
		if t.Handshake() != nil {
			return
		}
		c, k.secure = t, true
	}
	k.use(c)
	s.mu.Lock()
	garbage := s.behaviour.Garbage
	s.mu.Unlock()
	if garbage > 0 {
		io.Copy(c, io.LimitReader(endless{}, int64(garbage)))
	}
	if !k.say("", "220 mail.test ESMTP") {
		return
	}
	for k.next() {
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

type conversation struct {
	s      *Server
	c      net.Conn
	r      *bufio.Reader
	secure bool
	user   string
	mail   Mail
}

func (k *conversation) use(c net.Conn) { k.c, k.r = c, bufio.NewReader(c) }

// say sends the answer to a command. It reports whether it sent a positive answer.
func (k *conversation) say(command, text string) bool {
	k.s.mu.Lock()
	b := k.s.behaviour
	k.s.mu.Unlock()
	if b.Stall != nil && b.Stalled == command {
		select {
		case <-b.Stall:
		case <-k.s.closed:
			return false
		}
	}
	if other, ok := b.Answers[command]; ok {
		text = other
	}
	_, err := io.WriteString(k.c, text+"\r\n")
	return err == nil && text[0] < '4'
}

func (k *conversation) next() bool {
	line, err := k.r.ReadString('\n')
	if err != nil || len(line) > 2048 {
		return false
	}
	line = strings.TrimRight(line, "\r\n")
	command, rest, _ := strings.Cut(line, " ")
	command = strings.ToUpper(command)
	shown := line
	if command == "AUTH" {
		shown = "AUTH"
	}
	k.s.mu.Lock()
	b := k.s.behaviour
	k.s.commands = append(k.s.commands, shown)
	k.s.mu.Unlock()
	switch command {
	case "EHLO", "HELO":
		k.mail = Mail{}
		text := "250-mail.test"
		if !k.secure && !b.NoStartTLS {
			text += "\r\n250-STARTTLS"
		}
		if k.s.o.User != "" && !b.NoAuth {
			text += "\r\n250-AUTH " + map[bool]string{false: "PLAIN", true: "LOGIN XOAUTH2"}[b.Login]
		}
		k.say(command, text+"\r\n250 8BITMIME")
	case "STARTTLS":
		if k.secure || b.NoStartTLS {
			return k.say(command, "502 not here")
		}
		if !k.say(command, "220 go ahead") {
			return true
		}
		t := tls.Server(k.c, k.s.tls)
		if t.Handshake() != nil {
			return false
		}
		k.secure = true
		k.use(t)
	case "AUTH":
		if !k.authentic(rest, b) {
			k.say(command, "535 5.7.8 SECRET-DETAIL: authentication failed")
			return true
		}
		if k.say(command, "235 welcome") {
			k.user = k.s.o.User
		}
	case "MAIL":
		if k.s.o.User != "" && k.user == "" {
			k.say(command, "530 5.7.0 authenticate first")
			return true
		}
		if k.say(command, "250 ok") {
			k.mail.From = address(rest, "FROM:")
		}
	case "RCPT":
		if k.mail.From == "" {
			k.say(command, "503 MAIL first")
			return true
		}
		if k.say(command, "250 ok") {
			k.mail.To = address(rest, "TO:")
		}
	case "DATA":
		if k.mail.To == "" {
			k.say(command, "503 RCPT first")
			return true
		}
		return !k.say(command, "354 go ahead") || k.data()
	case "RSET", "NOOP":
		k.mail = Mail{}
		k.say(command, "250 ok")
	case "QUIT":
		k.say(command, "221 bye")
		return false
	default:
		k.say(command, "500 what?")
	}
	return true
}

// authentic reports whether an AUTH command has the right user and password.
func (k *conversation) authentic(rest string, b Behaviour) bool {
	want, got := "\x00"+k.s.o.User+"\x00"+k.s.o.Password, ""
	if !b.Login {
		response, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
		return err == nil && string(response) == want
	}
	questions := []string{"Username:", "Password:"}
	if b.Greedy {
		questions = append(questions, "Mother's maiden name:")
	}
	for _, q := range questions {
		if _, err := io.WriteString(k.c, "334 "+base64.StdEncoding.EncodeToString([]byte(q))+"\r\n"); err != nil {
			return false
		}
		line, err := k.r.ReadString('\n')
		if err != nil {
			return false
		}
		response, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil {
			return false
		}
		got += "\x00" + string(response)
	}
	return rest == "LOGIN" && got == want
}

// data reads a mail up to the line with a dot (RFC 5321 section 4.5.2).
func (k *conversation) data() bool {
	var raw strings.Builder
	for {
		line, err := k.r.ReadString('\n')
		if err != nil || raw.Len() > 1<<20 {
			return false
		}
		if line == ".\r\n" {
			break
		}
		raw.WriteString(strings.TrimPrefix(line, "."))
	}
	m := k.mail
	k.mail = Mail{}
	m.Raw, m.TLS, m.User = raw.String(), k.secure, k.user
	if !k.say(".", "250 queued") {
		return true
	}
	k.s.mu.Lock()
	k.s.mails = append(k.s.mails, m)
	close(k.s.arrived)
	k.s.arrived = make(chan struct{})
	k.s.mu.Unlock()
	return true
}

func address(rest, prefix string) string {
	if len(rest) < len(prefix) || !strings.EqualFold(rest[:len(prefix)], prefix) {
		return ""
	}
	a, _, _ := strings.Cut(strings.TrimPrefix(rest[len(prefix):], "<"), ">")
	return a
}
