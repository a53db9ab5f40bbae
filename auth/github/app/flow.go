package app

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/internal/fault"
)

// Begin returns the address to which the caller sends the browser, where the person signs
// in at GitHub. It also returns the data for Finish, which the caller keeps for one use.
// The state must be fresh and unguessable. The caller must tie the state to the browser and to
// the session. Begin sends no request.
func (c *Client) Begin(ctx context.Context, redirectURI, state string) (location string, data []byte, err error) {
	a, err := c.app(ctx)
	if err != nil {
		return "", nil, err
	}
	// select_account makes GitHub ask people with several accounts which one to use.
	return github.WebFlow{GitHub: c.o.URL, App: a.ID, Redirect: redirectURI, State: state}.Begin(a.ClientID, url.Values{"prompt": {"select_account"}})
}

// Finish returns the repositories that a person may connect after their visit to GitHub.
// data is the data from Begin, and q is the query of the request to the redirect URI. The
// caller checks that this browser began the flow, and that the flow is used once. The error
// is a fault: Forbidden if the person declined, Invalid if they must begin again, Limited
// if GitHub's rate limit is exceeded, and Unavailable if GitHub is down or there is no App.
func (c *Client) Finish(ctx context.Context, redirectURI string, data []byte, q url.Values) (Found, error) {
	return c.visit(ctx, redirectURI, data, q, func(context.Context, auth.GitHubApp, person) (int64, error) { return 0, nil })
}

// FinishCreate creates a repository with the person's own rights, and then does the same as
// Finish. The App needs the permission to create repositories. The error can also be
// Invalid if r is invalid, Conflict if GitHub rejects the name, and Forbidden if the person or
// the App may not create a repository in that account.
func (c *Client) FinishCreate(ctx context.Context, redirectURI string, data []byte, q url.Values, r NewRepository) (Found, error) {
	if err := checkNew(r); err != nil {
		return Found{}, err
	}
	return c.visit(ctx, redirectURI, data, q, func(ctx context.Context, a auth.GitHubApp, p person) (int64, error) {
		return c.create(ctx, a, p, r)
	})
}

// person is the GitHub account of a person who came back from GitHub, with their token.
type person struct {
	id    int64
	login string
	token string
}

// visit redeems the code, calls the function first, finds the repositories that the person
// may connect, and revokes the token.
func (c *Client) visit(ctx context.Context, redirectURI string, data []byte, q url.Values, first func(context.Context, auth.GitHubApp, person) (int64, error)) (Found, error) {
	f, code, err := github.OpenWebFlow(redirectURI, data, q)
	var refused *github.AnswerError
	switch {
	case errors.As(err, &refused) && refused.Code == "access_denied":
		return Found{}, fault.New(fault.Forbidden, "You did not let this server see your repositories at GitHub, so nothing was connected. You can try again.")
	case err != nil:
		return Found{}, again(err)
	}
	a, err := c.app(ctx)
	if err != nil {
		return Found{}, err
	}
	if f.GitHub != c.o.URL || f.App != a.ID {
		return Found{}, again(errors.New("begun with another App"))
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.VisitTimeout)
	defer cancel()
	p := person{}
	if p.token, err = c.exchange(ctx, a, f, code); err != nil {
		return Found{}, err
	}
	defer c.endToken(ctx, a, p.token)
	if err := c.whoIs(ctx, &p); err != nil {
		return Found{}, err
	}
	created, err := first(ctx, a, p)
	if err != nil {
		return Found{}, err
	}
	found, err := c.find(ctx, a, p, created)
	if err != nil {
		return Found{}, err
	}
	found.Created = created
	return found, nil
}

// exchange redeems the code for the person's token.
func (c *Client) exchange(ctx context.Context, a auth.GitHubApp, f github.WebFlow, code string) (token string, err error) {
	r, err := f.Redeem(ctx, a.ClientID, a.Secrets.ClientSecret, code)
	if err != nil {
		return "", err
	}
	var answer github.TokenAnswer
	if _, err := c.send(r, &answer); err != nil {
		return "", c.failure("redeem a code", err)
	}
	token, err = answer.Token()
	var refused *github.AnswerError
	switch {
	case err == nil:
		return token, nil
	case !errors.As(err, &refused):
		return "", c.failure("redeem a code", err)
	case refused.MustBeginAgain():
		return "", again(err)
	case refused.Code == "unverified_user_email":
		return "", fault.Wrap(err, fault.Forbidden, "GitHub asks you to verify your e-mail address there first.")
	}
	c.log.Error("the GitHub App is not set up properly", "url", c.o.URL, "error", err)
	return "", fault.Wrap(err, fault.Unavailable, "The GitHub App is not set up properly. Please tell the people who run this server.")
}

// again returns the error for a person who must begin again.
func again(why error) error {
	return fault.Wrap(why, fault.Invalid, "This visit to GitHub has ended or was started elsewhere, and nothing was connected. Please start again.")
}

// whoIs sets the ID and the login of the person who owns the token.
func (c *Client) whoIs(ctx context.Context, p *person) error {
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Type  string `json:"type"`
	}
	if _, err := c.call(ctx, p.token, http.MethodGet, "/user", nil, &user); err != nil {
		return c.failure("ask who a person is", err)
	}
	if user.ID <= 0 || !loginForm().MatchString(user.Login) || user.Type != "" && user.Type != "User" {
		return c.failure("ask who a person is", errors.New("github: the account has no id or login, or is not a person's"))
	}
	p.id, p.login = user.ID, user.Login
	return nil
}

// endToken revokes a person's token after its use. Otherwise the token would be valid for
// eight hours.
func (c *Client) endToken(ctx context.Context, a auth.GitHubApp, token string) {
	// Revoke the token even if the person has closed the page.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.RevokeTimeout)
	defer cancel()
	if err := c.revoke(ctx, a, token); err != nil {
		c.log.Warn("a person's GitHub token could not be revoked; it ends by itself or in their settings there", "error", err)
	}
}

func (c *Client) revoke(ctx context.Context, a auth.GitHubApp, token string) error {
	r, err := c.request(ctx, http.MethodDelete, c.o.API+"/applications/"+url.PathEscape(a.ClientID)+"/token", map[string]string{"access_token": token})
	if err != nil {
		return err
	}
	r.SetBasicAuth(a.ClientID, a.Secrets.ClientSecret)
	_, err = c.send(r, nil)
	return err
}
