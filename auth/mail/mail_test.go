package mail_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth/mail"
	"satchel/auth/mail/mailtest"
	"satchel/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	server *mailtest.Server
	log    *bytes.Buffer
	mailer *mail.Mailer
}

func setup(t *testing.T, server mailtest.Options, edit func(*mail.Options)) *world {
	t.Helper()
	w := &world{server: mailtest.New(server), log: &bytes.Buffer{}}
	t.Cleanup(w.server.Close)
	o := mail.Options{
		URL: w.server.URL(), From: "Satchel of Zoë <satchel@example.com>", RootCAs: w.server.CAs,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)), Now: func() time.Time { return time.Date(2030, 5, 1, 12, 0, 0, 0, time.FixedZone("", 7200)) },
	}
	if edit != nil {
		edit(&o)
	}
	var err error
	if w.mailer, err = mail.New(o); err != nil {
		t.Fatal(err)
	}
	return w
}

func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v (%s), want a fault of %s", err, fault.CodeOf(err), code)
	}
	if p := fault.PublicOf(err); strings.Contains(p, "SECRET") || !strings.HasSuffix(p, ".") {
		t.Errorf("the public message is %q", p)
	}
}

func TestDelivers(t *testing.T) {
	for _, c := range []struct {
		name      string
		server    mailtest.Options
		behaviour mailtest.Behaviour
		edit      func(*mail.Options)
		tls       bool
		user      string
	}{
		{name: "TLS from the first byte", server: mailtest.Options{TLS: true}, tls: true},
		{name: "TLS from the first byte, with a password", server: mailtest.Options{TLS: true, User: "ada", Password: "s3cret"}, tls: true, user: "ada"},
		{name: "STARTTLS, with a password", server: mailtest.Options{User: "ada", Password: "s3cret"}, tls: true, user: "ada"},
		{name: "a password that is not in the address", server: mailtest.Options{User: "ada", Password: "s3cret"}, tls: true, user: "ada", edit: func(o *mail.Options) {
			o.URL, o.Password = strings.Replace(o.URL, ":s3cret", "", 1), "s3cret"
		}},
		{name: "a server that knows LOGIN alone", server: mailtest.Options{User: "ada", Password: "s3cret"}, behaviour: mailtest.Behaviour{Login: true}, tls: true, user: "ada"},
		{name: "this machine, without a password", server: mailtest.Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, c.server, c.edit)
			w.server.Behave(c.behaviour)
			if err := w.mailer.Send(t.Context(), "ada@example.org", "Sign in to Satchel", "Open https://satchel.example/signin/link/abc=def\n"); err != nil {
				t.Fatal(err)
			}
			got := w.server.Mails()
			if len(got) != 1 || got[0].From != "satchel@example.com" || got[0].To != "ada@example.org" || got[0].TLS != c.tls || got[0].User != c.user {
				t.Fatalf("got %+v", got)
			}
			if commands := w.server.Commands(); commands[0] != "EHLO example.com" || commands[len(commands)-1] != "QUIT" {
				t.Errorf("the commands were %q", commands)
			}
		})
	}
}

func text(t *testing.T, m mailtest.Mail) (header map[string][]string, body string) {
	t.Helper()
	p, err := m.Message()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(quotedprintable.NewReader(p.Body))
	if err != nil {
		t.Fatal(err)
	}
	return p.Header, string(b)
}

func TestTheMessage(t *testing.T) {
	w := setup(t, mailtest.Options{}, nil)
	long := strings.Repeat("lang ", 300)
	for _, c := range []struct{ name, subject, text, want string }{
		{"plain", "Sign in", "Hello", "Hello\r\n"},
		{"other letters", "Zoë lädt dich ein: 你好", "Grüße, 你好\n", "Grüße, 你好\r\n"},
		{"a long subject of other letters", strings.Repeat("é", 100), "x\n", "x\r\n"},
		{"attack: a subject that looks like another, encoded", "=?utf-8?q?Your_account=0A=0AClick?=", "x\n", "x\r\n"},
		{"attack: a dot alone ends no mail", "s", "one\n.\nQUIT\n..two\n.three\n", "one\r\n.\r\nQUIT\r\n..two\r\n.three\r\n"},
		{"line ends of every kind", "s", "a\r\nb\rc\n", "a\r\nb\r\nc\r\n"},
		{"a long line", "s", long + "\n", long + "\r\n"},
		{"spaces and equal signs", "s", "a=3D b = \n \n", "a=3D b = \r\n \r\n"},
		{"nothing", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(w.server.Mails())
			if err := w.mailer.Send(t.Context(), "ada@example.org", c.subject, c.text); err != nil {
				t.Fatal(err)
			}
			got := w.server.Mails()
			if len(got) != before+1 {
				t.Fatalf("%d mails came", len(got)-before)
			}
			m := got[before]
			header, body := text(t, m)
			if body != c.want {
				t.Errorf("the text is %q, want %q", body, c.want)
			}
			subject, err := new(mime.WordDecoder).DecodeHeader(header["Subject"][0])
			if err != nil || subject != c.subject {
				t.Errorf("the subject is %q, %v", subject, err)
			}
			for name, want := range map[string]string{
				"To": "<ada@example.org>", "Date": "Wed, 01 May 2030 10:00:00 +0000", "Mime-Version": "1.0",
				"Content-Type": "text/plain; charset=utf-8", "Content-Transfer-Encoding": "quoted-printable", "Auto-Submitted": "auto-generated",
			} {
				if !slices.Equal(header[name], []string{want}) {
					t.Errorf("%s is %q, want %q", name, header[name], want)
				}
			}
			from, err := new(mime.WordDecoder).DecodeHeader(header["From"][0])
			if err != nil || !strings.Contains(from, "Zoë") || !strings.HasSuffix(from, "<satchel@example.com>") {
				t.Errorf("From is %q, %v", from, err)
			}
			if id := header["Message-Id"][0]; !strings.HasSuffix(id, "@example.com>") || len(id) < 30 {
				t.Errorf("Message-ID is %q", id)
			}
			for line := range strings.SplitSeq(m.Raw, "\r\n") {
				if len(line) > 76 || strings.ContainsAny(line, "\r\n") || strings.ContainsFunc(line, func(r rune) bool { return r > 126 }) {
					t.Errorf("a line is %q", line)
				}
			}
		})
	}
}

func TestInjectionAttacks(t *testing.T) {
	w := setup(t, mailtest.Options{}, nil)
	for _, c := range []struct{ name, to, subject, text string }{
		{"a header in the address", "ada@example.org\r\nBcc: eve@example.org", "s", "t"},
		{"a header in the address after a line feed", "ada@example.org\nBcc: eve@example.org", "s", "t"},
		{"a command in the address", "ada@example.org>\r\nRCPT TO:<eve@example.org", "s", "t"},
		{"a parameter of the command", "ada@example.org> SIZE=1", "s", "t"},
		{"two addresses", "ada@example.org,eve@example.org", "s", "t"},
		{"two addresses and a space", "ada@example.org eve@example.org", "s", "t"},
		{"a group", "all: ada@example.org;", "s", "t"},
		{"a name", "Ada <ada@example.org>", "s", "t"},
		{"quotes", `"ada\" eve"@example.org`, "s", "t"},
		{"a comment", "ada(x)@example.org", "s", "t"},
		{"a source route", "@evil.example:ada@example.org", "s", "t"},
		{"two at signs", "ada@example.org@evil.example", "s", "t"},
		{"a host in brackets", "ada@[127.0.0.1]", "s", "t"},
		{"another letter that looks like an at sign", "ada＠example.org", "s", "t"},
		{"other letters before the at sign", "adé@example.org", "s", "t"},
		{"a NUL", "ada\x00@example.org", "s", "t"},
		{"nothing", "", "s", "t"},
		{"nobody", "@example.org", "s", "t"},
		{"nowhere", "ada@", "s", "t"},
		{"a dot at the end", "ada@example.org.", "s", "t"},
		{"dots in a row", "a..b@example.org", "s", "t"},
		{"a name without end", strings.Repeat("a", 65) + "@example.org", "s", "t"},
		{"a header in the subject", "ada@example.org", "s\r\nBcc: eve@example.org", "t"},
		{"a body in the subject", "ada@example.org", "s\n\nClick here", "t"},
		{"a carriage return in the subject", "ada@example.org", "s\rBcc: x", "t"},
		{"a subject that is no text", "ada@example.org", "s\xff", "t"},
		{"a text that is none", "ada@example.org", "s", "t\xff"},
		{"a text with a NUL", "ada@example.org", "s", "t\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, w.mailer.Send(t.Context(), c.to, c.subject, c.text), fault.Invalid)
		})
	}
	refused(t, w.mailer.Send(t.Context(), "ada@example.org", strings.Repeat("s", 201), "t"), fault.TooLarge)
	refused(t, w.mailer.Send(t.Context(), "ada@example.org", "s", strings.Repeat("t", 64<<10+1)), fault.TooLarge)
	if n := len(w.server.Commands()); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

func TestNothingLeavesWithoutTLS(t *testing.T) {
	nothing := func(t *testing.T, w *world) {
		t.Helper()
		refused(t, w.mailer.Send(t.Context(), "ada@example.org", "s", "t"), fault.Unavailable)
		if mails := w.server.Mails(); len(mails) != 0 {
			t.Errorf("a mail came: %+v", mails)
		}
		for _, c := range w.server.Commands() {
			if verb, _, _ := strings.Cut(c, " "); slices.Contains([]string{"AUTH", "MAIL", "RCPT", "DATA"}, verb) {
				t.Errorf("the server was told %q", c)
			}
		}
	}
	password := mailtest.Options{User: "ada", Password: "s3cret"}
	t.Run("attack: STARTTLS taken out of the offer", func(t *testing.T) {
		w := setup(t, password, nil)
		w.server.Behave(mailtest.Behaviour{NoStartTLS: true})
		nothing(t, w)
	})
	t.Run("attack: STARTTLS refused", func(t *testing.T) {
		w := setup(t, password, nil)
		w.server.Behave(mailtest.Behaviour{Answers: map[string]string{"STARTTLS": "454 not now"}})
		nothing(t, w)
	})
	t.Run("attack: a certificate of an unknown authority, after STARTTLS", func(t *testing.T) {
		w := setup(t, password, func(o *mail.Options) { o.RootCAs = x509.NewCertPool() })
		nothing(t, w)
	})
	t.Run("attack: a certificate of an unknown authority", func(t *testing.T) {
		w := setup(t, mailtest.Options{TLS: true}, func(o *mail.Options) { o.RootCAs = x509.NewCertPool() })
		nothing(t, w)
	})
	t.Run("attack: a certificate for another name", func(t *testing.T) {
		nothing(t, setup(t, mailtest.Options{TLS: true, Names: []string{"mail.example.com"}}, nil))
	})
	t.Run("attack: a certificate for another name, after STARTTLS", func(t *testing.T) {
		nothing(t, setup(t, mailtest.Options{User: "ada", Password: "s3cret", Names: []string{"mail.example.com"}}, nil))
	})
	t.Run("attack: no TLS where it is from the first byte", func(t *testing.T) {
		nothing(t, setup(t, mailtest.Options{}, func(o *mail.Options) { o.URL = strings.Replace(o.URL, "smtp:", "smtps:", 1) }))
	})
	t.Run("attack: LOGIN without TLS", func(t *testing.T) {
		w := setup(t, password, nil)
		w.server.Behave(mailtest.Behaviour{NoStartTLS: true, Login: true})
		nothing(t, w)
	})
	t.Run("no password where none is taken", func(t *testing.T) {
		w := setup(t, password, nil)
		w.server.Behave(mailtest.Behaviour{NoAuth: true})
		nothing(t, w)
	})
}

func TestWhatTheServerSaysIsForTheLog(t *testing.T) {
	for name, b := range map[string]mailtest.Behaviour{
		"the greeting":          {Answers: map[string]string{"": "554 SECRET no service"}},
		"EHLO":                  {Answers: map[string]string{"EHLO": "550 SECRET", "HELO": "550 SECRET"}},
		"the sender":            {Answers: map[string]string{"MAIL": "550 SECRET not you"}},
		"the recipient":         {Answers: map[string]string{"RCPT": "550 SECRET no such user"}},
		"the data":              {Answers: map[string]string{"DATA": "451 SECRET later"}},
		"the end of the data":   {Answers: map[string]string{".": "552 SECRET too much"}},
		"what is no answer":     {Answers: map[string]string{"MAIL": "SECRET hello"}},
		"a line without an end": {Garbage: 10 << 20},
		"lines without an end":  {Answers: map[string]string{"EHLO": strings.Repeat("250-X SECRET\r\n", 10_000) + "250 8BITMIME"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t, mailtest.Options{}, nil)
			w.server.Behave(b)
			err := w.mailer.Send(t.Context(), "ada@example.org", "s", "t")
			refused(t, err, fault.Unavailable)
			if !strings.HasSuffix(name, "an end") && !strings.Contains(w.log.String(), "SECRET") {
				t.Errorf("the log does not say it: %s", w.log)
			}
			if n := w.log.Len(); n > 2000 || len(err.Error()) > 2000 {
				t.Errorf("the log has %d bytes", n)
			}
			if len(w.server.Mails()) != 0 {
				t.Error("a mail came")
			}
		})
	}
	t.Run("a wrong password", func(t *testing.T) {
		w := setup(t, mailtest.Options{User: "ada", Password: "right"}, func(o *mail.Options) { o.URL = strings.Replace(o.URL, ":right@", ":wr0ng-pw@", 1) })
		err := w.mailer.Send(t.Context(), "ada@example.org", "s", "t")
		refused(t, err, fault.Unavailable)
		if strings.Contains(w.log.String(), "wr0ng-pw") || strings.Contains(err.Error(), "wr0ng-pw") {
			t.Error("the password is in the log or the error")
		}
	})
	t.Run("a server that asks for more than a password", func(t *testing.T) {
		w := setup(t, mailtest.Options{User: "ada", Password: "right"}, nil)
		w.server.Behave(mailtest.Behaviour{Login: true, Greedy: true})
		refused(t, w.mailer.Send(t.Context(), "ada@example.org", "s", "t"), fault.Unavailable)
	})
	t.Run("a recipient that is refused looks like a server that is down", func(t *testing.T) {
		w := setup(t, mailtest.Options{}, nil)
		w.server.Behave(mailtest.Behaviour{Answers: map[string]string{"RCPT": "550 no such user"}})
		one := w.mailer.Send(t.Context(), "ada@example.org", "s", "t")
		w.server.Behave(mailtest.Behaviour{Answers: map[string]string{"": "421 down"}})
		other := w.mailer.Send(t.Context(), "ada@example.org", "s", "t")
		if fault.PublicOf(one) != fault.PublicOf(other) || fault.CodeOf(one) != fault.CodeOf(other) {
			t.Errorf("%v and %v", one, other)
		}
	})
}

func TestASlowServer(t *testing.T) {
	for _, command := range []string{"", "EHLO", "MAIL", "RCPT", "DATA", "."} {
		t.Run("times out at "+command, func(t *testing.T) {
			w := setup(t, mailtest.Options{}, func(o *mail.Options) { o.Timeout = 50 * time.Millisecond })
			w.server.Behave(mailtest.Behaviour{Stall: make(chan struct{}), Stalled: command})
			refused(t, w.mailer.Send(t.Context(), "ada@example.org", "s", "t"), fault.Unavailable)
		})
	}
	t.Run("ends with its caller", func(t *testing.T) {
		w := setup(t, mailtest.Options{}, func(o *mail.Options) { o.Timeout = time.Hour })
		w.server.Behave(mailtest.Behaviour{Stall: make(chan struct{})})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		refused(t, w.mailer.Send(ctx, "ada@example.org", "s", "t"), fault.Canceled)
	})
	t.Run("times out over TLS", func(t *testing.T) {
		w := setup(t, mailtest.Options{TLS: true}, func(o *mail.Options) { o.Timeout = 50 * time.Millisecond })
		w.server.Behave(mailtest.Behaviour{Stall: make(chan struct{})})
		refused(t, w.mailer.Send(t.Context(), "ada@example.org", "s", "t"), fault.Unavailable)
	})
	t.Run("none at all", func(t *testing.T) {
		other := mailtest.New(mailtest.Options{})
		address := other.URL()
		other.Close()
		m, err := mail.New(mail.Options{URL: address, From: "satchel@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		refused(t, m.Send(t.Context(), "ada@example.org", "s", "t"), fault.Unavailable)
	})
}

func TestOptionsThatCannotWork(t *testing.T) {
	for name, o := range map[string]mail.Options{
		"no address":             {From: "a@example.com"},
		"another scheme":         {URL: "https://mail.example.com", From: "a@example.com"},
		"no host":                {URL: "smtps://:465", From: "a@example.com"},
		"a port that is none":    {URL: "smtps://u:hunter2@mail.example.com:x", From: "a@example.com"},
		"no sender":              {URL: "smtps://mail.example.com"},
		"a sender of two lines":  {URL: "smtps://mail.example.com", From: "a@example.com\r\nBcc: b@example.com"},
		"two senders":            {URL: "smtps://mail.example.com", From: "a@example.com, b@example.com"},
		"a sender in quotes":     {URL: "smtps://mail.example.com", From: `"a b"@example.com`},
		"a name that is none":    {URL: "smtps://mail.example.com", From: "a@example.com", Hello: "x\r\nMAIL FROM:<b>"},
		"a NUL in the user":      {URL: "smtps://a%00b:hunter2@mail.example.com", From: "a@example.com"},
		"a line in the password": {URL: "smtps://u@mail.example.com", From: "a@example.com", Password: "hunter2\n"},
	} {
		_, err := mail.New(o)
		if err == nil {
			t.Errorf("%s: it was taken", name)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
}
