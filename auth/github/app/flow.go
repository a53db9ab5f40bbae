package app

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"satchel/auth"
	"satchel/internal/fault"
)

// flow is what Finish must know of Begin. It holds secrets: its keeper gives it to
// nobody, once.
type flow struct {
	GitHub   string `json:"github"`
	App      int64  `json:"app"`
	Redirect string `json:"redirect"`
	State    string `json:"state"`
	Verifier string `json:"verifier"`
}

// maxFlow and maxParameter bound, in bytes, what Finish is given.
const (
	maxFlow      = 8 << 10
	maxParameter = 8 << 10
)

// Begin returns where to send the browser so that the person proves who they are at
// GitHub, and what Finish needs, which the caller keeps for one use. The state must
// be a fresh one that nobody can guess and that the caller ties to the browser and
// to the session. It makes no request.
func (c *Client) Begin(ctx context.Context, redirectURI, state string) (location string, data []byte, err error) {
	a, err := c.app(ctx)
	if err != nil {
		return "", nil, err
	}
	f := flow{GitHub: c.o.URL, App: a.ID, Redirect: redirectURI, State: state, Verifier: oauth2.GenerateVerifier()}
	if data, err = json.Marshal(f); err != nil {
		return "", nil, fmt.Errorf("github app: %w", err)
	}
	q := url.Values{
		"client_id": {a.ClientID}, "redirect_uri": {redirectURI}, "state": {state},
		// Who has two accounts there is asked which.
		"prompt":         {"select_account"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(f.Verifier)}, "code_challenge_method": {"S256"},
	}
	return c.o.URL + "/login/oauth/authorize?" + q.Encode(), data, nil
}

// Finish returns what the person who came back may connect, from what Begin
// returned and the query of the request to the redirect URI, of which the code and
// the state alone count. Whoever calls it has made sure that the flow is this
// browser's, and that it is used once. The error is a fault: Forbidden where the
// person said no, Invalid where they must begin again, Limited where GitHub asks to
// wait, and Unavailable while it is down or where there is no App.
func (c *Client) Finish(ctx context.Context, redirectURI string, data []byte, q url.Values) (Found, error) {
	return c.visit(ctx, redirectURI, data, q, func(context.Context, auth.GitHubApp, person) (int64, error) { return 0, nil })
}

// FinishCreate is Finish after it made a repository with the person's own right,
// for an App with that permission. The error is a fault, beside those of Finish:
// Invalid for a name that is none, Conflict where there is a repository of that
// name, Forbidden where the person or the App may not make one there.
func (c *Client) FinishCreate(ctx context.Context, redirectURI string, data []byte, q url.Values, r NewRepository) (Found, error) {
	if err := checkNew(r); err != nil {
		return Found{}, err
	}
	return c.visit(ctx, redirectURI, data, q, func(ctx context.Context, a auth.GitHubApp, p person) (int64, error) {
		return c.create(ctx, a, p, r)
	})
}

// person is who came back, with their token.
type person struct {
	id    int64
	login string
	token string
}

// visit redeems the code, has first do its work, lists what the person may connect,
// and ends the token.
func (c *Client) visit(ctx context.Context, redirectURI string, data []byte, q url.Values, first func(context.Context, auth.GitHubApp, person) (int64, error)) (Found, error) {
	code, f, err := checkAnswer(redirectURI, data, q)
	if err != nil {
		return Found{}, err
	}
	a, err := c.app(ctx)
	if err != nil {
		return Found{}, err
	}
	if f.GitHub != c.o.URL || f.App != a.ID {
		return Found{}, again("begun with another App")
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.VisitTimeout)
	defer cancel()
	p := person{}
	if p.token, err = c.exchange(ctx, a, redirectURI, code, f.Verifier); err != nil {
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

// checkAnswer returns the code of an answer that belongs to the flow.
func checkAnswer(redirectURI string, data []byte, q url.Values) (code string, f flow, err error) {
	if len(data) > maxFlow || json.Unmarshal(data, &f) != nil || f.Redirect != redirectURI || f.Verifier == "" {
		return "", f, again("of another visit")
	}
	for name, values := range q {
		// RFC 6749 section 3.1: a parameter must not come more than once.
		if len(values) != 1 || len(values[0]) > maxParameter {
			return "", f, again("the parameter " + name[:min(len(name), 40)] + " came several times or is too long")
		}
	}
	if f.State == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.State)) != 1 {
		return "", f, again("another state")
	}
	switch e := q.Get("error"); {
	case e == "access_denied":
		return "", f, fault.New(fault.Forbidden, "You did not let this server see your repositories at GitHub, and nothing was connected. You can try again.")
	case e != "":
		return "", f, again("the answer was an error: " + redact(e))
	case q.Get("code") == "":
		return "", f, again("no code")
	}
	return q.Get("code"), f, nil
}

// exchange redeems the code. GitHub answers with status 200 to what fails, too.
func (c *Client) exchange(ctx context.Context, a auth.GitHubApp, redirectURI, code, verifier string) (token string, err error) {
	form := url.Values{
		"client_id": {a.ClientID}, "client_secret": {a.Secrets.ClientSecret}, "code": {code}, "redirect_uri": {redirectURI}, "code_verifier": {verifier},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.o.URL+"/login/oauth/access_token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("github app: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_, err = c.send(r, &answer)
	switch {
	case err != nil:
		return "", c.failure("redeem a code", err)
	case answer.Error != "":
		return "", c.exchangeError(answer.Error, answer.Description)
	case answer.AccessToken == "" || !strings.EqualFold(answer.TokenType, "bearer"):
		return "", c.failure("redeem a code", errors.New("github: the exchange of the code gave no bearer token"))
	}
	return answer.AccessToken, nil
}

func (c *Client) exchangeError(code, description string) error {
	cause := fmt.Errorf("github: exchange of the code: %q: %q", redact(code), redact(description))
	switch code {
	case "bad_verification_code", "bad_code_verifier", "invalid_grant":
		return again(cause.Error())
	case "unverified_user_email":
		return fault.Wrap(cause, fault.Forbidden, "GitHub asks you to verify your e-mail address there first.")
	}
	c.log.Error("the GitHub App is not set up properly", "url", c.o.URL, "error", cause)
	return fault.Wrap(cause, fault.Unavailable, "The GitHub App is not set up properly. Please tell who runs this server.")
}

// again is for what is cured by beginning anew.
func again(why string) error {
	return fault.Wrap(errors.New(why), fault.Invalid, "This visit to GitHub is over or was begun elsewhere, and nothing was connected. Please begin again.")
}

// whoIs asks whose the token is.
func (c *Client) whoIs(ctx context.Context, p *person) error {
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Type  string `json:"type"`
	}
	if _, err := c.call(ctx, p.token, http.MethodGet, "/user", nil, &user); err != nil {
		return c.failure("ask who a person is", err)
	}
	if user.ID <= 0 || !loginForm.MatchString(user.Login) || user.Type != "" && user.Type != "User" {
		return c.failure("ask who a person is", errors.New("github: the person has no id or login, or is none"))
	}
	p.id, p.login = user.ID, user.Login
	return nil
}

// endToken revokes a person's token, which nobody needs any more; it would end by
// itself after eight hours.
func (c *Client) endToken(ctx context.Context, a auth.GitHubApp, token string) {
	// Also where the person has gone away.
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
