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

// Begin returns where to send the browser, and what Finish needs, which the
// caller keeps for one use. The state must be a fresh one that nobody can guess
// and that the caller ties to the browser. It makes no request.
func (p *Provider) Begin(_ context.Context, redirectURI, state string) (location string, data []byte, err error) {
	// A GitHub App has permissions and ignores scopes; an OAuth App needs them.
	scope := "user:email"
	if p.o.NeedOrgs {
		scope += " read:org"
	}
	return WebFlow{GitHub: p.o.URL, Redirect: redirectURI, State: state}.Begin(p.o.ClientID, url.Values{"scope": {scope}})
}

// Finish returns who signed in, from what Begin returned and the query of the
// request to the redirect URI. Whoever calls it has made sure that the flow is
// this browser's, and that it is used once. The error is a fault: Forbidden where
// the person said no or GitHub suspended them, Invalid where the sign-in must
// begin again, Limited where GitHub asks to wait, and Unavailable while it is
// down or where this server is not set up properly there.
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

// exchange redeems the code.
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

// again is for what is cured by beginning again.
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
