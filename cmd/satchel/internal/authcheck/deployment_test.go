package authcheck

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	base = "https://satchel.example.com"
	mcp  = base + "/mcp"
)

func now() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) }

// deployment is a server without faults, except those that a test adds.
type deployment struct {
	url       string
	challenge string         // WWW-Authenticate for requests without a token
	resource  map[string]any // metadata; nil: none
	server    map[string]any
	serverAt  []string // paths of the metadata, on any host
	// instead replaces right answers, by "METHOD /path" or "/path".
	instead  map[string]http.HandlerFunc
	redirect func(id, redirect string) string // the target of an authorization request; "" for a page
	refuse   func(id, redirect string) bool
	tokenErr string
	noStore  bool
	cors     bool
	follows  string // the metadata that follow X-Forwarded-Host: "resource" or "issuer"
	ca       bool   // the certificate's authority is trusted
	names    []string
	notAfter time.Time
	life     time.Duration // the life of the certificate
	addrs    []string
	dial     error
	register bool
	date     time.Time
	deleted  bool
	requests []string
}

func right() *deployment {
	return &deployment{
		url:       mcp,
		challenge: `Bearer resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp", scope="read write"`,
		resource:  map[string]any{"resource": mcp, "authorization_servers": []string{base}, "scopes_supported": []string{"read", "write"}},
		server: map[string]any{
			"issuer": base, "authorization_endpoint": base + "/oauth/authorize", "token_endpoint": base + "/oauth/token", "registration_endpoint": base + "/oauth/register",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"}, "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}, "client_id_metadata_document_supported": true, "authorization_response_iss_parameter_supported": true,
		},
		serverAt: []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp"},
		instead:  map[string]http.HandlerFunc{},
		tokenErr: "invalid_grant", noStore: true, cors: true, ca: true,
		names: []string{"satchel.example.com", "login.example.com"}, notAfter: now().Add(80 * 24 * time.Hour), life: 90 * 24 * time.Hour, addrs: []string{"93.184.216.34"}, date: now(),
	}
}

func answers(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func redirects(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

func (d *deployment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.requests = append(d.requests, r.Method+" "+r.URL.Path)
	w.Header().Set("Date", d.date.Format(http.TimeFormat))
	if d.cors {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
	for _, k := range []string{r.Method + " " + r.URL.Path, r.URL.Path} {
		if h := d.instead[k]; h != nil {
			h(w, r)
			return
		}
	}
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	send := func(doc map[string]any) {
		if fwd := r.Header.Get("X-Forwarded-Host"); fwd != "" && doc[d.follows] != nil {
			doc = maps.Clone(doc)
			doc[d.follows] = "https://" + fwd
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(doc)
	}
	switch {
	case r.URL.Path == "/mcp":
		c := d.challenge
		if r.Header.Get("Authorization") != "" {
			c = strings.Replace(c, "Bearer ", `Bearer error="invalid_token", `, 1)
		}
		if c != "" {
			w.Header().Set("WWW-Authenticate", c)
		}
		http.Error(w, "no token", http.StatusUnauthorized)
	case d.resource != nil && strings.HasPrefix(r.URL.Path, wellKnownResource):
		send(d.resource)
	case d.server != nil && slices.Contains(d.serverAt, r.URL.Path):
		send(d.server)
	case r.URL.Path == "/oauth/authorize":
		d.authorize(w, r)
	case r.URL.Path == "/oauth/token":
		if d.noStore {
			w.Header().Set("Cache-Control", "no-store")
		}
		answers(http.StatusBadRequest, "application/json", `{"error":"`+d.tokenErr+`"}`)(w, r)
	case r.URL.Path == "/oauth/register" && r.Method == http.MethodPost:
		answers(http.StatusCreated, "application/json", `{"client_id":"c","redirect_uris":["http://127.0.0.1:49154/callback"],"registration_client_uri":"`+base+`/oauth/register/c","registration_access_token":"t"}`)(w, r)
	case r.URL.Path == "/oauth/register/c" && r.Method == http.MethodDelete:
		d.deleted = r.Header.Get("Authorization") == "Bearer t"
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

func (d *deployment) authorize(w http.ResponseWriter, r *http.Request) {
	id, redirect := r.URL.Query().Get("client_id"), r.URL.Query().Get("redirect_uri")
	if d.redirect != nil {
		if to := d.redirect(id, redirect); to != "" {
			redirects(to)(w, r)
			return
		}
	}
	if !strings.HasPrefix(id, "https://") && id != "c" || d.refuse != nil && d.refuse(id, redirect) {
		answers(http.StatusBadRequest, "text/html", "<!doctype html>")(w, r)
		return
	}
	redirects("/signin")(w, r)
}

// check checks the deployment over real TLS, under its names.
func (d *deployment) check(t *testing.T) Report {
	t.Helper()
	s := httptest.NewUnstartedServer(d)
	cert, pool := certificate(t, d.names, d.notAfter.Add(-d.life), d.notAfter)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if strings.HasPrefix(d.url, "https:") {
		s.StartTLS()
	} else {
		s.Start()
	}
	defer s.Close()
	if !d.ca {
		pool = x509.NewCertPool()
	}
	var dialer net.Dialer
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Time: now},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
	defer transport.CloseIdleConnections()
	var told []Finding
	r, err := Check(t.Context(), Options{
		URL: d.url, HTTP: &http.Client{Transport: transport}, Register: d.register, Now: now,
		Progress: func(f Finding) { told = append(told, f) },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			var as []netip.Addr
			for _, a := range d.addrs {
				as = append(as, netip.MustParseAddr(a))
			}
			return as, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if d.dial != nil {
				return nil, d.dial
			}
			return dialer.DialContext(ctx, network, s.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(told, r.Findings, func(a, b Finding) bool { return a.Name == b.Name && a.What == b.What }) {
		t.Errorf("progress was told %d findings, and the report has %d", len(told), len(r.Findings))
	}
	for _, f := range r.Findings {
		if bad := f.Status == Failed || f.Status == Warning; bad != (f.Fix != "") {
			t.Errorf("%s (%s) says what to do: %q", f.Name, f.Status, f.Fix)
		}
		if f.What == "" {
			t.Errorf("%s says nothing", f.Name)
		}
	}
	return r
}

func certificate(t *testing.T, names []string, notBefore, notAfter time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: notBefore, NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}
