package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/clientaddr"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// githubTokens provides the tokens of the GitHub App to remotes, which are opened before
// the App.
type githubTokens struct {
	client atomic.Pointer[app.Client]
	links  followedLinks
}

var _ space.Credentials = (*githubTokens)(nil)

func (g *githubTokens) Credential(ctx context.Context, r space.Repository) (space.Credential, error) {
	c := g.client.Load()
	if c == nil {
		return space.Credential{}, fault.New(fault.Unavailable, "Only a running server can sync a repository that the GitHub App connects. Start the server.")
	}
	return c.Credential(ctx, r)
}

// Refused reports that a repository refused its token.
func (g *githubTokens) Refused(r space.Repository) {
	if c := g.client.Load(); c != nil {
		c.Refused(r)
	}
}

// addGitHub gives the GitHub App to the pages, and its tokens to remotes.
func (s *Server) addGitHub(o *web.Options) error {
	c, err := app.New(app.Options{
		Store: s.Accounts, URL: s.Config.Auth.GitHub.URL, Public: s.issuer, Hooks: reachable(s.issuer),
		Address: func(r *http.Request) string { return clientaddr.Key(s.addresses.Of(r)) }, Limit: s.front.unproven,
		Before:  func(ctx context.Context, l auth.RepositoryLink) error { return s.reviewSecrets(ctx, l) },
		OnState: func(ctx context.Context, l auth.RepositoryLink) error { return s.settleLink(ctx, l.Space) },
		OnPush:  s.remotes.Notify,
		OnBranch: func(repository, branch string, standard bool) {
			s.syncs.Pushed(upstream.Push{Repository: repository, Branch: branch, Default: standard})
		},
		Logger: s.Log.With("part", "github app"),
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, c.Close)
	s.github.client.Store(c)
	o.App = c
	if o.GitHub == nil {
		p := &appSignIn{client: c, store: s.Accounts, url: c.Address(), orgs: len(s.Config.Auth.AllowGitHubOrgs) > 0, log: s.Log.With("part", "github")}
		o.GitHub = p
		s.closers = append(s.closers, p.close)
	}
	return nil
}

// reachable reports whether GitHub could send requests to an origin.
func reachable(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	_, last, dotted := strings.Cut(host, ".")
	return dotted && last != "" && !strings.HasSuffix(host, ".local") && !strings.HasSuffix(host, ".localhost") && !strings.HasSuffix(host, ".internal")
}

// routeWebhook adds the endpoint for GitHub's webhooks.
func (s *Server) routeWebhook(mux *http.ServeMux) {
	// Anyone can send events. Only a few may arrive at a time, so each must arrive soon.
	within := min(app.DefaultWebhookTimeout, s.Config.Server.BodyTimeout)
	mux.Handle(app.PathWebhook, s.bodies.bound(s.named(s.github.client.Load().Webhook()), within))
}

// maxNamed is the maximum number of places of secrets that a refusal lists.
const maxNamed = 5

// reviewSecrets refuses to connect a space with likely secrets. The first push would publish
// those that the space accepted while it had no remote.
func (s *Server) reviewSecrets(ctx context.Context, l auth.RepositoryLink) error {
	had, has, err := s.remotes.Get(ctx, l.Space)
	if err != nil || !s.Config.Space.ScreenSecrets || has && had.URL == s.github.client.Load().CloneURL(l.FullName) {
		return err
	}
	var places []string
	err = s.Git.WalkBlobs(ctx, l.Space, "", func(at space.CommitID, p space.Path, content []byte) error {
		err := s.secrets.Screen(ctx, l.Space, p, content, nil)
		var refusal *secretscan.Refusal
		if !errors.As(err, &refusal) {
			return err
		}
		if p == "" {
			p = space.Path("the message or a name of " + at.Short())
		}
		for _, f := range refusal.Findings {
			places = append(places, fmt.Sprintf("%s:%d (%s)", p, f.Line, f.Fingerprint))
		}
		return nil
	})
	if err != nil || len(places) == 0 {
		return err
	}
	more := ""
	if n := len(places) - maxNamed; n > 0 {
		places, more = places[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fault.New(fault.Conflict, "The space has something that looks like secrets, which would be pushed: %s%s. Remove them with “satchel space purge”, or keep one with “satchel space allow” and its number; then connect the repository.", strings.Join(places, ", "), more)
}

// recheckGitHub is about how long a person can still push after they lose access at GitHub. It
// is several hours, because GitHub limits the number of requests.
const recheckGitHub = 6 * time.Hour

// watchGitHub regularly checks with GitHub whether people may still push to the
// repositories that they connected.
func (s *Server) watchGitHub(ctx context.Context) {
	if err := s.settleGitHub(ctx); err != nil && ctx.Err() == nil {
		s.Log.Error("bring remotes in line with connected repositories", "err", err)
	}
	// Look more often than each check is due. A start then does not check all repositories
	// at once, and failed checks are tried again soon.
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		if err := s.github.client.Load().RecheckOlder(ctx, recheckGitHub); err != nil && ctx.Err() == nil {
			s.Log.Warn("check whether people may still push to connected repositories", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
