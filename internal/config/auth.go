package config

import (
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Auth is the section auth.
type Auth struct {
	AllowEmails      []string
	AllowDomains     []string
	AllowGitHubUsers []string
	AllowGitHubOrgs  []string

	AccessLifetime  time.Duration
	RefreshLifetime time.Duration // without use
	RefreshReuse    time.Duration
	CodeLifetime    time.Duration

	SessionIdle     time.Duration
	SessionLifetime time.Duration
	LinkLifetime    time.Duration
	InviteLifetime  time.Duration
	MembersInvite   bool

	Registration     bool
	MaxClients       int
	UnusedClient     time.Duration
	IdleClient       time.Duration
	ClientDocuments  bool
	DocumentCache    time.Duration
	Rate             float64 // requests per minute and address that nobody signed
	Burst            int
	RegistrationRate float64 // per hour and address
	MailRate         float64 // per hour and address

	Issuer Issuer
	OIDC   SignInOIDC
	GitHub SignInGitHub
	Mail   Mail
}

// Issuer is the section auth.issuer.
type Issuer struct {
	URL            string // empty: the built-in authorization server
	Audience       []string
	Algorithms     []string
	Types          []string // of the typ header; empty: any but an ID token's
	ClientClaims   []string
	ScopeClaims    []string
	ReadScopes     []string
	WriteScopes    []string
	AskScopes      []string // empty: ReadScopes and WriteScopes
	DefaultScopes  []string
	RequireClaims  []string // NAME=VALUE
	EmailClaim     string
	VerifiedClaim  string // empty: the issuer's addresses are all verified
	NameClaim      string
	SpaceClaim     string
	ClockSkew      time.Duration
	KeysMaxAge     time.Duration
	OutageGrace    time.Duration
	RequestTimeout time.Duration
}

// SignInOIDC is the section auth.oidc.
type SignInOIDC struct {
	URL              string // empty: none
	ClientID         string
	ClientSecret     string
	ClientSecretFile string // absolute
	Label            string
	Scopes           []string
}

// SignInGitHub is the section auth.github.
type SignInGitHub struct {
	ClientID         string // empty: none
	ClientSecret     string
	ClientSecretFile string // absolute
	URL              string
}

// Mail is the section auth.mail.
type Mail struct {
	URL          string // empty: no mail
	From         string
	PasswordFile string // absolute
	CAFile       string // absolute
}

func authKeys() []key {
	return []key{
		row("auth.allow_emails", "Addresses whose holders may become users by signing in, where GitHub or the issuer says that they are theirs. Others need an invitation.", list, nil,
			func(c *Config) *[]string { return &c.Auth.AllowEmails }, eachOf(emailAddress)),
		row("auth.allow_domains", "Domains whose addresses may do so.", list, nil,
			func(c *Config) *[]string { return &c.Auth.AllowDomains }, eachOf(host)),
		row("auth.allow_github_users", "GitHub logins that may do so.", list, nil,
			func(c *Config) *[]string { return &c.Auth.AllowGitHubUsers }, eachOf(githubName)),
		row("auth.allow_github_orgs", "GitHub organisations whose members may do so.", list, nil,
			func(c *Config) *[]string { return &c.Auth.AllowGitHubOrgs }, eachOf(githubName)),

		row("auth.access_lifetime", "How long an access token is good. It is looked up at each request, so that revoking it works at once.", duration, 7*day,
			func(c *Config) *time.Duration { return &c.Auth.AccessLifetime }, durations(time.Second, 365*day)),
		row("auth.refresh_lifetime", "How long a client may be away before it must ask for consent again.", duration, 90*day,
			func(c *Config) *time.Duration { return &c.Auth.RefreshLifetime }, durations(time.Second, 3650*day)),
		row("auth.refresh_reuse", "How long a refresh token that was used gives the same successor again, since real clients refresh in parallel; later it revokes the grant.", duration, 15*time.Minute,
			func(c *Config) *time.Duration { return &c.Auth.RefreshReuse }, durations(0, day)),
		row("auth.code_lifetime", "How long a client has to redeem an authorization code.", duration, 2*time.Minute,
			func(c *Config) *time.Duration { return &c.Auth.CodeLifetime }, durations(time.Second, 10*time.Minute)),

		row("auth.session_idle", "How long a browser stays signed in without a visit.", duration, 30*day,
			func(c *Config) *time.Duration { return &c.Auth.SessionIdle }, durations(time.Second, 365*day)),
		row("auth.session_lifetime", "How long a browser stays signed in at most.", duration, 180*day,
			func(c *Config) *time.Duration { return &c.Auth.SessionLifetime }, durations(time.Second, 3650*day)),
		row("auth.link_lifetime", "How long a one-time sign-in link is good.", duration, 15*time.Minute,
			func(c *Config) *time.Duration { return &c.Auth.LinkLifetime }, durations(time.Second, 30*day)),
		row("auth.invite_lifetime", "How long an invitation is good.", duration, 7*day,
			func(c *Config) *time.Duration { return &c.Auth.InviteLifetime }, durations(time.Second, 365*day)),
		row("auth.members_invite", "Whether who is no admin may invite people that are no users yet, to a space of theirs; else only an admin lets new people in.", boolean, true,
			func(c *Config) *bool { return &c.Auth.MembersInvite }),

		row("auth.registration", "Whether clients may register themselves, as Cursor and others must.", boolean, true,
			func(c *Config) *bool { return &c.Auth.Registration }),
		row("auth.max_clients", "Clients that are registered at a time.", integer, 10_000,
			func(c *Config) *int { return &c.Auth.MaxClients }, numbers(1, 10_000_000)),
		row("auth.unused_client", "How long a client that registered is kept without anybody's consent.", duration, day,
			func(c *Config) *time.Duration { return &c.Auth.UnusedClient }, durations(time.Second, 365*day)),
		row("auth.idle_client", "How long it is kept once nothing that it was granted is good any more.", duration, 90*day,
			func(c *Config) *time.Duration { return &c.Auth.IdleClient }, durations(time.Second, 3650*day)),
		row("auth.client_documents", "Whether clients may name a metadata document that the server fetches. Those of Claude, ChatGPT and VS Code are known without.", boolean, true,
			func(c *Config) *bool { return &c.Auth.ClientDocuments }),
		row("auth.document_cache", "How long such a document is kept at most.", duration, day,
			func(c *Config) *time.Duration { return &c.Auth.DocumentCache }, durations(0, 30*day)),
		row("auth.rate", "Requests per minute that one address may make to what needs no key: pages to sign in, and the authorization server.", decimal, 120,
			func(c *Config) *float64 { return &c.Auth.Rate }, numbers(0.01, 1_000_000)),
		row("auth.burst", "Such requests at once above the rate.", integer, 60,
			func(c *Config) *int { return &c.Auth.Burst }, numbers(1, 1_000_000)),
		row("auth.registration_rate", "Clients per hour that one address may register.", decimal, 60,
			func(c *Config) *float64 { return &c.Auth.RegistrationRate }, numbers(0.01, 1_000_000)),
		row("auth.mail_rate", "Sign-in links per hour that one address of the network may have mailed.", decimal, 10,
			func(c *Config) *float64 { return &c.Auth.MailRate }, numbers(0.01, 1_000_000)),

		row("auth.issuer.url", "Issuer whose access tokens clients bring, in place of the built-in authorization server: Auth0, Keycloak, Entra, Supabase.", str, "",
			func(c *Config) *string { return &c.Auth.Issuer.URL }, issuerURL),
		row("auth.issuer.audience", "What the aud of a token must have; empty for the URL of the MCP endpoint.", list, nil,
			func(c *Config) *[]string { return &c.Auth.Issuer.Audience }),
		row("auth.issuer.algorithms", "Signatures that are taken.", list, []string{"ES256", "RS256", "EdDSA"},
			func(c *Config) *[]string { return &c.Auth.Issuer.Algorithms }, eachOf(algorithm), required1),
		row("auth.issuer.types", "What the typ in the header of a token may be. A token without one is taken where this has JWT.", list, []string{"at+jwt", "JWT"},
			func(c *Config) *[]string { return &c.Auth.Issuer.Types }),
		row("auth.issuer.client_claims", "Claims that may name the client; a token without any is a session of a person's and is refused.", list, []string{"client_id", "azp", "cid", "appid"},
			func(c *Config) *[]string { return &c.Auth.Issuer.ClientClaims }, required1),
		row("auth.issuer.scope_claims", "Claims that may hold scopes, as a text or a list.", list, []string{"scope", "scp"},
			func(c *Config) *[]string { return &c.Auth.Issuer.ScopeClaims }),
		row("auth.issuer.read_scopes", "The issuer's scopes that let a client read.", list, []string{"read"},
			func(c *Config) *[]string { return &c.Auth.Issuer.ReadScopes }),
		row("auth.issuer.write_scopes", "The issuer's scopes that let a client change things.", list, []string{"write"},
			func(c *Config) *[]string { return &c.Auth.Issuer.WriteScopes }),
		row("auth.issuer.ask_scopes", "Scopes that clients are told to ask for, where the issuer takes requests by other names than its tokens have; empty for read_scopes and write_scopes.", list, nil,
			func(c *Config) *[]string { return &c.Auth.Issuer.AskScopes }),
		row("auth.issuer.default_scopes", "What a token may do that has none of these scopes: read, write, or nothing.", list, nil,
			func(c *Config) *[]string { return &c.Auth.Issuer.DefaultScopes }, eachOf(scopeName)),
		row("auth.issuer.require_claims", "Claims that a token must have, as NAME=VALUE.", list, nil,
			func(c *Config) *[]string { return &c.Auth.Issuer.RequireClaims }, eachOf(claimPair)),
		row("auth.issuer.email_claim", "Claim that holds the person's address.", str, "email",
			func(c *Config) *string { return &c.Auth.Issuer.EmailClaim }),
		row("auth.issuer.verified_claim", "Claim that says that the address is verified; empty where all are.", str, "email_verified",
			func(c *Config) *string { return &c.Auth.Issuer.VerifiedClaim }),
		row("auth.issuer.name_claim", "Claim that holds the person's name.", str, "name",
			func(c *Config) *string { return &c.Auth.Issuer.NameClaim }),
		row("auth.issuer.space_claim", "Claim that names the space; empty for the person's first.", str, "",
			func(c *Config) *string { return &c.Auth.Issuer.SpaceClaim }),
		row("auth.issuer.clock_skew", "How far the issuer's clock may be off.", duration, time.Minute,
			func(c *Config) *time.Duration { return &c.Auth.Issuer.ClockSkew }, durations(0, 10*time.Minute)),
		row("auth.issuer.keys_max_age", "When the issuer's keys are fetched again, in the background.", duration, 15*time.Minute,
			func(c *Config) *time.Duration { return &c.Auth.Issuer.KeysMaxAge }, durations(time.Second, 7*day)),
		row("auth.issuer.outage_grace", "How long keys are used that cannot be fetched again.", duration, day,
			func(c *Config) *time.Duration { return &c.Auth.Issuer.OutageGrace }, durations(0, 30*day)),
		row("auth.issuer.request_timeout", "How long one request to the issuer may take.", duration, 10*time.Second,
			func(c *Config) *time.Duration { return &c.Auth.Issuer.RequestTimeout }, durations(100*time.Millisecond, time.Minute)),

		row("auth.oidc.url", "Issuer with which people sign in to the server's pages; empty for none.", str, "",
			func(c *Config) *string { return &c.Auth.OIDC.URL }, issuerURL),
		row("auth.oidc.client_id", "What the issuer calls this server.", str, "",
			func(c *Config) *string { return &c.Auth.OIDC.ClientID }),
		row("auth.oidc.client_secret", "Secret that the issuer gave. Set it in the file or the variable: other users can see flags.", str, "",
			func(c *Config) *string { return &c.Auth.OIDC.ClientSecret }).secretly(),
		row("auth.oidc.client_secret_file", "File that holds it.", str, "",
			func(c *Config) *string { return &c.Auth.OIDC.ClientSecretFile }, absolute),
		row("auth.oidc.label", "What the button says after \"Sign in with\".", str, "single sign-on",
			func(c *Config) *string { return &c.Auth.OIDC.Label }, short),
		row("auth.oidc.scopes", "Scopes that are asked for.", list, []string{"openid", "email", "profile"},
			func(c *Config) *[]string { return &c.Auth.OIDC.Scopes }),

		row("auth.github.client_id", "Client id of a GitHub App or OAuth App, for people to sign in with GitHub; empty for none.", str, "",
			func(c *Config) *string { return &c.Auth.GitHub.ClientID }),
		row("auth.github.client_secret", "Its secret. Set it in the file or the variable: other users can see flags.", str, "",
			func(c *Config) *string { return &c.Auth.GitHub.ClientSecret }).secretly(),
		row("auth.github.client_secret_file", "File that holds it.", str, "",
			func(c *Config) *string { return &c.Auth.GitHub.ClientSecretFile }, absolute),
		row("auth.github.url", "GitHub's address; another one for GitHub Enterprise.", str, "https://github.com",
			func(c *Config) *string { return &c.Auth.GitHub.URL }, required, issuerURL),

		row("auth.mail.url", "Mail server that sends sign-in links: smtps://user@host, or smtp://user@host:587 (which must offer STARTTLS unless it is this machine). A password may be in it, in the file or the variable.", str, "",
			func(c *Config) *string { return &c.Auth.Mail.URL }, mailURL).secretly(),
		row("auth.mail.from", "Sender of these mails, such as Satchel <satchel@example.com>.", str, "",
			func(c *Config) *string { return &c.Auth.Mail.From }, mailbox),
		row("auth.mail.password_file", "File that holds the mail server's password.", str, "",
			func(c *Config) *string { return &c.Auth.Mail.PasswordFile }, absolute),
		row("auth.mail.ca_file", "File of further authorities (PEM) whose certificate the mail server may have.", str, "",
			func(c *Config) *string { return &c.Auth.Mail.CAFile }, absolute),
	}
}

func required1(l []string) string {
	if len(l) == 0 {
		return "it must name at least one"
	}
	return ""
}

func emailAddress(s string) string {
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
		return fmt.Sprintf("%q must be an address such as ada@example.com", s)
	}
	return ""
}

func mailbox(s string) string {
	if s == "" {
		return ""
	}
	a, err := mail.ParseAddress(s)
	if err != nil {
		return "it must be an address such as Satchel <satchel@example.com>"
	}
	for _, b := range []byte(a.Address) {
		if b >= 0x80 {
			return "the address itself must be of ASCII letters"
		}
	}
	return ""
}

// githubName checks a login or an organisation's name: letters, digits and
// hyphens, with an underscore in those of enterprise-managed users.
func githubName(s string) string {
	if s == "" || len(s) > 100 || !plain(s) {
		return fmt.Sprintf("%q must be a GitHub name", s)
	}
	return ""
}

// issuerURL checks the address of another server that signs people in: https, or
// http on this machine. Its exact bytes count (RFC 8414 section 3.3).
func issuerURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "":
		return "it must be a URL such as https://login.example.com"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(s, "#"):
		return "it must not have a user, a query or a fragment"
	case u.Scheme == "http" && !thisMachine(u.Hostname()):
		return "it must begin with https://, since secrets are sent there"
	}
	return ""
}

func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// algorithm refuses what lets a token be forged: no signature, and those that are
// made with what the verifier knows too.
func algorithm(s string) string {
	switch s {
	case "ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA":
		return ""
	}
	return fmt.Sprintf("%q must be a signature such as ES256, RS256 or EdDSA", s)
}

func scopeName(s string) string {
	if s != "read" && s != "write" {
		return fmt.Sprintf("%q must be read or write", s)
	}
	return ""
}

func claimPair(s string) string {
	if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
		return fmt.Sprintf("%q must be of the form NAME=VALUE", s)
	}
	return ""
}

func mailURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "it must be of the form smtps://user@host or smtp://user@host:587"
	}
	return ""
}
