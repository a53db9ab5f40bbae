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
	"satchel/internal/clientaddr"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// githubTokens are the GitHub App's tokens, for remotes, which are there before it.
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

// Refused reports that a repository did not take its token.
func (g *githubTokens) Refused(r space.Repository) {
	if c := g.client.Load(); c != nil {
		c.Refused(r)
	}
}

// addGitHub gives the pages the GitHub App, and remotes its tokens.
func (s *Server) addGitHub(o *web.Options) error {
	c, err := app.New(app.Options{
		Store: s.Accounts, URL: s.Config.Auth.GitHub.URL, Public: s.issuer, Hooks: reachable(s.issuer),
		Address: func(r *http.Request) string { return clientaddr.Key(s.addresses.Of(r)) }, Limit: s.front.unproven,
		Before:  func(ctx context.Context, l auth.RepositoryLink) error { return s.reviewSecrets(ctx, l) },
		OnState: func(ctx context.Context, l auth.RepositoryLink) error { return s.settleLink(ctx, l.Space) },
		OnPush:  s.remotes.Notify,
		Logger:  s.Log.With("part", "github app"),
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

// reachable reports whether GitHub could send something to an origin.
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
	// Anybody can send events, and each body takes one of few places while it arrives.
	within := min(app.DefaultWebhookTimeout, s.Config.Server.BodyTimeout)
	mux.Handle(app.PathWebhook, s.bodies.bound(s.named(s.github.client.Load().Webhook()), within))
}

// maxNamed bounds how many places of secrets a refusal names.
const maxNamed = 5

// reviewSecrets refuses to connect a space that holds what looks like secrets: the
// first push takes along all that was saved while nothing screened it.
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

// recheckGitHub is how long somebody who lost access at GitHub may push on. GitHub
// counts requests, so that it is hours.
const recheckGitHub = 6 * time.Hour

// watchGitHub has GitHub asked from time to time whether what people connected is
// still theirs to push to.
func (s *Server) watchGitHub(ctx context.Context) {
	if err := s.settleGitHub(ctx); err != nil && ctx.Err() == nil {
		s.Log.Error("bring remotes in line with connected repositories", "err", err)
	}
	// More often than each is due, so that a start does not ask for all at once, and
	// what was refused is tried again soon.
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		if err := s.github.client.Load().RecheckOlder(ctx, recheckGitHub); err != nil && ctx.Err() == nil {
			s.Log.Warn("look whether connected repositories are still people's to push to", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
