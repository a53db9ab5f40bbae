package github

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
)

// WebFlow is one visit of a person to GitHub's authorization page (GitHub's documentation,
// "Generating a user access token for a GitHub App", web application flow). It contains
// secrets: the caller must keep it private and use it once.
type WebFlow struct {
	GitHub   string `json:"github"`        // such as https://github.com
	App      int64  `json:"app,omitempty"` // id of the server's GitHub App; 0 for a sign-in
	Redirect string `json:"redirect"`
	State    string `json:"state"`
	Verifier string `json:"verifier"` // the PKCE verifier (RFC 7636)
}

// The maximum lengths of OpenWebFlow's arguments in bytes.
const (
	maxFlow      = 8 << 10
	maxParameter = 8 << 10
)

// Begin returns the address to which the caller sends the browser, and the data for
// OpenWebFlow, which the caller keeps for one use. The State must be fresh and unguessable,
// and the caller must tie it to the browser. Begin creates the Verifier. more has
// additional parameters for the page.
func (f WebFlow) Begin(clientID string, more url.Values) (location string, data []byte, err error) {
	f.Verifier = oauth2.GenerateVerifier()
	if data, err = json.Marshal(f); err != nil {
		return "", nil, fmt.Errorf("github: %w", err)
	}
	q := url.Values{
		"client_id": {clientID}, "redirect_uri": {f.Redirect}, "state": {f.State},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(f.Verifier)}, "code_challenge_method": {"S256"},
	}
	for name, values := range more {
		q[name] = values
	}
	return f.GitHub + "/login/oauth/authorize?" + q.Encode(), data, nil
}

// AnswerError is an error in GitHub's answer. Anybody can make a link to the redirect URI with any
// Code and Description, so they are only for the log; see Redact.
type AnswerError struct{ Code, Description string }

// Error returns both parts in quotes.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("github: the answer was %q: %q", e.Code, e.Description)
}

func answerError(code, description string) *AnswerError {
	return &AnswerError{Code: cut(Redact(code), 100), Description: Redact(description)}
}

// OpenWebFlow returns the flow of a person who returned to the redirect URI with the query
// q, and the code for Redeem. The caller checks that the data belongs to this browser and
// is used once. The caller also checks that the flow's GitHub and App are the ones that it uses
// now. The error is an *AnswerError if GitHub answered with an error, and any other error if the
// answer does not belong to this flow.
func OpenWebFlow(redirectURI string, data []byte, q url.Values) (f WebFlow, code string, err error) {
	if len(data) > maxFlow || json.Unmarshal(data, &f) != nil || f.Redirect != redirectURI || f.Verifier == "" {
		return WebFlow{}, "", errors.New("of another visit")
	}
	for name, values := range q {
		// A parameter must not occur more than once (RFC 6749 section 3.1).
		if len(values) != 1 || len(values[0]) > maxParameter {
			return WebFlow{}, "", errors.New("the parameter " + cut(name, 40) + " came several times or is too long")
		}
	}
	if f.State == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.State)) != 1 {
		return WebFlow{}, "", errors.New("another state")
	}
	if e := q.Get("error"); e != "" {
		return WebFlow{}, "", answerError(e, q.Get("error_description"))
	}
	if q.Get("code") == "" {
		return WebFlow{}, "", errors.New("no code")
	}
	return f, q.Get("code"), nil
}

// Redeem returns the request for the person's token. The secret may be empty. The answer is
// a TokenAnswer.
func (f WebFlow) Redeem(ctx context.Context, clientID, secret, code string) (*http.Request, error) {
	form := url.Values{"client_id": {clientID}, "code": {code}, "redirect_uri": {f.Redirect}, "code_verifier": {f.Verifier}}
	if secret != "" {
		form.Set("client_secret", secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.GitHub+"/login/oauth/access_token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("github: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	return r, nil
}

// TokenAnswer is GitHub's answer to Redeem. It has status 200 even for an error.
type TokenAnswer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// Token returns the token. The error is an *AnswerError if GitHub named an error.
func (a TokenAnswer) Token() (string, error) {
	switch {
	case a.Error != "":
		return "", answerError(a.Error, a.Description)
	case a.AccessToken == "" || !strings.EqualFold(a.TokenType, "bearer"):
		return "", errors.New("github: the exchange of the code gave no bearer token")
	}
	return a.AccessToken, nil
}

// MustBeginAgain reports whether another visit fixes the error.
func (e *AnswerError) MustBeginAgain() bool {
	return e.Code == "bad_verification_code" || e.Code == "bad_code_verifier" || e.Code == "invalid_grant"
}
