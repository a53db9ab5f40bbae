package server

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/auth/github/app"
	"satchel/auth/store"
	"satchel/internal/fault"
)

// appSignIn signs people in with the GitHub App if no OAuth client is configured. It works as
// soon as the App exists.
type appSignIn struct {
	client *app.Client
	store  *store.Store
	url    string
	orgs   bool
	log    *slog.Logger

	mu       sync.Mutex
	provider *github.Provider
	of       auth.GitHubApp // the App for which provider was created
}

// readyTimeout limits how long a page waits to find out whether there is an App.
const readyTimeout = 2 * time.Second

// Ready reports whether there is an App.
func (a *appSignIn) Ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	_, err := a.current(ctx)
	return err == nil
}

// Label implements web.Provider.
func (a *appSignIn) Label() string { return "GitHub" }

// Begin implements web.Provider.
func (a *appSignIn) Begin(ctx context.Context, redirectURI, state string) (string, []byte, error) {
	p, err := a.current(ctx)
	if err != nil {
		return "", nil, err
	}
	return p.Begin(ctx, redirectURI, state)
}

// Finish implements web.Provider.
func (a *appSignIn) Finish(ctx context.Context, redirectURI string, flow []byte, q url.Values) (auth.ExternalIdentity, error) {
	p, err := a.current(ctx)
	if err != nil {
		return auth.ExternalIdentity{}, err
	}
	return p.Finish(ctx, redirectURI, flow, q)
}

// current returns the provider of the current App.
func (a *appSignIn) current(ctx context.Context) (*github.Provider, error) {
	is, ok, err := a.store.GitHubApp(ctx)
	if err != nil {
		return nil, err
	}
	if !ok || is.URL != a.url {
		return nil, fault.New(fault.Unavailable, "Nobody can sign in with GitHub here. Sign in in another way.")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.provider != nil && a.of == is {
		return a.provider, nil
	}
	p, err := github.New(github.Options{ClientID: is.ClientID, ClientSecret: is.Secrets.ClientSecret, URL: is.URL, NeedOrgs: a.orgs, Logger: a.log})
	if err != nil {
		return nil, err
	}
	if a.provider != nil {
		a.provider.Close()
	}
	a.provider, a.of = p, is
	return p, nil
}

func (a *appSignIn) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.provider != nil {
		a.provider.Close()
	}
}
