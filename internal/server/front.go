package server

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/auth/mail"
	"satchel/auth/oauth"
	"satchel/auth/oidc"
	"satchel/auth/oidc/access"
	"satchel/auth/passkey"
	"satchel/internal/clientaddr"
	"satchel/internal/config"
	"satchel/internal/egress"
	"satchel/internal/fault"
	"satchel/internal/ratelimit"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/pages"
)

// front authenticates people and clients. It has the pages, and either the built-in
// authorization server or the tokens of another issuer.
type front struct {
	oauth     *oauth.Server    // nil if another issuer gives the tokens
	access    *access.Verifier // nil unless another issuer gives the tokens
	pages     *web.Site
	documents *http.Client // fetches the metadata documents of clients
	addresses *clientaddr.Resolver
	limits    limits
	limited   func(what string)
	guessed   guessLog
	closers   []func()  // close the ways to sign in
	proxies   bool      // server.trusted_proxies names at least one proxy
	unnamed   sync.Once // logs once that requests come through a proxy, and none is named
	log       *slog.Logger
}

// limits limits the requests without a token from each address.
type limits struct {
	general, discovery, tokens, guesses, webhooks, registration, mail *ratelimit.Limiter
}

// mailsPerHour is enough for people who share a network address, and too few to flood a mailbox.
const mailsPerHour = 10

// leastBurst is the number of requests that a browser sends at once: a page and its files.
const leastBurst = 3

func newLimits(a config.Auth) limits {
	general := ratelimit.Options{PerMinute: a.Rate, Burst: max(leastBurst, int(a.Rate/2))}
	// Clients look up metadata before they connect. A lookup costs almost nothing, and all
	// people in a building may share an address.
	discovery := ratelimit.Options{PerMinute: 10 * a.Rate, Burst: 10 * general.Burst}
	hourly := func(n float64) ratelimit.Options {
		return ratelimit.Options{PerMinute: n / 60, Burst: max(1, int(n/2))}
	}
	return limits{
		general: ratelimit.New(general), tokens: ratelimit.New(general), guesses: ratelimit.New(general), webhooks: ratelimit.New(general), discovery: ratelimit.New(discovery),
		registration: ratelimit.New(hourly(a.Rate / 2)), mail: ratelimit.New(hourly(mailsPerHour)),
	}
}

// guesses is the argument of allow for a request to the tools without a valid token.
const guesses = "guess"

// allow counts a request without a valid token. It returns whether the address may send the
// request, and otherwise how long it must wait.
func (f *front) allow(r *http.Request, what string) (time.Duration, bool) {
	l, label := f.limits.general, "page"
	switch what {
	case oauth.LimitMetadata:
		l, label = f.limits.discovery, what
	case oauth.LimitRegister:
		l, label = f.limits.registration, what
	case oauth.LimitToken:
		l, label = f.limits.tokens, what
	case "mail":
		l, label = f.limits.mail, what
	case guesses:
		l, label = f.limits.guesses, what
	}
	if r.Header.Get("X-Forwarded-For") != "" && !f.proxies {
		f.unnamed.Do(func() {
			f.log.Warn("requests come with X-Forwarded-For, and server.trusted_proxies names no proxy: all who come through it count as one address", "from", r.RemoteAddr)
		})
	}
	wait, ok := l.Allow(clientaddr.Key(f.addresses.Of(r)) + bySite(r))
	if !ok {
		f.limited(label)
	}
	return wait, ok
}

// openFront creates the front. The server's addresses must be known.
func (s *Server) openFront() (err error) {
	cfg := s.Config
	var trusted []netip.Prefix
	for _, n := range cfg.Server.TrustedProxies {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			return fmt.Errorf("server.trusted_proxies: %w", err) // the configuration has checked it
		}
		trusted = append(trusted, p)
	}
	f := &s.front
	f.addresses, f.limits = clientaddr.New(trusted), newLimits(cfg.Auth)
	f.proxies, f.log = len(trusted) > 0, s.Log.With("part", "front")
	f.guessed.log = f.log
	f.limited = func(what string) { s.signals.limited.Inc(what) }
	if cfg.Auth.Issuer.URL != "" {
		err = s.openIssuer()
	} else {
		err = s.openAuthorizationServer()
	}
	if err != nil {
		return err
	}
	return s.openPages()
}

// documentCache is how long a client's metadata document is cached. A change to the document
// takes effect after at most this time.
const documentCache = 24 * time.Hour

func (s *Server) openAuthorizationServer() (err error) {
	a := s.Config.Auth
	// Clients choose the URLs of these documents, so none may be in a private network, even
	// if remotes may.
	s.documents = egress.NewClient(egress.Options{Logger: s.Log.With("part", "egress")}, nil)
	s.oauth, err = oauth.New(oauth.Options{
		Issuer: s.issuer, Resource: s.resource(), Aliases: s.aliases(), At: s.at,
		Store: s.Accounts, HTTP: s.documents,
		Registration: a.Registration, Documents: a.ClientDocuments, DocumentCache: documentCache,
		Limit:  s.front.allow,
		Logger: s.Log.With("part", "oauth"),
	})
	return err
}

const (
	// clockSkew is the largest accepted error of an issuer's clock.
	clockSkew = time.Minute
	// outageGrace lets people work for a day while their issuer is unreachable. A key that
	// the issuer has withdrawn meanwhile stays valid for the same time.
	outageGrace = 24 * time.Hour
)

func (s *Server) openIssuer() (err error) {
	i := s.Config.Auth.Issuer
	s.access, err = access.New(access.Options{
		Issuer: i.URL, Resource: s.resource(), Audience: i.Audience,
		Types: []string{"at+jwt", "JWT"}, ClientClaims: i.ClientClaims, ScopeClaims: []string{"scope", "scp"},
		ReadScopes: i.ReadScopes, WriteScopes: i.WriteScopes, DefaultScopes: i.DefaultScopes, RequireClaims: i.RequireClaims,
		EmailClaim: i.EmailClaim, VerifiedClaim: i.VerifiedClaim, NameClaim: i.NameClaim,
		ClockSkew: clockSkew, OutageGrace: outageGrace,
		Logger: s.Log.With("part", "issuer"),
	})
	return err
}

// addressOf returns the network address of the sender of a request, or "" if it is unknown.
func (s *Server) addressOf(r *http.Request) string {
	if a := s.addresses.Of(r); a.IsValid() {
		return a.String()
	}
	return ""
}

func (s *Server) openPages() error {
	a := s.Config.Auth
	o := web.Options{
		Issuer: s.issuer, MCPURL: s.resource(), Accounts: s.Accounts, OAuth: s.oauth, Service: s.Service,
		Limit:   s.front.allow,
		Address: s.addressOf,
		Called:  s.signals.called.of,
		Refused: s.signals.refused.of,
		Logger:  s.Log.With("part", "web"),
		Version: s.version,
	}
	if a.GitHub.ClientID != "" {
		secret, err := a.GitHub.ClientSecret.Read("auth.github.client_secret")
		if err != nil {
			return err
		}
		p, err := github.New(github.Options{
			ClientID: a.GitHub.ClientID, ClientSecret: secret, URL: a.GitHub.URL, NeedOrgs: len(a.AllowGitHubOrgs) > 0,
			Logger: s.Log.With("part", "github"),
		})
		if err != nil {
			return err
		}
		o.GitHub = p
		s.closers = append(s.closers, p.Close)
	}
	if a.OIDC.URL != "" {
		secret, err := a.OIDC.ClientSecret.Read("auth.oidc.client_secret")
		if err != nil {
			return err
		}
		p, err := oidc.New(oidc.Options{
			Issuer: a.OIDC.URL, ClientID: a.OIDC.ClientID, ClientSecret: secret, Label: a.OIDC.Label, Scopes: []string{"openid", "email", "profile"},
			Logger: s.Log.With("part", "oidc"),
		})
		if err != nil {
			return err
		}
		o.OIDC = p
		s.closers = append(s.closers, p.Close)
	}
	switch p, err := passkey.New(passkey.Options{Origin: s.issuer, Name: "Satchel", Logger: s.Log.With("part", "passkey")}); {
	case err == nil:
		o.Passkeys = p
	// If the code is Unavailable, the server has no host name with https, which passkeys need.
	case fault.CodeOf(err) != fault.Unavailable:
		return err
	}
	if a.Mail.URL != "" {
		m, err := newMailer(a.Mail, s.Log.With("part", "mail"))
		if err != nil {
			return err
		}
		o.Mail = m
	}
	s.addConnect(&o)
	if err := s.addGitHub(&o); err != nil {
		return err
	}
	s.addActivity(&o)
	var err error
	s.pages, err = pages.New(o)
	return err
}

func newMailer(m config.Mail, log *slog.Logger) (*mail.Mailer, error) {
	password, err := m.Password.Read("auth.mail.password")
	if err != nil {
		return nil, err
	}
	o := mail.Options{URL: m.URL, From: m.From, Password: password, Logger: log}
	if m.CAFile != "" {
		pem, err := os.ReadFile(m.CAFile)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The file auth.mail.ca_file cannot be read (%s).", cause(err))
		}
		if o.RootCAs, err = x509.SystemCertPool(); err != nil {
			o.RootCAs = x509.NewCertPool()
		}
		if !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.Invalid, "The file auth.mail.ca_file contains no certificate.")
		}
	}
	return mail.New(o)
}

// resourceMetadata serves the document of RFC 9728. Clients compare the resource with the
// URL that their user typed, so each name of the server has its own document.
func (s *Server) resourceMetadata() http.Handler {
	scopes := strings.Fields(s.scopeNames([]space.Scope{space.ScopeRead, space.ScopeWrite}))
	byOrigin := map[string]http.Handler{}
	for _, o := range append([]string{s.issuer}, s.local...) {
		// The built-in authorization server has the same origin.
		byOrigin[o] = oauth.ResourceMetadata(o+"/mcp", []string{cmp.Or(s.Config.Auth.Issuer.URL, o)}, scopes)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.limitDiscovery(w, r) {
			return
		}
		byOrigin[s.at(r.Host)].ServeHTTP(w, r)
	})
}

// limitDiscovery refuses the request and returns true if its address looks up metadata too often.
func (s *Server) limitDiscovery(w http.ResponseWriter, r *http.Request) bool {
	wait, ok := s.front.allow(r, oauth.LimitMetadata)
	if !ok {
		w.Header().Set("Retry-After", fmt.Sprint(max(1, int(wait.Seconds()+1))))
		http.Error(w, "Too many requests. Try again later.", http.StatusTooManyRequests)
	}
	return !ok
}

// scopeNames returns the names with which a client asks its authorization server for
// scopes.
func (s *Server) scopeNames(scopes []space.Scope) string {
	i := s.Config.Auth.Issuer
	if i.URL == "" {
		return auth.ScopeList(scopes)
	}
	if len(i.AskScopes) > 0 {
		return strings.Join(i.AskScopes, " ")
	}
	var names []string
	for _, scope := range scopes {
		of := i.ReadScopes
		if scope == space.ScopeWrite {
			of = i.WriteScopes
		}
		for _, name := range of {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, " ")
}

// originFor returns the URL at which a request's client reached the server. The URLs in the
// server's answer begin with this URL.
func (s *Server) originFor(r *http.Request) string { return s.at(r.Host) }

// resourceMetadataURL returns the URL of the RFC 9728 document, for the challenge that answers
// a request.
func (s *Server) resourceMetadataURL(r *http.Request) string {
	return s.at(r.Host) + "/.well-known/oauth-protected-resource/mcp"
}

// bySite returns a suffix for the rate limiter's key of requests that a page of another site
// sends from a person's browser, for example for an image, a frame or a script. With a key of
// its own, such a page does not use up the person's limits. A navigation counts as a request of
// the person. Only the browser can set these headers, a page cannot.
func bySite(r *http.Request) string {
	h := r.Header
	switch h.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
	default:
		return ""
	}
	if h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && h.Get("Sec-Purpose") == "" {
		return ""
	}
	// All other sites share one key, because a client that is not a browser could claim a new
	// origin for each request.
	return " by another site"
}

// guess counts a request without a valid token. It does not log a request without any token,
// because every client begins with such a request.
func (f *front) guess(r *http.Request) (time.Duration, bool) {
	if r.Header.Get("Authorization") != "" {
		f.guessed.note(f.addresses.Of(r))
	}
	return f.allow(r, guesses)
}

// unproven reports whether an address may send another webhook without GitHub's signature.
// If count is true, the address has just sent such a webhook, and it is counted.
func (f *front) unproven(r *http.Request, count bool) (wait time.Duration, ok bool) {
	ask := f.limits.webhooks.Ready
	if count {
		ask = f.limits.webhooks.Allow
	}
	if wait, ok = ask(clientaddr.Key(f.addresses.Of(r))); !ok {
		f.limited("webhook")
	}
	return wait, ok
}

// close ends the front's background work.
func (f *front) close() {
	f.guessed.end()
	if f.pages != nil {
		f.pages.Close()
	}
	if f.oauth != nil {
		f.oauth.Close()
	}
	if f.access != nil {
		f.access.Close()
	}
	for _, end := range f.closers {
		end()
	}
	if f.documents != nil {
		f.documents.CloseIdleConnections()
	}
}
