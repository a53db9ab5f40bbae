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

// Admitter admits new users and creates their own space.
type Admitter interface {
	// Admit checks that the allow list or the invitation lets the person in, and accepts
	// the invitation in the transaction that creates the user. A user who was suspended
	// because an entry of the allow list is gone returns if another entry matches. name is
	// the user name that the person chose; if it is empty, it is derived from the identity.
	// The error is a fault.Forbidden if the person is not let in, a fault.NotFound if the
	// invitation is no longer valid, and a fault.Conflict or fault.Invalid for the name.
	Admit(ctx context.Context, c auth.ExternalIdentity, invitation, name string) (store.User, error)
}

// Provider is an external service with which people sign in. A provider that also has a
// method Ready() bool is offered only while that returns true.
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

// The limits of Options.Limit.
const (
	LimitPage   = "page"   // any page
	LimitSignIn = "signin" // an attempt to sign in
	LimitMail   = "mail"   // a sign-in link by mail
	LimitInvite = "invite" // an attempt to use an invitation
)

// CalledAs is a name that a client gave itself, and when it last used it.
type CalledAs struct {
	Name string
	At   time.Time
}

// Options configure the pages.
type Options struct {
	// Issuer is the origin of the pages, such as https://example.com; required. MCPURL is
	// the address that people give to their clients.
	Issuer, MCPURL string
	// Accounts holds users, sessions and all that they own; required.
	Accounts *store.Store
	// OAuth is the built-in authorization server. It is nil if tokens of another issuer
	// are used; then there is no consent page.
	OAuth *oauth.Server
	// People admits new users; required.
	People Admitter

	// Workspace and History read the content of spaces, and Operations change it. All are
	// required.
	Workspace  tools.Workspace
	History    History
	Operations Operations
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

	// App is the GitHub App with which people connect repositories. If it is nil, there
	// are no pages for that.
	App GitHubApp
	// PollEvery is how often the remote of a space in use is checked; 0 means never.
	// Webhooks reports that GitHub announces pushes.
	PollEvery time.Duration
	Webhooks  bool
	// Stdio is the command, with its arguments, with which a program on this machine uses
	// the server. It is shown to admins of a server that only its own machine can reach.
	// It may be empty.
	Stdio []string
	// Live sends commits to open pages; nil means one without events.
	Live *Live
	// Reviews may be nil. Then nothing waits for review.
	Reviews Reviews
	// WaitingTime is how long a page about many spaces looks for changes that wait for
	// review; 0 means DefaultWaitingTime.
	WaitingTime time.Duration
	Remotes     Remotes // required

	// Health reports the state of the server to admins. If it is nil, there are no pages
	// for that.
	Health Health

	// Limit reports whether one more request is allowed, or how long to wait; nil means no
	// limits.
	Limit func(r *http.Request, what string) (wait time.Duration, ok bool)
	// Address returns the network address of the sender of a request, for the list of
	// sessions; nil means the address of the connection.
	Address func(*http.Request) string
	// Called returns the names, as "name/version", of the clients that used a grant
	// recently, the latest first; nil means that none are known.
	Called func(space.GrantID) []CalledAs

	// InviteLifetime and LinkLifetime are the lifetimes of invitations and sign-in links;
	// 0 means the default.
	InviteLifetime, LinkLifetime time.Duration
	// Logger receives errors; nil discards them.
	Logger  *slog.Logger
	Version string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// GitHubApp is the server's GitHub App. Its errors are faults, whose public text the
// pages show.
type GitHubApp interface {
	// App returns the App without its secrets; ok is false if there is none yet.
	App(ctx context.Context) (a auth.GitHubApp, ok bool, err error)
	// Manifest returns the field manifest that a browser posts to GitHub, and the address
	// to post it to. GitHub sends the browser back to app.PathCreated with a code and the
	// state.
	Manifest(state string, n app.NewApp) (action string, manifest []byte, err error)
	// Create creates the App from the code of a manifest. It returns a fault.Conflict if
	// there is an App, and a fault.Invalid if the code is no longer valid.
	Create(ctx context.Context, by space.UserID, code string) (auth.GitHubApp, error)
	// Enter verifies and stores an App that was created by hand.
	Enter(ctx context.Context, by space.UserID, a auth.GitHubApp) (auth.GitHubApp, error)
	// Forget deletes the App and its secrets; every link becomes a removed one.
	Forget(ctx context.Context, by space.UserID) error
	// InstallURL is where people install the App.
	InstallURL(ctx context.Context, state string) (string, error)
	// Begin returns the address at which a person signs in to GitHub, and the data that
	// Finish needs.
	Begin(ctx context.Context, redirectURI, state string) (location string, flow []byte, err error)
	// Finish returns the repositories that the person who came back can push to; q is the
	// query of their request.
	Finish(ctx context.Context, redirectURI string, flow []byte, q url.Values) (app.Found, error)
	// FinishCreate is Finish, but first creates a repository with the person's token.
	FinishCreate(ctx context.Context, redirectURI string, flow []byte, q url.Values, r app.NewRepository) (app.Found, error)
	// Link connects a repository of f, which must be a result of Finish.
	Link(ctx context.Context, by space.UserID, id space.SpaceID, f app.Found, repository int64) (auth.RepositoryLink, error)
	// Taken returns the repositories that are linked to other spaces.
	Taken(ctx context.Context, id space.SpaceID) (map[int64]space.SpaceID, error)
	Linked(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error)
	Unlink(ctx context.Context, by space.UserID, id space.SpaceID) error
	// Recheck checks with GitHub whether the link still works.
	Recheck(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, error)
	// AskApproval records that an owner of an organisation was asked to approve the App
	// for a space. Waiting returns when that was.
	AskApproval(ctx context.Context, id space.SpaceID, user space.UserID) error
	Waiting(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error)
}
