package github

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"satchel/auth"
	"satchel/internal/fault"
)

// Begin returns the address to which the caller sends the browser, and the data for Finish,
// which the caller keeps for one use. The state must be fresh and unguessable, and the
// caller must tie it to the browser. Begin sends no request.
func (p *Provider) Begin(_ context.Context, redirectURI, state string) (location string, data []byte, err error) {
	// A GitHub App has permissions, and ignores scopes. An OAuth App needs scopes.
	scope := "user:email"
	if p.o.NeedOrgs {
		scope += " read:org"
	}
	return WebFlow{GitHub: p.o.URL, Redirect: redirectURI, State: state}.Begin(p.o.ClientID, url.Values{"scope": {scope}})
}

// Finish returns the identity of the person who signed in. It takes the data from Begin,
// and the query of the request to the redirect URI. The caller checks that the flow belongs
// to this browser and is used once. The error is a fault: Forbidden if the person may not sign
// in or has declined, Invalid if the person must start the sign-in again, Limited if GitHub asks
// to wait, Canceled if ctx is canceled, and Unavailable if GitHub is down or this server is not
// set up correctly there.
func (p *Provider) Finish(ctx context.Context, redirectURI string, data []byte, q url.Values) (auth.ExternalIdentity, error) {
	f, code, err := OpenWebFlow(redirectURI, data, q)
	var refused *AnswerError
	switch {
	case errors.As(err, &refused) && refused.Code == "access_denied":
		return auth.ExternalIdentity{}, fault.Wrap(err, fault.Forbidden, "The sign-in was refused or cancelled. You can try again, or sign in another way.")
	case refused != nil:
		return auth.ExternalIdentity{}, p.misconfigured(err)
	case err != nil:
		return auth.ExternalIdentity{}, again(err)
	case f.GitHub != p.o.URL || f.App != 0:
		return auth.ExternalIdentity{}, again(errors.New("of another sign-in"))
	}
	token, err := p.exchange(ctx, f, code)
	if err != nil {
		return auth.ExternalIdentity{}, err
	}
	defer p.revoke(ctx, token)
	return p.identity(ctx, token)
}

func (p *Provider) exchange(ctx context.Context, f WebFlow, code string) (token string, err error) {
	r, err := f.Redeem(ctx, p.o.ClientID, p.o.ClientSecret, code)
	if err != nil {
		return "", err
	}
	var answer TokenAnswer
	resp, failed := p.do(r, &answer)
	token, err = answer.Token()
	var refused *AnswerError
	switch {
	case errors.As(err, &refused) && refused.MustBeginAgain():
		return "", again(err)
	case refused != nil && refused.Code == "unverified_user_email":
		return "", fault.Wrap(err, fault.Forbidden, "%s asks you to verify your e-mail address there first.", p.o.Label)
	case refused != nil:
		return "", p.misconfigured(err)
	case failed != nil:
		return "", p.requestError("exchange of the code", resp, failed)
	case err != nil:
		return "", p.unavailable(err)
	}
	return token, nil
}

// revoke revokes the token after its use. GitHub does not allow this without the client secret.
// In that case, the server only discards the token.
func (p *Provider) revoke(ctx context.Context, token string) {
	if p.o.ClientSecret == "" {
		return
	}
	// Revoke the token even if the person has closed the page.
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

// again returns the error for a sign-in that the person must start again.
func again(why error) error {
	return fault.Wrap(why, fault.Invalid, "This sign-in has ended or was started elsewhere. Please sign in again.")
}

func (p *Provider) misconfigured(cause error) error {
	p.o.Logger.Error("sign-in with GitHub is not set up properly", "url", p.o.URL, "error", cause)
	return fault.Wrap(cause, fault.Unavailable, "Sign-in with %s is not set up properly. Please tell the people who run this server.", p.o.Label)
}

func (p *Provider) unavailable(cause error) error {
	p.o.Logger.Warn("GitHub cannot be asked", "url", p.o.URL, "error", cause)
	return fault.Wrap(cause, fault.Unavailable, "Sign-in with %s does not work at the moment. Please try again later, or sign in another way.", p.o.Label)
}
