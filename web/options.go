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
	"satchel/tools"
)

// Admitter makes a user, and the space that they own, of somebody who signs in
// for the first time.
type Admitter interface {
	// Admit checks that the allow list or the invitation lets the claimant in, and
	// accepts the invitation for them in the transaction that makes them a user. A
	// user whom an entry of the allow list no longer let in comes back by another.
	// name is the user name that the person wishes; empty for one made from the
	// claimant. The error is a fault.Forbidden if nobody lets them in, a
	// fault.NotFound if the invitation is over, and a fault.Conflict or
	// fault.Invalid for the name.
	Admit(ctx context.Context, c auth.ExternalIdentity, invitation, name string) (store.User, error)
}

// Provider is another service with which people sign in. One that also has a
// method Ready() bool is offered only while that says so.
type Provider interface {
	// Label is what the button says after "Sign in with".
	Label() string
	// Begin returns where to send the browser, and what Finish must be given.
	Begin(ctx context.Context, redirectURI, state string) (location string, flow []byte, err error)
	// Finish proves who came back; q is the query of their request.
	Finish(ctx context.Context, redirectURI string, flow []byte, q url.Values) (auth.ExternalIdentity, error)
}

// PasskeyService makes and checks passkeys.
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

// What Options.Limit is asked about.
const (
	LimitPage   = "page"   // any page
	LimitSignIn = "signin" // an attempt to sign in
	LimitMail   = "mail"   // a sign-in link by mail
	LimitInvite = "invite" // an attempt to use an invitation
)

// CalledAs is what a client calls itself, and when it did so last.
type CalledAs struct {
	Name string
	At   time.Time
}

// Options say what the pages are of.
type Options struct {
	// Issuer is the origin at which people reach the pages, such as
	// https://example.com; required. MCPURL is what they give to their clients.
	Issuer, MCPURL string
	// Accounts holds users, sessions and all that they own; required.
	Accounts *store.Store
	// OAuth is the built-in authorization server; nil if another issuer's
	// tokens are used, and then there is no page of consent.
	OAuth *oauth.Server
	// People lets new users in; required.
	People Admitter

	// Workspace and History read what spaces hold, and Operations change it; Tools
	// searches it. All are required.
	Workspace  tools.Workspace
	History    History
	Operations Operations
	// Service performs operations; required.
	Service *service.Service
	// FlowRate is how often an hour, in the long run, somebody who is signed in may
	// begin what the server remembers until it is done, such as a visit to GitHub, and
	// half as often at once; 0 is DefaultFlowRate. Sign-ins, which anybody may begin,
	// are limited by address.
	FlowRate int
	// Editing bounds what the pages that change files take.
	Editing EditLimits

	// Each way to sign in may be nil.
	GitHub, OIDC Provider
	Passkeys     PasskeyService
	Mail         Mailer

	// App is the GitHub App, by which people connect repositories; nil for none, and
	// then there are no such pages.
	App GitHubApp
	// Setup is what the first steps need; nil leaves out what it does.
	Setup Setup
	// PollEvery is how often the remote of a space in use is checked; 0 for never. With
	// Webhooks GitHub announces pushes.
	PollEvery time.Duration
	Webhooks  bool
	// Stdio is the command by which a program on this machine uses the server, and its
	// arguments. Admins of a server that only its machine reaches are shown it; empty:
	// nobody is.
	Stdio []string
	// Live tells open pages of commits; nil for one that nothing is published to.
	Live *Live
	// Reviews and Remotes may be nil: then nothing waits for a person, and no page
	// shows where spaces are pushed.
	Reviews Reviews
	// WaitingTime is how long a page that tells of many spaces looks for what waits in
	// them that it does not know yet; 0 is DefaultWaitingTime.
	WaitingTime time.Duration
	Remotes     Remotes

	// Ownership deletes spaces; nil leaves out the pages that delete spaces and give them away.
	Ownership Ownership

	// Health tells admins how the server is; nil: there are no such pages.
	Health Health

	// Limit reports whether one more request is fine, and else how long to wait;
	// nil for no limits.
	Limit func(r *http.Request, what string) (wait time.Duration, ok bool)
	// Address is the network address of who sent a request, for the list of
	// sessions; nil for the connection's.
	Address func(*http.Request) string
	// Called reports what the clients that called with a grant lately call themselves, as
	// "name/version", the last one first; nil for nothing known.
	Called func(space.GrantID) []CalledAs

	// InviteLifetime and LinkLifetime are how long what is made here is good;
	// 0 for the defaults.
	InviteLifetime, LinkLifetime time.Duration
	// Logger receives what went wrong; nil discards.
	Logger  *slog.Logger
	Version string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// GitHubApp is the server's GitHub App. Errors are faults; what they say in public
// is shown.
type GitHubApp interface {
	// App returns the App without its secrets; ok is false if there is none yet.
	App(ctx context.Context) (a auth.GitHubApp, ok bool, err error)
	// Manifest returns what a browser posts to GitHub, as the field manifest, and
	// where to. GitHub sends it back to app.PathCreated with a code and the
	// state.
	Manifest(state string, n app.NewApp) (action string, manifest []byte, err error)
	// Create makes the App of a manifest's code; fault.Conflict if there is one,
	// fault.Invalid for a dead code.
	Create(ctx context.Context, by space.UserID, code string) (auth.GitHubApp, error)
	// Enter proves and keeps an App that was made by hand.
	Enter(ctx context.Context, by space.UserID, a auth.GitHubApp) (auth.GitHubApp, error)
	// Forget drops the App and its secrets; every link becomes a removed one.
	Forget(ctx context.Context, by space.UserID) error
	// InstallURL is where people install the App.
	InstallURL(ctx context.Context, state string) (string, error)
	// Begin returns where to send a browser to say who it is at GitHub, and what
	// Finish must be given.
	Begin(ctx context.Context, redirectURI, state string) (location string, flow []byte, err error)
	// Finish reports what the person who came back may push to; q is the query of
	// their request.
	Finish(ctx context.Context, redirectURI string, flow []byte, q url.Values) (app.Found, error)
	// FinishCreate makes a repository with the person's token first.
	FinishCreate(ctx context.Context, redirectURI string, flow []byte, q url.Values, r app.NewRepository) (app.Found, error)
	// Link connects a repository of f, which must be what Finish returned.
	Link(ctx context.Context, by space.UserID, id space.SpaceID, f app.Found, repository int64) (auth.RepositoryLink, error)
	// Taken reports which repositories other spaces than this are kept in.
	Taken(ctx context.Context, id space.SpaceID) (map[int64]space.SpaceID, error)
	Linked(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error)
	Unlink(ctx context.Context, by space.UserID, id space.SpaceID) error
	// Recheck asks GitHub now whether the link still holds.
	Recheck(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, error)
	// AskApproval notes that an owner of an organisation was asked to approve the
	// App for a space, and Waiting since when.
	AskApproval(ctx context.Context, id space.SpaceID, user space.UserID) error
	Waiting(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error)
}
