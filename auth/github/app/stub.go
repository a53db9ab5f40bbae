package app

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func errStub() error { return fault.New(fault.Unavailable, "GitHub cannot be connected yet.") }

type tokenKey struct{}
type tokenEntry struct{}
type tokens struct{ by map[tokenKey]*tokenEntry }
type hints struct{}

func (*hints) start(int)                      {}
func (c *Client) followHints(context.Context) {}

// Manifest returns where the browser posts the form field "manifest", and what is
// in it. state comes back with the code to PathCreated; org is the login of the
// organisation that shall own the App, empty for the person; creates asks for the
// permission to make repositories.
func (c *Client) Manifest(state, org string, creates bool) (action string, manifest []byte, err error) {
	return "", nil, errStub()
}

// Create redeems the manifest's code and keeps the App; fault.Conflict where there
// is one, fault.Invalid for a dead code.
func (c *Client) Create(ctx context.Context, by space.UserID, code string) (auth.GitHubApp, error) {
	return auth.GitHubApp{}, errStub()
}

// Enter keeps an App that was made by hand, after GitHub said that the key is its.
func (c *Client) Enter(ctx context.Context, by space.UserID, a auth.GitHubApp) (auth.GitHubApp, error) {
	return auth.GitHubApp{}, errStub()
}

// Forget forgets the App; all links become removed.
func (c *Client) Forget(ctx context.Context, by space.UserID) error { return errStub() }

// InstallURL is where people install the App.
func (c *Client) InstallURL(ctx context.Context, state string) (string, error) { return "", errStub() }

// Begin returns where to send the browser, and what Finish needs.
func (c *Client) Begin(ctx context.Context, redirectURI, state string) (location string, flow []byte, err error) {
	return "", nil, errStub()
}

// Finish returns what the person who came back may connect.
func (c *Client) Finish(ctx context.Context, redirectURI string, flow []byte, q url.Values) (Found, error) {
	return Found{}, errStub()
}

// FinishCreate is Finish after it made a repository.
func (c *Client) FinishCreate(ctx context.Context, redirectURI string, flow []byte, q url.Values, r NewRepository) (Found, error) {
	return Found{}, errStub()
}

// Link connects a repository of f to a space.
func (c *Client) Link(ctx context.Context, by space.UserID, id space.SpaceID, f Found, repository int64) (auth.RepositoryLink, error) {
	return auth.RepositoryLink{}, errStub()
}

// Linked is a space's link.
func (c *Client) Linked(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error) {
	return c.o.Store.RepositoryLink(ctx, id)
}

// Unlink ends a space's link.
func (c *Client) Unlink(ctx context.Context, by space.UserID, id space.SpaceID) error {
	return errStub()
}

// Recheck asks GitHub now.
func (c *Client) Recheck(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, error) {
	return auth.RepositoryLink{}, errStub()
}

// RecheckAll is Recheck of every link.
func (c *Client) RecheckAll(ctx context.Context) error { return errStub() }

// AskApproval remembers that the person asked an owner to install the App.
func (c *Client) AskApproval(ctx context.Context, id space.SpaceID, user space.UserID) error {
	return c.o.Store.AskForApproval(ctx, id, user)
}

// Waiting tells since when a space waits for that.
func (c *Client) Waiting(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error) {
	return c.o.Store.PendingApproval(ctx, id)
}

// Credential implements space.Credentials for spaces that are linked.
func (c *Client) Credential(ctx context.Context, r space.Repository) (space.Credential, error) {
	return space.Credential{}, errStub()
}

// Webhook takes GitHub's events.
func (c *Client) Webhook() http.Handler { return http.NotFoundHandler() }
