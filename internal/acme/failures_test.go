package acme

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestChallenges(t *testing.T) {
	refused := &problem{400, "connection", "connection refused", ""}
	for _, tt := range []struct {
		name    string
		plain   bool // reports whether plain http is served
		offered []string
		fails   map[string]*problem
		orders  int
		ok      bool
		says    []string
	}{
		{"https first", true, nil, nil, 1, true, nil},
		{"https alone", false, nil, nil, 1, true, nil},
		{"plain http where https is not reached", true, nil, map[string]*problem{tlsALPN01: refused}, 2, true, nil},
		{"plain http where the authority offers no other", true, []string{http01}, nil, 2, true, nil},
		{"https alone that is not reached", false, nil, map[string]*problem{tlsALPN01: refused}, 1, false, []string{"port 443", "firewall"}},
		{"neither reached", true, nil, map[string]*problem{tlsALPN01: refused, http01: refused}, 2, false, []string{"port 443", "port 80", "connection refused"}},
		{"by DNS alone", true, []string{"dns-01"}, nil, 2, false, []string{"does not check names over port 443"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClock()
			a := newAuthority(t, c)
			if tt.offered != nil {
				a.offered = tt.offered
			}
			if tt.fails != nil {
				a.fails = tt.fails
			}
			m, log := a.open(t.TempDir())
			if tt.plain {
				h := m.HTTPHandler()
				a.set(func() { a.http = h })
			}
			m.Start()
			c.asleep(t)
			if n, _ := a.count(); n != tt.orders || (serial(m) != 0) != tt.ok {
				t.Errorf("%d orders, certificate %d: %s", n, serial(m), log)
			}
			for _, s := range tt.says {
				if !strings.Contains(m.Status().LastError, s) {
					t.Errorf("it does not say %q: %s", s, m.Status().LastError)
				}
			}
			if m.challenge.Load() != nil {
				t.Error("the challenge is still shown")
			}
		})
	}
}

func TestTheWayThatWorkedIsTriedFirst(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	a.fails[tlsALPN01] = &problem{400, "connection", "refused", ""}
	m, _ := a.open(t.TempDir())
	h := m.HTTPHandler()
	a.set(func() { a.http = h })
	m.Start()
	c.pass(t, c.asleep(t), 65*24*time.Hour)
	if n, _ := a.count(); n != 3 || serial(m) != 3 {
		t.Errorf("%d orders, certificate %d", n, serial(m))
	}
}

func TestFailuresAreExplainedAndTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name, step string
		problem    problem
		pause      time.Duration
		says       string
	}{
		{"no DNS record", tlsALPN01, problem{400, "dns", "NXDOMAIN looking up A", ""}, 5 * time.Minute, "A record"},
		{"port closed", tlsALPN01, problem{400, "connection", "timeout", ""}, 5 * time.Minute, "open that port"},
		{"another server", tlsALPN01, problem{403, "unauthorized", "wrong certificate", ""}, 5 * time.Minute, "point here"},
		{"a proxy that ends TLS", tlsALPN01, problem{400, "tls", "no protocol", ""}, 5 * time.Minute, "ends TLS"},
		{"CAA", tlsALPN01, problem{403, "caa", "forbidden", ""}, 5 * time.Minute, "CAA record"},
		{"limit", "order", problem{429, "rateLimited", "too many certificates", "7200"}, 2 * time.Hour, "wait"},
		{"limit without a time", "order", problem{429, "rateLimited", "too many", ""}, 5 * time.Minute, "wait"},
		{"attack: a limit for ever", "order", problem{429, "rateLimited", "too many", "999999999"}, 7 * 24 * time.Hour, "wait"},
		{"refused name", "order", problem{400, "rejectedIdentifier", "blocked", ""}, 5 * time.Minute, "server.domain"},
		{"refused contact", "account", problem{400, "invalidContact", "no such domain", ""}, 5 * time.Minute, "server.acme_email"},
		{"an account by contract", "account", problem{400, "externalAccountRequired", "", ""}, 5 * time.Minute, "beforehand"},
		{"something else", "finalize", problem{403, "badCSR", "weak \x1b[31mkey", ""}, 5 * time.Minute, "weak  [31mkey (badCSR)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClock()
			a := newAuthority(t, c)
			a.fails[tt.step] = &tt.problem
			m, log := a.open(t.TempDir())
			m.Start()
			asleep := c.asleep(t)
			s := m.Status()
			if got := s.NextAttempt.Sub(c.now()); got != tt.pause || s.Failures != 1 || !s.LastFailure.Equal(c.now()) {
				t.Errorf("it is tried again in %v: %+v", got, s)
			}
			if !strings.Contains(s.LastError, tt.says) {
				t.Errorf("it does not say %q: %s", tt.says, s.LastError)
			}
			if !strings.Contains(log.String(), "level=ERROR") || strings.Contains(log.String(), "\x1b") {
				t.Errorf("the log: %s", log)
			}
			a.set(func() { delete(a.fails, tt.step) })
			c.pass(t, asleep, tt.pause)
			if s := m.Status(); serial(m) == 0 || s.LastError != "" || s.Failures != 0 || !s.LastFailure.IsZero() {
				t.Errorf("after it: %+v", s)
			}
		})
	}
}

func TestPausesGrow(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	a.fails[tlsALPN01] = &problem{400, "dns", "", ""}
	m, _ := a.open(t.TempDir())
	m.Start()
	asleep := c.asleep(t)
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 360, 360} {
		want *= time.Minute
		if got := m.Status().NextAttempt.Sub(c.now()); got != want {
			t.Errorf("after failure %d it waits %v, not %v", i+1, got, want)
		}
		asleep = c.pass(t, asleep, m.Status().NextAttempt.Sub(c.now()))
	}
}

// If this machine's clock is fast, every new certificate seems due at once. The manager
// still does not use up the authority's limit.
func TestAClockThatIsFastDoesNotUseUpTheLimit(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	a.behind = 75 * 24 * time.Hour
	m, _ := a.open(t.TempDir())
	m.Start()
	asleep := c.asleep(t)
	if wait := m.Status().NextAttempt.Sub(c.now()); wait != 9*24*time.Hour {
		t.Errorf("it asks again in %v", wait)
	}
	c.pass(t, asleep, 24*time.Hour)
	if n, _ := a.count(); n != 1 {
		t.Errorf("%d orders in a day", n)
	}
}

// The manager serves the old certificate while it cannot get a new one.
func TestRenewalThatFails(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, log := a.open(t.TempDir())
	m.Start()
	asleep := c.asleep(t)
	a.set(func() { a.fails["order"] = &problem{503, "serverInternal", "maintenance", ""} })
	// The loop sleeps now, and reads this when it wakes.
	m.client.RetryBackoff = func(int, *http.Request, *http.Response) time.Duration { return -1 }
	asleep = c.pass(t, asleep, 61*24*time.Hour)
	if s := m.Status(); serial(m) != 1 || s.Failures == 0 || s.NotAfter.IsZero() || !strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "ERROR") {
		t.Errorf("%+v: %s", s, log)
	}
	asleep = c.pass(t, asleep, 30*24*time.Hour)
	if !strings.Contains(log.String(), "has expired") {
		t.Errorf("the log does not say that it has expired: %s", log)
	}
	a.set(func() { clear(a.fails) })
	c.pass(t, asleep, 7*time.Hour)
	if serial(m) != 2 {
		t.Error("not renewed when it can be")
	}
}

func TestWhatTheAuthorityGivesIsJudged(t *testing.T) {
	for _, broken := range []string{"name", "key", "expired"} {
		t.Run(broken, func(t *testing.T) {
			c := newClock()
			a := newAuthority(t, c)
			a.broken = broken
			m, _ := a.open(t.TempDir())
			m.Start()
			c.asleep(t)
			if s := m.Status(); serial(m) != 0 || s.Failures != 1 {
				t.Errorf("%+v", s)
			}
			if _, err := os.Stat(m.certificateFile()); err == nil {
				t.Error("it is on disk")
			}
		})
	}
}

func TestAnAccountThatTheAuthorityForgot(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, _ := a.open(t.TempDir())
	m.Start()
	asleep := c.asleep(t)
	a.set(func() { a.fails["order"] = &problem{400, "accountDoesNotExist", "", ""} })
	for m.Status().Failures == 0 {
		asleep = c.pass(t, asleep, 1)
	}
	a.set(func() { clear(a.fails) })
	c.pass(t, asleep, 10*time.Minute)
	if _, accounts := a.count(); accounts != 2 || serial(m) != 2 {
		t.Errorf("%d accounts, certificate %d", accounts, serial(m))
	}
}

func TestAnAuthorityThatIsNotThere(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, _ := a.open(t.TempDir())
	a.Close()
	m.Start()
	c.asleep(t)
	s := m.Status()
	if !strings.Contains(s.LastError, "cannot be reached") {
		t.Error(s.LastError)
	}
	if wait := s.NextAttempt.Sub(c.now()); wait != 15*time.Second {
		t.Errorf("it is asked again in %v, though the network may come any moment", wait)
	}
}

func TestAnAuthorityThatIsNotTrusted(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	a.caFile = ""
	m, _ := a.open(t.TempDir())
	m.Start()
	c.asleep(t)
	if s := m.Status(); !strings.Contains(s.LastError, "server.acme_ca_file") {
		t.Error(s.LastError)
	}
}

func TestACertificateThatCannotBeSavedIsUsed(t *testing.T) {
	c := newClock()
	a := newAuthority(t, c)
	m, log := a.open(t.TempDir())
	// Even root cannot replace a directory by a file.
	if err := os.Mkdir(m.certificateFile(), 0o700); err != nil {
		t.Fatal(err)
	}
	m.Start()
	c.asleep(t)
	if s := m.Status(); serial(m) != 1 || !strings.Contains(s.LastError, "cannot be read or written") || !strings.Contains(log.String(), "cannot be saved") {
		t.Errorf("%+v: %s", s, log)
	}
}

func TestAnAccountKeyThatIsNone(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "another thing": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			a := newAuthority(t, c)
			m, _ := a.open(t.TempDir())
			if err := os.WriteFile(m.dir+"/account.pem", []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			m.Start()
			c.asleep(t)
			if s := m.Status(); !strings.Contains(s.LastError, "account.pem") || !strings.Contains(s.LastError, "remove it") {
				t.Error(s.LastError)
			}
		})
	}
}
