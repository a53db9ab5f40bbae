package acme

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serial(m *Manager) int64 {
	if c := m.cert.Load(); c != nil {
		return c.Leaf.SerialNumber.Int64()
	}
	return 0
}

func TestACertificateIsFetchedAtTheStartAndRenewedByTheClock(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, _ := a.open(t.TempDir())
	if _, err := handshake(t, m, &tls.Config{ServerName: domain, InsecureSkipVerify: true}); err == nil {
		t.Error("there is a certificate from nowhere")
	}
	m.Start()
	m.Start() // does nothing
	asleep := c.asleep(t)
	<-m.ready
	if serial(m) != 1 {
		t.Fatal("no certificate when the loop sleeps first")
	}
	s := m.Status()
	if want := c.now().Add(a.validity); !s.NotAfter.Equal(want) || s.Issuer != "CN=Test Authority" || s.LastError != "" || s.Domain != domain {
		t.Errorf("%+v", s)
	}
	// The renewal is due when a third of the life is left, or up to a thirtieth earlier.
	from, to := c.now().Add(57*24*time.Hour), c.now().Add(60*24*time.Hour)
	if s.NextAttempt.Before(from) || s.NextAttempt.After(to) {
		t.Errorf("it is due at %v, not from %v to %v", s.NextAttempt, from, to)
	}
	asleep = c.pass(t, asleep, s.NextAttempt.Sub(c.now())-time.Hour)
	if n, _ := a.count(); n != 1 {
		t.Fatalf("%d orders before it was due", n)
	}
	c.pass(t, asleep, 2*time.Hour)
	if n, accounts := a.count(); n != 2 || accounts != 1 || serial(m) != 2 {
		t.Errorf("%d orders, %d accounts, certificate %d", n, accounts, serial(m))
	}
}

// The machine slept, or somebody set its clock. The loop checks the clock each hour.
func TestSleepingMachinesRenewWhenTheyWake(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, _ := a.open(t.TempDir())
	m.Start()
	if d := c.asleep(t); d > time.Hour {
		t.Fatalf("it sleeps for %v", d)
	}
	c.forward(70 * 24 * time.Hour)
	c.wake <- struct{}{}
	c.asleep(t)
	if serial(m) != 2 {
		t.Error("not renewed")
	}
}

func TestRenewAt(t *testing.T) {
	start := newClock().now()
	for _, tt := range []struct {
		life     time.Duration
		from, to time.Duration
	}{
		{90 * 24 * time.Hour, 57 * 24 * time.Hour, 60 * 24 * time.Hour},
		{45 * 24 * time.Hour, 28*24*time.Hour + 12*time.Hour, 30 * 24 * time.Hour},
		{6 * 24 * time.Hour, 67 * time.Hour, 72 * time.Hour},
	} {
		at := renewAt(&x509.Certificate{NotBefore: start, NotAfter: start.Add(tt.life), Raw: []byte("x")}).Sub(start)
		if at < tt.from || at > tt.to {
			t.Errorf("of %v it is due after %v, not %v to %v", tt.life, at, tt.from, tt.to)
		}
	}
}

func TestARestartAsksNobody(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	dir := t.TempDir()
	m, _ := a.open(dir)
	m.Start()
	c.asleep(t)
	m.Close()
	m.Close() // does nothing
	m.Start() // does nothing

	again, log := a.open(dir)
	if serial(again) != 1 {
		t.Fatalf("the certificate is not there before the start: %s", log)
	}
	<-again.ready
	again.Start()
	c.asleep(t)
	if n, accounts := a.count(); n != 1 || accounts != 1 {
		t.Errorf("%d orders, %d accounts", n, accounts)
	}
	var modes []string
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		i, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		modes = append(modes, i.Mode().String()+" "+strings.TrimPrefix(d.Name(), "127.0.0.1-"))
		if i.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, i.Mode())
		}
		return nil
	})
	if len(modes) != 4 {
		t.Errorf("%q", modes)
	}
}

func TestWhatIsOnDiskIsJudged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, c *clock, file string, a *authority)
	}{
		{"expired", func(_ *testing.T, c *clock, _ string, _ *authority) { c.forward(91 * 24 * time.Hour) }},
		{"cut off", func(t *testing.T, _ *clock, file string, _ *authority) {
			rewrite(t, file, func(s string) string { return s[:len(s)/2] })
		}},
		{"empty", func(t *testing.T, _ *clock, file string, _ *authority) {
			rewrite(t, file, func(string) string { return "" })
		}},
		{"removed", func(t *testing.T, _ *clock, file string, _ *authority) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}},
		{"another key's", func(t *testing.T, _ *clock, file string, _ *authority) {
			account, err := os.ReadFile(filepath.Join(filepath.Dir(file), "account.pem"))
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, file, func(s string) string { return string(account) + s[strings.Index(s, "-----BEGIN CERTIFICATE"):] })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClock()
			a := newAuthority(t, c)
			dir := t.TempDir()
			m, _ := a.open(dir)
			m.Start()
			c.asleep(t)
			m.Close()
			tt.change(t, c, m.certificateFile(), a)
			again, log := a.open(dir)
			if serial(again) != 0 {
				t.Fatalf("it is used: %s", log)
			}
			again.Start()
			c.asleep(t)
			if serial(again) != 2 {
				t.Errorf("no other is asked for: %s", log)
			}
		})
	}
	t.Run("not yet valid by a slow clock", func(t *testing.T) {
		c := newClock()
		a := newAuthority(t, c)
		dir := t.TempDir()
		m, _ := a.open(dir)
		m.Start()
		c.asleep(t)
		m.Close()
		c.forward(-24 * time.Hour)
		again, log := a.open(dir)
		if serial(again) != 1 {
			t.Errorf("each start with a slow clock would ask for another: %s", log)
		}
	})
	t.Run("another authority's", func(t *testing.T) {
		c := newClock()
		staging, real := newAuthority(t, c), newAuthority(t, c)
		dir := t.TempDir()
		m, _ := staging.open(dir)
		m.Start()
		c.asleep(t)
		m.Close()
		again, _ := real.open(dir)
		if serial(again) != 0 {
			t.Error("the staging authority's certificate is served")
		}
	})
}

func rewrite(t *testing.T, file string, change func(string) string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(change(string(b))), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHandshakes(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, _ := a.open(t.TempDir())
	m.Start()
	c.asleep(t)
	for _, tt := range []struct {
		name   string
		config *tls.Config
		ok     bool
		proto  string
	}{
		{"HTTP/2", &tls.Config{ServerName: domain, NextProtos: []string{"h2", "http/1.1"}}, true, "h2"},
		{"HTTP/1.1", &tls.Config{ServerName: domain, NextProtos: []string{"http/1.1"}}, true, "http/1.1"},
		{"no protocol", &tls.Config{ServerName: domain}, true, ""},
		{"upper case", &tls.Config{ServerName: strings.ToUpper(domain)}, true, ""},
		{"TLS 1.2", &tls.Config{ServerName: domain, MaxVersion: tls.VersionTLS12}, true, ""},
		{"TLS 1.1", &tls.Config{ServerName: domain, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false, ""},
		{"attack: no name", &tls.Config{}, false, ""},
		{"attack: another name", &tls.Config{ServerName: "other.example.com"}, false, ""},
		{"attack: a name below", &tls.Config{ServerName: "a." + domain}, false, ""},
		{"attack: the name above", &tls.Config{ServerName: "example.com"}, false, ""},
		{"attack: a challenge while none is under way", &tls.Config{ServerName: domain, NextProtos: []string{"acme-tls/1"}}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.InsecureSkipVerify = true
			s, err := handshake(t, m, tt.config)
			if (err == nil) != tt.ok || s.NegotiatedProtocol != tt.proto && tt.ok {
				t.Errorf("%v, protocol %q", err, s.NegotiatedProtocol)
			}
			if tt.ok && len(s.PeerCertificates) != 2 {
				t.Errorf("%d certificates are sent, not the chain", len(s.PeerCertificates))
			}
		})
	}
	if n, _ := a.count(); n != 1 {
		t.Errorf("handshakes made %d orders", n-1)
	}
}

// Visitors cause no request to the authority while there is no certificate.
func TestAttackVisitorsUseUpNoLimit(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	a.fails[tlsALPN01] = &problem{400, "connection", "refused", ""}
	m, _ := a.open(t.TempDir())
	m.Start()
	c.asleep(t)
	for range 100 {
		if _, err := handshake(t, m, &tls.Config{ServerName: domain, InsecureSkipVerify: true}); err == nil {
			t.Fatal("there is a certificate")
		}
	}
	if n, _ := a.count(); n != 1 {
		t.Errorf("%d orders, not 1", n)
	}
}

func TestPlainHTTP(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, _ := a.open(t.TempDir())
	h := m.HTTPHandler()
	m.challenge.Store(&challenge{path: "/.well-known/acme-challenge/abc", body: "abc.def"})
	for _, tt := range []struct {
		name, method, target, host string
		status                     int
		location, body             string
	}{
		{"a challenge", "GET", "/.well-known/acme-challenge/abc", domain, 200, "", "abc.def"},
		{"another challenge", "GET", "/.well-known/acme-challenge/abd", domain, 404, "", ""},
		{"a page", "GET", "/account?a=b%20c", domain, 301, "https://" + domain + "/account?a=b%20c", ""},
		{"HEAD", "HEAD", "/", domain, 301, "https://" + domain + "/", ""},
		{"attack: another host", "GET", "/", "evil.example.com", 301, "https://" + domain + "/", ""},
		{"attack: two slashes", "GET", "//evil.example.com/", domain, 301, "https://" + domain + "//evil.example.com/", ""},
		{"attack: a whole URL", "GET", "http://evil.example.com/x", domain, 301, "https://" + domain + "/x", ""},
		{"attack: an opaque URL", "GET", "http:.evil.example.com", domain, 301, "https://" + domain + "/", ""},
		{"a token in the clear", "POST", "/mcp", domain, 400, "", "replace the token"},
		{"a challenge by POST", "POST", "/.well-known/acme-challenge/abc", domain, 400, "", ""},
		{"OPTIONS", "OPTIONS", "/mcp", domain, 400, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.target, nil)
			r.Host = tt.host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || w.Header().Get("Location") != tt.location || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("%d %q %q", w.Code, w.Header().Get("Location"), w.Body)
			}
			if w.Header().Get("Strict-Transport-Security") != "" {
				t.Error("HSTS over plain http")
			}
		})
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		o    Options
	}{
		{"no directory", Options{Domain: domain, Dir: t.TempDir(), DirectoryURL: "example.com"}},
		{"no authorities' file", Options{Domain: domain, Dir: t.TempDir(), DirectoryURL: "https://a/b", CAFile: file + "x"}},
		{"no authorities in it", Options{Domain: domain, Dir: t.TempDir(), DirectoryURL: "https://a/b", CAFile: file}},
		{"a file in the way", Options{Domain: domain, Dir: file, DirectoryURL: "https://a/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.o); err == nil {
				t.Error("taken")
			}
		})
	}
}

func TestCloseEndsAnAttempt(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	a.hang = make(chan struct{})
	m, log := a.open(t.TempDir())
	m.Start()
	<-a.hang
	m.Close()
	if strings.Contains(log.String(), "ERROR") {
		t.Errorf("the end is logged as a failure: %s", log)
	}
	a.CloseClientConnections()
}
