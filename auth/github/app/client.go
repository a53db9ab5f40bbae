package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// DefaultWebhookTimeout is how long GitHub waits for the answer to a webhook.
const DefaultWebhookTimeout = 10 * time.Second

// Options configures a Client. Store and Public are required. A zero field means the default.
type Options struct {
	Store Store
	// URL is the address of GitHub, and API is the address of its REST API; see
	// github.Addresses.
	URL, API string
	// Public is the origin of this server. GitHub sends people there.
	Public string
	// Hooks reports whether GitHub can reach this server at Public to send webhooks.
	Hooks bool
	// Transport sends the requests. The default is a transport with timeouts. The Client
	// follows no redirects.
	Transport http.RoundTripper
	// Timeout is the maximum time of one request with its answer. The default is 10 seconds.
	Timeout time.Duration
	// VisitTimeout is the maximum time of all requests of one visit. The default is 30
	// seconds.
	VisitTimeout time.Duration
	// RevokeTimeout is the maximum time to revoke a person's token. The default is 3
	// seconds. A failure is only logged.
	RevokeTimeout time.Duration
	// MaxResponse is the maximum size of an answer in bytes. The default is 4 MiB, because
	// a list contains a hundred repositories of up to 10 kB each.
	MaxResponse int64
	// MaxInstallations and MaxRepositories are the maximum counts of a person's
	// installations and repositories to read. The defaults are 100 and 1000.
	MaxInstallations, MaxRepositories int
	// MaxFound is the maximum size of the JSON of a Found in bytes. The default is 40 KiB,
	// so that the JSON fits into the data of a pending sign-in.
	MaxFound int
	// MaxWebhook is the maximum size of one webhook's body in bytes. The default is 1 MiB.
	MaxWebhook int64
	// MaxWebhooks is the maximum number of webhooks' bodies in memory. MaxWebhookBytes is
	// the maximum of their total size. The defaults are 64 and 16 MiB. One address can use a
	// quarter of each. A webhook that finds no room within WebhookTimeout is refused. The
	// default of WebhookTimeout is 10 seconds, as long as GitHub waits. The caller limits
	// how long a body may take to arrive.
	MaxWebhooks     int
	MaxWebhookBytes int64
	WebhookTimeout  time.Duration
	// Address returns the address of a request's sender. If Address is nil, all requests
	// count as requests of one sender.
	Address func(r *http.Request) string
	// Limit reports whether the sender of r may send another webhook that is not provably
	// GitHub's. If not, wait is how long the sender must wait. If count is set, Limit
	// counts r as such a webhook. If Limit is nil, there is no limit.
	Limit func(r *http.Request, count bool) (wait time.Duration, ok bool)
	// WebhookQueue is the maximum number of spaces that wait for a check because of
	// webhooks. The default is 1000. Further spaces wait for RecheckAll.
	WebhookQueue int

	// Before is called before a repository is connected. If it returns an error, the
	// repository is not connected. It may be nil.
	Before func(ctx context.Context, l auth.RepositoryLink) error
	// OnState is called with a link after the link was created, changed or ended. An ended
	// link has the State "". If OnState fails for a new link, the link is removed again.
	// OnState may be nil.
	OnState func(ctx context.Context, l auth.RepositoryLink) error
	// OnPush is called when GitHub reports a push to a space's repository. It may be nil.
	OnPush func(id space.SpaceID)
	// OnBranch is called when GitHub reports a push to a branch of any repository on which the
	// App is installed. repository is the address of the repository. standard reports whether the
	// branch is the repository's default branch. OnBranch must not block. It may be nil.
	OnBranch func(repository, branch string, standard bool)

	Logger *slog.Logger
	Now    func() time.Time
}

func (o *Options) setDefaults() error {
	if o.Store == nil {
		return errors.New("github app: a store is needed")
	}
	var err error
	if o.URL, o.API, err = github.Addresses(o.URL, o.API); err != nil {
		return err
	}
	u, err := url.Parse(o.Public)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("github app: the origin %q of this server is not of the form https://example.com", o.Public)
	}
	o.Public = u.Scheme + "://" + u.Host
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{{&o.Timeout, 10 * time.Second}, {&o.VisitTimeout, 30 * time.Second}, {&o.RevokeTimeout, 3 * time.Second}, {&o.WebhookTimeout, DefaultWebhookTimeout}} {
		if *d.value <= 0 {
			*d.value = d.otherwise
		}
	}
	for _, n := range []struct {
		value     *int
		otherwise int
	}{{&o.MaxInstallations, 100}, {&o.MaxRepositories, 1000}, {&o.MaxFound, 40 << 10}, {&o.WebhookQueue, 1000}, {&o.MaxWebhooks, 64}} {
		if *n.value <= 0 {
			*n.value = n.otherwise
		}
	}
	if o.MaxResponse <= 0 {
		o.MaxResponse = 4 << 20
	}
	if o.MaxWebhook <= 0 {
		o.MaxWebhook = 1 << 20
	}
	if o.MaxWebhookBytes <= 0 {
		o.MaxWebhookBytes = 16 << 20
	}
	if o.Address == nil {
		o.Address = func(*http.Request) string { return "" }
	}
	if o.Limit == nil {
		o.Limit = func(*http.Request, bool) (time.Duration, bool) { return 0, true }
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    o.Timeout,
			ResponseHeaderTimeout:  o.Timeout,
			IdleConnTimeout:        time.Minute,
			MaxIdleConnsPerHost:    4,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	if o.OnState == nil {
		o.OnState = func(context.Context, auth.RepositoryLink) error { return nil }
	}
	if o.Before == nil {
		o.Before = func(context.Context, auth.RepositoryLink) error { return nil }
	}
	if o.OnPush == nil {
		o.OnPush = func(space.SpaceID) {}
	}
	if o.OnBranch == nil {
		o.OnBranch = func(string, string, bool) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// Client is this server's side of the App. It is safe for concurrent use.
type Client struct {
	o             Options
	log           *slog.Logger
	client        *http.Client
	tokens        tokens
	hints         hints
	notifications notifications
	bodies        *bodies
	unsigned      refused
	crowded       refused

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup
}

// New returns a Client. It sends no request to GitHub. It starts the goroutines that process
// webhooks and report changes of links. Close ends them. The error names the invalid option.
func New(o Options) (*Client, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	c := &Client{o: o, log: o.Logger, bodies: newBodies(o.MaxWebhooks, o.MaxWebhookBytes)}
	c.client = &http.Client{
		Transport: o.Transport,
		Timeout:   o.Timeout,
		// Redirects are not followed, so that no token or secret goes elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.tokens.by = map[tokenKey]*tokenEntry{}
	c.hints.start(o.WebhookQueue)
	c.notifications.start()
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.work.Go(func() { c.followHints(c.ctx) })
	c.work.Go(func() { c.followNotifications(c.ctx) })
	return c, nil
}

// Close ends the Client's background work.
func (c *Client) Close() {
	c.stop()
	c.work.Wait()
	c.client.CloseIdleConnections()
}

// Address returns GitHub's address, such as https://github.com.
func (c *Client) Address() string { return c.o.URL }

// Hooked reports whether GitHub can send this server webhooks.
func (c *Client) Hooked() bool { return c.o.Hooks }

// CloneURL returns a repository's address for git. It derives the address from the name,
// and ignores addresses from GitHub.
func (c *Client) CloneURL(fullName string) string { return c.o.URL + "/" + fullName + ".git" }

// App returns the App without its secrets. It returns false if there is no App.
func (c *Client) App(ctx context.Context) (auth.GitHubApp, bool, error) {
	a, ok, err := c.o.Store.GitHubApp(ctx)
	a.Secrets = auth.GitHubSecrets{}
	return a, ok, err
}

// app returns the App with its secrets. The error is a fault.Unavailable if there is no App at
// the configured GitHub.
func (c *Client) app(ctx context.Context) (auth.GitHubApp, error) {
	a, ok, err := c.o.Store.GitHubApp(ctx)
	switch {
	case err != nil:
		return auth.GitHubApp{}, err
	case !ok:
		return auth.GitHubApp{}, fault.New(fault.Unavailable, "This server has no GitHub App. An admin can create one.")
	case a.URL != c.o.URL:
		return auth.GitHubApp{}, fault.New(fault.Unavailable, "This server's GitHub App is at %s, but the configuration names %s (auth.github.url).", a.URL, c.o.URL)
	}
	return a, nil
}
