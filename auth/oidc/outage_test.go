package oidc_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth/oidc"
	"satchel/auth/oidc/oidctest"
	"satchel/internal/fault"
)

func TestTheServerStartsWhileTheIssuerIsDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := &clock{t: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)}
	p, err := oidc.New(oidc.Options{Issuer: "http://" + address, ClientID: "satchel", Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	_, _, err = p.Begin(t.Context(), redirect, "the-state")
	refused(t, err, fault.Unavailable)

	issuer := oidctest.New(oidctest.Options{Address: address, Now: c.now})
	t.Cleanup(issuer.Close)
	w := &world{issuer: issuer, provider: p, clock: c}
	// For a while the provider sends no further request, so that an outage does not slow
	// down pages.
	_, _, err = p.Begin(t.Context(), redirect, "the-state")
	refused(t, err, fault.Unavailable)
	var f *fault.Error
	if !errors.As(err, &f) || f.RetryAfter <= 0 {
		t.Errorf("it does not say when to try again: %+v", err)
	}
	if n := issuer.Requests("/.well-known/openid-configuration"); n != 0 {
		t.Errorf("it asked %d times", n)
	}
	c.advance(6 * time.Second)
	if _, err := w.signIn(t, nil); err != nil {
		t.Fatal(err)
	}
}

func TestAnOutageEnds(t *testing.T) {
	down := map[string]oidctest.Behaviour{
		"503":                        {Down: true},
		"redirects of the documents": {Status: map[string]int{"/.well-known/openid-configuration": 302, "/jwks": 302, "/token": 503}},
		"not found":                  {Status: map[string]int{"/.well-known/openid-configuration": 404, "/jwks": 404, "/token": 500}},
		"too many requests":          {Status: map[string]int{"/.well-known/openid-configuration": 429, "/jwks": 429, "/token": 429}},
		"answers without end": {Oversize: map[string]int{
			"/.well-known/openid-configuration": 1 << 20, "/jwks": 1 << 20, "/token": 1 << 20,
		}},
	}
	for name, behaviour := range down {
		t.Run(name+" at the beginning", func(t *testing.T) {
			w := setup(t, oidctest.Options{}, oidc.Options{MaxResponse: 64 << 10})
			w.issuer.Behave(behaviour)
			_, _, err := w.provider.Begin(t.Context(), redirect, "the-state")
			refused(t, err, fault.Unavailable)
			w.issuer.Behave(oidctest.Behaviour{})
			w.clock.advance(time.Minute)
			if _, err := w.signIn(t, nil); err != nil {
				t.Fatal(err)
			}
		})
		t.Run(name+" at the end", func(t *testing.T) {
			w := setup(t, oidctest.Options{}, oidc.Options{MaxResponse: 64 << 10})
			flow, q := w.browse(t)
			w.issuer.Behave(behaviour)
			_, err := w.provider.Finish(t.Context(), redirect, flow, q)
			refused(t, err, fault.Unavailable)
		})
		t.Run(name+" of the keys alone", func(t *testing.T) {
			w := setup(t, oidctest.Options{}, oidc.Options{MaxResponse: 64 << 10})
			b := oidctest.Behaviour{Status: map[string]int{"/jwks": behaviour.Status["/jwks"]}, Oversize: map[string]int{"/jwks": behaviour.Oversize["/jwks"]}}
			if behaviour.Down {
				b.Status["/jwks"] = http.StatusServiceUnavailable
			}
			w.issuer.Behave(b)
			_, err := w.signIn(t, nil)
			refused(t, err, fault.Unavailable)
			w.issuer.Behave(oidctest.Behaviour{})
			if _, err := w.signIn(t, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("of the userinfo endpoint", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		w.issuer.Behave(oidctest.Behaviour{LeanIDToken: true, Status: map[string]int{"/userinfo": 503}})
		_, err := w.signIn(t, nil)
		refused(t, err, fault.Unavailable)
	})
	t.Run("a refusal of the userinfo endpoint is none", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		w.issuer.Behave(oidctest.Behaviour{LeanIDToken: true, Status: map[string]int{"/userinfo": 403}})
		who, err := w.signIn(t, nil)
		if err != nil || who.Email != "" || who.Subject == "" {
			t.Errorf("got %+v, %v", who, err)
		}
	})
}

func TestWhatIsKnownIsUsedWhileTheIssuerIsAway(t *testing.T) {
	w := setup(t, oidctest.Options{}, oidc.Options{})
	if _, err := w.signIn(t, nil); err != nil {
		t.Fatal(err)
	}
	w.clock.advance(2 * time.Hour)
	w.issuer.Behave(oidctest.Behaviour{Status: map[string]int{"/.well-known/openid-configuration": 503}})
	for range 3 {
		if _, err := w.signIn(t, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.issuer.Requests("/.well-known/openid-configuration"); n != 2 {
		t.Errorf("the configuration was asked for %d times, want once at first and once in vain", n)
	}
}

func TestKeysMayRotate(t *testing.T) {
	w := setup(t, oidctest.Options{}, oidc.Options{})
	for range 3 {
		if _, err := w.signIn(t, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := w.signIn(t, nil); err != nil {
			t.Fatal(err)
		}
		w.issuer.Rotate()
	}
	if n := w.issuer.Requests("/jwks"); n != 3 {
		t.Errorf("the keys were fetched %d times for 3 sets of them", n)
	}
	t.Run("a key that is taken away is good no more once the metadata are old", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		var stolen string
		w.issuer.Behave(oidctest.Behaviour{Token: func(s string) string { stolen = s; return s }})
		if _, err := w.signIn(t, nil); err != nil {
			t.Fatal(err)
		}
		w.issuer.Rotate()
		w.clock.advance(2 * time.Hour)
		w.issuer.Behave(oidctest.Behaviour{Token: func(string) string { return stolen }})
		_, err := w.signIn(t, nil)
		refused(t, err, fault.Unauthenticated)
		if !strings.Contains(err.Error(), "signature") {
			t.Errorf("it was refused for something else: %v", err)
		}
	})
}

// arrivals is a transport that announces each request before it sends it.
type arrivals struct {
	http.RoundTripper
	came chan string
}

func (a arrivals) RoundTrip(r *http.Request) (*http.Response, error) {
	a.came <- r.URL.Path
	return a.RoundTripper.RoundTrip(r)
}

func TestWhoWaitsSharesOneRequest(t *testing.T) {
	came := make(chan string, 20)
	w := setup(t, oidctest.Options{}, oidc.Options{Transport: arrivals{&http.Transport{DisableKeepAlives: true}, came}})
	release := make(chan struct{})
	w.issuer.Behave(oidctest.Behaviour{Stall: release})
	errs := make(chan error, 10)
	begin := func(ctx context.Context) {
		_, _, err := w.provider.Begin(ctx, redirect, "s")
		errs <- err
	}
	impatient, leave := context.WithCancel(t.Context())
	go begin(impatient)
	<-came
	for range 5 {
		go begin(t.Context())
	}
	leave()
	if err := <-errs; fault.CodeOf(err) != fault.Canceled {
		t.Fatalf("who went away got %v", err)
	}
	close(release)
	for range 5 {
		if err := <-errs; err != nil {
			t.Errorf("another who waited got %v", err)
		}
	}
	if len(came) != 0 {
		t.Errorf("%d more requests were made", len(came))
	}
}

func TestASlowIssuerTimesOut(t *testing.T) {
	w := setup(t, oidctest.Options{}, oidc.Options{Timeout: 50 * time.Millisecond})
	w.issuer.Behave(oidctest.Behaviour{Stall: make(chan struct{})})
	_, _, err := w.provider.Begin(t.Context(), redirect, "s")
	refused(t, err, fault.Unavailable)
}

// stalled is a transport whose requests end only with their context.
type stalled chan struct{}

func (s stalled) RoundTrip(r *http.Request) (*http.Response, error) {
	close(s)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	arrived := make(stalled)
	p, err := oidc.New(oidc.Options{Issuer: "https://login.example.com", ClientID: "satchel", Transport: arrived, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := p.Begin(t.Context(), redirect, "s")
		done <- err
	}()
	<-arrived
	p.Close()
	if err := <-done; err == nil {
		t.Error("it began")
	}
	if _, _, err = p.Begin(t.Context(), redirect, "s"); err == nil {
		t.Error("it began after its end")
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for name, o := range map[string]oidc.Options{
		"no issuer":                 {ClientID: "c"},
		"no client":                 {Issuer: "https://login.example.com"},
		"http elsewhere":            {Issuer: "http://login.example.com", ClientID: "c"},
		"http at a look-alike host": {Issuer: "http://localhost.example.com", ClientID: "c"},
		"a user in it":              {Issuer: "https://a:b@login.example.com", ClientID: "c"},
		"no host":                   {Issuer: "https:///x", ClientID: "c"},
		"another scheme":            {Issuer: "file:///etc/passwd", ClientID: "c"},
	} {
		if _, err := oidc.New(o); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

// The browser and the secret go to the addresses from discovery.
func TestDiscoveryAttacks(t *testing.T) {
	for name, edit := range map[string]func(map[string]any){
		"another issuer":                  func(m map[string]any) { m["issuer"] = "https://evil.example" },
		"the issuer with a slash":         func(m map[string]any) { m["issuer"] = m["issuer"].(string) + "/" },
		"a script to authorize":           func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" },
		"no authorization endpoint":       func(m map[string]any) { delete(m, "authorization_endpoint") },
		"a token endpoint without TLS":    func(m map[string]any) { m["token_endpoint"] = "http://evil.example/token" },
		"keys without TLS":                func(m map[string]any) { m["jwks_uri"] = "http://evil.example/jwks" },
		"a userinfo endpoint without TLS": func(m map[string]any) { m["userinfo_endpoint"] = "http://evil.example/userinfo" },
		"keys from a file":                func(m map[string]any) { m["jwks_uri"] = "file:///etc/passwd" },
		"no keys":                         func(m map[string]any) { delete(m, "jwks_uri") },
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t, oidctest.Options{}, oidc.Options{})
			w.issuer.Behave(oidctest.Behaviour{Metadata: edit})
			_, _, err := w.provider.Begin(t.Context(), redirect, "s")
			refused(t, err, fault.Unavailable)
		})
	}
	for _, path := range []string{"/.well-known/openid-configuration", "/jwks", "/token"} {
		t.Run("a redirect of "+path+" is not followed", func(t *testing.T) {
			var followed atomic.Int32
			evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
			t.Cleanup(evil.Close)
			w := setup(t, oidctest.Options{ClientSecret: "s"}, oidc.Options{})
			w.issuer.Behave(oidctest.Behaviour{Status: map[string]int{path: http.StatusTemporaryRedirect}, Location: evil.URL})
			location, flow, err := w.provider.Begin(t.Context(), redirect, "the-state")
			if err == nil {
				var q url.Values
				if q, err = w.issuer.Browse(location); err != nil {
					t.Fatal(err)
				}
				_, err = w.provider.Finish(t.Context(), redirect, flow, q)
			}
			refused(t, err, fault.Unavailable)
			if n := followed.Load(); n != 0 {
				t.Errorf("%d requests went where it points", n)
			}
		})
	}
}
