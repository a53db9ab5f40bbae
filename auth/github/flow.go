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

	"satchel/auth"
	"satchel/internal/fault"
)

// flow is what Finish must know of Begin. It holds secrets: its keeper gives it
// to nobody, once.
type flow struct {
	GitHub   string `json:"github"`
	Redirect string `json:"redirect"`
	State    string `json:"state"`
	Verifier string `json:"verifier"`
}

// maxFlow and maxParameter bound, in bytes, what Finish is given.
const (
	maxFlow      = 8 << 10
	maxParameter = 8 << 10
)

// Begin returns where to send the browser, and what Finish needs, which the
// caller keeps for one use. The state must be a fresh one that nobody can guess
// and that the caller ties to the browser. It makes no request.
func (p *Provider) Begin(_ context.Context, redirectURI, state string) (location string, data []byte, err error) {
	f := flow{GitHub: p.o.URL, Redirect: redirectURI, State: state, Verifier: oauth2.GenerateVerifier()}
	if data, err = json.Marshal(f); err != nil {
		return "", nil, fmt.Errorf("github: %w", err)
	}
	// A GitHub App has permissions and ignores scopes; an OAuth App needs them.
	scope := "user:email"
	if p.o.NeedOrgs {
		scope += " read:org"
	}
	q := url.Values{
		"client_id": {p.o.ClientID}, "redirect_uri": {redirectURI}, "state": {state}, "scope": {scope},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(f.Verifier)}, "code_challenge_method": {"S256"},
	}
	return p.o.URL + "/login/oauth/authorize?" + q.Encode(), data, nil
}

// Finish returns who signed in, from what Begin returned and the query of the
// request to the redirect URI. Whoever calls it has made sure that the flow is
// this browser's, and that it is used once. The error is a fault: Forbidden where
// the person said no or GitHub suspended them, Invalid where the sign-in must
// begin again, Limited where GitHub asks to wait, and Unavailable while it is
// down or where this server is not set up properly there.
func (p *Provider) Finish(ctx context.Context, redirectURI string, data []byte, q url.Values) (auth.Claimant, error) {
	var f flow
	if len(data) > maxFlow || json.Unmarshal(data, &f) != nil || f.GitHub != p.o.URL || f.Redirect != redirectURI || f.Verifier == "" {
		return auth.Claimant{}, again("of another sign-in")
	}
	for name, values := range q {
		// RFC 6749 section 3.1: a parameter must not come more than once.
		if len(values) != 1 || len(values[0]) > maxParameter {
			return auth.Claimant{}, again("the parameter " + cut(name, 40) + " came several times or is too long")
		}
	}
	if f.State == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.State)) != 1 {
		return auth.Claimant{}, again("another state")
	}
	if code := q.Get("error"); code != "" {
		return auth.Claimant{}, p.refused(code, q.Get("error_description"))
	}
	if q.Get("code") == "" {
		return auth.Claimant{}, again("no code")
	}
	token, err := p.exchange(ctx, redirectURI, q.Get("code"), f.Verifier)
	if err != nil {
		return auth.Claimant{}, err
	}
	defer p.revoke(ctx, token)
	return p.claimant(ctx, token)
}

// exchange redeems the code. GitHub answers with status 200 to what fails, too.
func (p *Provider) exchange(ctx context.Context, redirectURI, code, verifier string) (token string, err error) {
	form := url.Values{
		"client_id": {p.o.ClientID}, "code": {code}, "redirect_uri": {redirectURI}, "code_verifier": {verifier},
	}
	if p.o.ClientSecret != "" {
		form.Set("client_secret", p.o.ClientSecret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.o.URL+"/login/oauth/access_token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("github: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	resp, err := p.do(r, &answer)
	switch {
	case answer.Error != "":
		return "", p.exchangeError(answer.Error, answer.Description)
	case err != nil:
		return "", p.requestError("exchange of the code", resp, err)
	case answer.AccessToken == "" || !strings.EqualFold(answer.TokenType, "bearer"):
		return "", p.unavailable(errors.New("github: the exchange of the code gave no bearer token"))
	}
	return answer.AccessToken, nil
}

func (p *Provider) exchangeError(code, description string) error {
	cause := fmt.Errorf("github: exchange of the code: %q: %q", cut(code, 100), cut(description, 500))
	switch code {
	case "bad_verification_code", "bad_code_verifier", "invalid_grant":
		return again(cause.Error())
	case "unverified_user_email":
		return fault.Wrap(cause, fault.Forbidden, "%s asks you to verify your e-mail address there first.", p.o.Label)
	}
	return p.misconfigured(cause)
}

// refused names an error of the authorization response. Its description anybody
// can write into a link, so it is for the log.
func (p *Provider) refused(code, description string) error {
	cause := fmt.Errorf("github: the answer was %q: %q", cut(code, 100), cut(description, 500))
	if code == "access_denied" {
		return fault.Wrap(cause, fault.Forbidden, "The sign-in was refused or cancelled. You can try again, or sign in another way.")
	}
	return p.misconfigured(cause)
}

// revoke ends the token, which nobody needs any more; without a secret GitHub
// lets nobody do it, and the token is forgotten all the same.
func (p *Provider) revoke(ctx context.Context, token string) {
	if p.o.ClientSecret == "" {
		return
	}
	// Also where the person has gone away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.RevokeTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]string{"access_token": token})
	if err != nil {
		return
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, p.o.API+"/applications/"+url.PathEscape(p.o.ClientID)+"/token", strings.NewReader(string(body)))
	if err == nil {
		r.SetBasicAuth(p.o.ClientID, p.o.ClientSecret)
		r.Header.Set("Accept", "application/vnd.github+json")
		r.Header.Set("Content-Type", "application/json")
		_, err = p.do(r, nil)
	}
	if err != nil {
		p.o.Logger.Warn("a GitHub token could not be revoked after a sign-in; it ends by itself or in the person's settings there", "error", err)
	}
}

// again is for what is cured by beginning anew.
func again(why string) error {
	return fault.Wrap(errors.New(why), fault.Invalid, "This sign-in is over or was begun elsewhere. Please sign in again.")
}

func (p *Provider) misconfigured(cause error) error {
	p.o.Logger.Error("sign-in with GitHub is not set up properly", "url", p.o.URL, "error", cause)
	return fault.Wrap(cause, fault.Unavailable, "Sign-in with %s is not set up properly. Please tell who runs this server.", p.o.Label)
}

func (p *Provider) unavailable(cause error) error {
	p.o.Logger.Warn("GitHub cannot be asked", "url", p.o.URL, "error", cause)
	return fault.Wrap(cause, fault.Unavailable, "Sign-in with %s does not work at the moment. Please try again later, or sign in another way.", p.o.Label)
}

func cut(s string, n int) string { return s[:min(len(s), n)] }
