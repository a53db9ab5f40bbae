package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/oauth"
	"satchel/auth/passkey"
	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Provider is an external service with which people sign in. A provider that also has a
// method Ready() bool is offered only while Ready returns true.
type Provider interface {
	// Label is the text of the button after "Sign in with".
	Label() string
	// Begin returns the address for the browser, and the data that Finish needs.
	Begin(ctx context.Context, redirectURI, state string) (location string, flow []byte, err error)
	// Finish verifies the identity of the person who came back; q is the query of their
	// request.
	Finish(ctx context.Context, redirectURI string, flow []byte, q url.Values) (auth.ExternalIdentity, error)
}

// PasskeyService creates and verifies passkeys.
type PasskeyService interface {
	BeginRegistration(passkey.User) (options, flow []byte, err error)
	FinishRegistration(u passkey.User, flow, response []byte) (id, credential []byte, err error)
	BeginSignIn() (options, flow []byte, err error)
	FinishSignIn(flow, response []byte, find func(credentialID, userHandle []byte) (passkey.User, error)) (id, credential []byte, err error)
}

// Mailer sends mail.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}

// Defaults of Options.
const (
	DefaultFlowRate    = 240
	DefaultWaitingTime = 50 * time.Millisecond
)

// The kinds of requests that Options.Limit limits.
const (
	LimitPage   = "page"   // any page
	LimitSignIn = "signin" // an attempt to sign in
	LimitMail   = "mail"   // a sign-in link by mail
	LimitInvite = "invite" // an attempt to use an invitation
)

// CalledAs is a name that a client gave itself, and the time when the client last used it.
type CalledAs struct {
	Name string
	At   time.Time
}

// RefusedRequest is the last request of a client that the server refused.
type RefusedRequest struct {
	Name   string    `json:"name"`  // the name that the client gave itself, or ""
	Asked  string    `json:"asked"` // the method and the path
	Status int       `json:"status"`
	Why    string    `json:"why"` // the reason, or ""
	Key    bool      `json:"key"` // the request had a key or a token
	At     time.Time `json:"-"`
}

// Options configure the pages.
type Options struct {
	// Issuer is the origin of the pages, such as https://example.com; required. MCPURL is
	// the address that people give to their clients.
	Issuer, MCPURL string
	// Accounts stores users and everything that belongs to them, such as sessions; required.
	Accounts *store.Store
	// OAuth is the built-in authorization server. It is nil if tokens of another issuer
	// are used; then there is no consent page.
	OAuth *oauth.Server
	// Service performs operations; required.
	Service *service.Service
	// FlowRate is how many flows an hour, such as visits to GitHub, a signed-in person may
	// begin; half as many are allowed at once. 0 means DefaultFlowRate. Sign-ins, which
	// anybody can begin, are limited by network address.
	FlowRate int
	// Editing are the limits of the pages that change files.
	Editing EditLimits

	// Each way to sign in may be nil.
	GitHub, OIDC Provider
	Passkeys     PasskeyService
	Mail         Mailer

	// App is the GitHub App with which people connect repositories; required.
	App *app.Client
	// PollEvery is how often the remote of a recently used space is checked; 0 means never.
	// Webhooks reports that GitHub announces pushes.
	PollEvery time.Duration
	Webhooks  bool
	// Stdio is the command, with its arguments, with which a program on this machine uses
	// the server. It is shown to admins of a server that only its own machine can reach.
	// It may be empty.
	Stdio []string
	// Live sends commits to open pages; nil means a new Live, which receives no events.
	Live *Live
	// WaitingTime is how long a page that is not about one space looks for changes that wait
	// for review; 0 means DefaultWaitingTime.
	WaitingTime time.Duration

	// Limit reports whether one more request is allowed, or how long to wait; nil means no
	// limits.
	Limit func(r *http.Request, what string) (wait time.Duration, ok bool)
	// Address returns the network address of the sender of a request, for the list of
	// sessions; nil means the address of the connection.
	Address func(*http.Request) string
	// Called returns the names, as "name/version", of the clients that used a grant
	// recently, the latest first; nil means that none are known.
	Called func(space.GrantID) []CalledAs

	// Refused returns the last requests of clients that the server refused, the latest first.
	// If all is false, it returns only those from the network address. nil means that none are
	// known.
	Refused func(address string, all bool) []RefusedRequest

	// InviteLifetime and LinkLifetime are the lifetimes of invitations and sign-in links;
	// 0 means the default.
	InviteLifetime, LinkLifetime time.Duration
	// Logger receives errors; nil discards them.
	Logger  *slog.Logger
	Version string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}
