package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// tokenKey identifies the repository of a token, and the installation of an App through which the
// token reaches the repository.
type tokenKey struct{ app, installation, repository int64 }

// tokenEntry gets the tokens for a key.
type tokenEntry struct {
	turn chan struct{} // has capacity 1; held while the Transport is used
	*ghinstallation.Transport
}

// tokens holds the tokens, only in memory. Each key has one transport, so that concurrent
// syncs share a token.
type tokens struct {
	mu sync.Mutex
	by map[tokenKey]*tokenEntry
}

// drop forgets the tokens for whose keys match returns true.
func (t *tokens) drop(match func(tokenKey) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.by {
		if match(k) {
			delete(t.by, k)
		}
	}
}

func (t *tokens) dropAll() { t.drop(func(tokenKey) bool { return true }) }

func (t *tokens) dropLink(l auth.RepositoryLink) {
	t.drop(func(k tokenKey) bool { return k.installation == l.Installation && k.repository == l.Repository })
}

func (c *Client) signer(a auth.GitHubApp) (*ghinstallation.AppsTransport, error) {
	s, err := ghinstallation.NewAppsTransport(c.bounded(), a.ID, []byte(a.Secrets.PrivateKey))
	if err != nil {
		return nil, errBadKey()
	}
	return s, nil
}

func (c *Client) entry(a auth.GitHubApp, k tokenKey) (*tokenEntry, error) {
	c.tokens.mu.Lock()
	defer c.tokens.mu.Unlock()
	if e := c.tokens.by[k]; e != nil {
		return e, nil
	}
	// Each entry has its own signer, because a transport writes to its signer without a lock.
	s, err := c.signer(a)
	if err != nil {
		return nil, err
	}
	e := &tokenEntry{turn: make(chan struct{}, 1), Transport: ghinstallation.NewFromAppsTransport(s, k.installation)}
	e.BaseURL = c.o.API
	// Without these options, the token would be valid for the whole installation.
	e.InstallationTokenOptions = &github.InstallationTokenOptions{
		RepositoryIDs: []int64{k.repository},
		Permissions:   &github.InstallationPermissions{Contents: github.Ptr("write"), Metadata: github.Ptr("read")},
	}
	c.tokens.by[k] = e
	return e, nil
}

// token returns a token for one repository, with its expiry.
func (c *Client) token(ctx context.Context, a auth.GitHubApp, k tokenKey) (token string, expires time.Time, err error) {
	e, err := c.entry(a, k)
	if err != nil {
		return "", time.Time{}, err
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return "", time.Time{}, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	if token, err = e.Token(ctx); err == nil {
		expires, _, err = e.Expiry()
	}
	if err == nil {
		err = restricted(e.Transport, token, k)
	}
	if err != nil {
		c.tokens.drop(func(o tokenKey) bool { return o == k })
		return "", time.Time{}, c.mintError(err)
	}
	return token, expires, nil
}

// restricted returns an error if a token is malformed, or if GitHub lists other repositories for
// the token than the requested one. It accepts an empty list.
func restricted(t *ghinstallation.Transport, token string, k tokenKey) error {
	repositories, err := t.Repositories()
	if err != nil {
		return err
	}
	switch {
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("github: the answer has no token")
	// GitHub lists the repositories to which the token is restricted, if it is restricted.
	case len(repositories) > 1 || len(repositories) == 1 && repositories[0].GetID() != k.repository:
		return errors.New("github: the token is not for the one repository that it was asked for")
	}
	return nil
}

// mintError returns the error of a failed request for a token. It is a statusError if GitHub
// answered with an error status.
func (c *Client) mintError(err error) error {
	var h *ghinstallation.HTTPError
	var u *url.Error
	switch {
	case errors.As(err, &h) && h.Response != nil:
		body, _ := io.ReadAll(h.Response.Body) // already in memory; see bounded
		return c.statusError(h.Response, body)
	case errors.As(err, &h) && h.RootCause != nil:
		err = h.RootCause
	}
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("github: get a token: %w", err)
}

// Credential implements space.Credentials for spaces with a connected repository. The
// credential is a token that is valid only for the contents of this repository. If access has
// ended, the error is a fault.Unavailable with a text for the person.
func (c *Client) Credential(ctx context.Context, r space.Repository) (space.Credential, error) {
	l, ok, err := c.o.Store.RepositoryLink(ctx, r.Space)
	switch {
	case err != nil:
		return space.Credential{}, err
	case !ok:
		return space.Credential{}, fault.New(fault.Unavailable, "The GitHub App no longer connects a repository to this space. Connect one on the space's page.")
	case r.URL != c.CloneURL(l.FullName):
		// Push only to the repository for which GitHub confirmed the person's right.
		return space.Credential{}, fault.New(fault.Unavailable, "This space is connected to the repository %s, but its remote is another one. Connect it again on the space's page.", l.FullName)
	case l.State != auth.LinkConnected:
		return space.Credential{}, stateError(l)
	}
	a, err := c.app(ctx)
	if err != nil {
		return space.Credential{}, err
	}
	k := tokenKey{a.ID, l.Installation, l.Repository}
	token, expires, err := c.token(ctx, a, k)
	if err != nil {
		return space.Credential{}, c.refusedToken(ctx, a, l, err)
	}
	return space.Credential{Username: "x-access-token", Secret: token, Expires: expires}, nil
}

// refusedToken finds out from err why GitHub issued no token, stores the state of the link if err
// determines the state, and returns the error for the person.
func (c *Client) refusedToken(ctx context.Context, a auth.GitHubApp, l auth.RepositoryLink, err error) error {
	if state := stateOf(err); state != "" {
		now := l
		now.State = state
		// Notify in the background, because the caller may hold a lock that OnState waits for.
		if _, _, err := c.settle(ctx, l, now, c.notifySoon); err != nil && fault.CodeOf(err) != fault.NotFound {
			c.log.Error("keep how a repository is connected", "space", l.Space, "error", err)
		}
		return stateError(now)
	}
	var status *statusError
	switch {
	case errors.As(err, &status) && status.wait > 0:
		return &fault.Error{Code: fault.Limited, Err: err, RetryAfter: status.wait, Public: "GitHub asks this server to wait."}
	case statusOf(err) == http.StatusUnauthorized:
		return fault.Wrap(err, fault.Unavailable, "GitHub no longer knows this server's GitHub App, or its key. An admin can create the App again.")
	case statusOf(err) != 0 && statusOf(err) < 500:
		return c.failure("get a token", err)
	}
	return err // GitHub did not answer, or has an error of its own
}

// stateOf returns the state of a link for which GitHub refused a token with err. It returns
// "" if err does not determine the state.
func stateOf(err error) auth.LinkState {
	var status *statusError
	if !errors.As(err, &status) || status.wait > 0 {
		return ""
	}
	switch {
	case status.status == http.StatusForbidden && strings.Contains(strings.ToLower(status.message), "suspended"):
		return auth.LinkSuspended
	case status.status == http.StatusNotFound:
		return auth.LinkRemoved
	case status.status == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(status.message), "repositor"):
		// GitHub's message is "There is at least one repository that does not exist or is
		// not accessible to the parent installation."
		return auth.LinkRemoved
	}
	return ""
}

// stateError returns the error for the use of a link that is not connected.
func stateError(l auth.RepositoryLink) error {
	what, way := l.Trouble(auth.AtGitHubTab)
	return fault.New(fault.Unavailable, "%s %s", what, way)
}

// Refused drops the tokens of a space's link, so that the next token is new, and starts a
// check of the link. Remotes call Refused when a repository refuses a token.
func (c *Client) Refused(r space.Repository) {
	l, ok, err := c.o.Store.RepositoryLink(c.ctx, r.Space)
	if err == nil && ok {
		c.tokens.dropLink(l)
		c.hints.add(r.Space)
	}
}

var _ space.Credentials = (*Client)(nil)
