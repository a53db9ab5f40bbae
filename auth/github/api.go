package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"satchel/auth"
	"satchel/internal/fault"
)

const perPage = 100

var errOversized = errors.New("github: the answer is too long")

// statusError is an answer without a success status.
type statusError struct {
	status  int
	message string // for the log
}

func (e *statusError) Error() string {
	return fmt.Sprintf("github: the answer was %d: %q", e.status, e.message)
}

// do sends a request, and decodes the answer into v unless v is nil. If the error is a
// *statusError, do also returns the response for its headers.
func (p *Provider) do(r *http.Request, v any) (*http.Response, error) {
	r.Header.Set("User-Agent", "satchel")
	resp, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, p.o.MaxResponse+1))
	if err != nil {
		return resp, err
	}
	if int64(len(body)) > p.o.MaxResponse {
		return resp, errOversized
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		var e struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(body, &e) != nil {
			e.Message = string(body)
		}
		return resp, &statusError{resp.StatusCode, Redact(e.Message)}
	}
	if v == nil {
		return resp, nil
	}
	return resp, json.Unmarshal(body, v)
}

// get sends a request to the REST API with the person's token.
func (p *Provider) get(ctx context.Context, token, path string, v any) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.o.API+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/vnd.github+json")
	r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	return p.do(r, v)
}

// identity returns the person who owns the token.
func (p *Provider) identity(ctx context.Context, token string) (auth.ExternalIdentity, error) {
	var user struct {
		ID        int64   `json:"id"`
		Login     string  `json:"login"`
		Name      string  `json:"name"`
		Type      string  `json:"type"`
		Suspended *string `json:"suspended_at"` // only GitHub Enterprise has it
	}
	if resp, err := p.get(ctx, token, "/user", &user); err != nil {
		return auth.ExternalIdentity{}, p.requestError("the person", resp, err)
	}
	switch {
	case user.ID <= 0 || user.Login == "" || len(user.Login) > 100:
		return auth.ExternalIdentity{}, p.unavailable(errors.New("github: the person has no id or no login"))
	case user.Suspended != nil && *user.Suspended != "":
		return auth.ExternalIdentity{}, p.suspended(errors.New("github: suspended since " + cut(*user.Suspended, 40)))
	case user.Type != "" && user.Type != "User":
		return auth.ExternalIdentity{}, fault.Wrap(fmt.Errorf("github: a %q signed in", user.Type), fault.Forbidden, "Only people can sign in with %s.", p.o.Label)
	}
	who := auth.ExternalIdentity{
		Issuer: p.o.URL, Subject: strconv.FormatInt(user.ID, 10),
		Name: label(user.Name), Login: user.Login, GitHubLogin: user.Login,
	}
	var err error
	if who.Email, err = p.email(ctx, token); err != nil {
		return auth.ExternalIdentity{}, err
	}
	if p.o.NeedOrgs {
		if who.GitHubOrgs, err = p.orgs(ctx, token); err != nil {
			return auth.ExternalIdentity{}, err
		}
	}
	return who, nil
}

// email returns the primary address if GitHub has verified it, and "" otherwise.
func (p *Provider) email(ctx context.Context, token string) (string, error) {
	type entry struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	var found string
	err := pages(ctx, p, token, "/user/emails?", func(e entry) {
		if a, err := mail.ParseAddress(e.Email); e.Primary && e.Verified && err == nil && a.Address == e.Email && len(e.Email) <= 254 {
			found = e.Email
		}
	})
	return found, err
}

// orgs returns the logins of the organizations of which the person is an active member.
func (p *Provider) orgs(ctx context.Context, token string) ([]string, error) {
	type entry struct {
		State        string `json:"state"`
		Organization struct {
			Login string `json:"login"`
		} `json:"organization"`
	}
	var found []string
	err := pages(ctx, p, token, "/user/memberships/orgs?state=active&", func(e entry) {
		// GitHub already filters the list. Check again, because a pending invitation must
		// not count.
		if e.State == "active" && e.Organization.Login != "" {
			found = append(found, e.Organization.Login)
		}
	})
	return found, err
}

// pages calls the function each for every entry of a list, up to MaxPages pages. If GitHub
// answers 403 or 404 because the person does not let this server see the list, the list counts
// as empty. So an entry that this server cannot see admits nobody.
func pages[T any](ctx context.Context, p *Provider, token, path string, each func(T)) error {
	for page := 1; page <= p.o.MaxPages; page++ {
		var entries []T
		resp, err := p.get(ctx, token, fmt.Sprintf("%sper_page=%d&page=%d", path, perPage, page), &entries)
		var status *statusError
		if errors.As(err, &status) && (status.status == http.StatusForbidden || status.status == http.StatusNotFound) && !limited(resp) {
			p.o.Logger.Warn("GitHub does not let this server see a list that a sign-in needs", "path", path, "error", err)
			return nil
		}
		if err != nil {
			return p.requestError(path, resp, err)
		}
		for _, e := range entries {
			each(e)
		}
		// The header only shows whether there is a next page. The URL in it is not followed.
		if !strings.Contains(strings.Join(resp.Header.Values("Link"), ","), `rel="next"`) {
			return nil
		}
	}
	p.o.Logger.Warn("a list at GitHub has more pages than are read", "path", path, "pages", p.o.MaxPages)
	return nil
}

// requestError returns the fault for a failed request.
func (p *Provider) requestError(what string, resp *http.Response, err error) error {
	err = fmt.Errorf("github: %s: %w", what, err)
	var status *statusError
	switch {
	case errors.Is(err, context.Canceled):
		return fault.Wrap(err, fault.Canceled, "The sign-in was cancelled.")
	case !errors.As(err, &status):
		return p.unavailable(err)
	case limited(resp):
		p.o.Logger.Warn("GitHub limits this server", "url", p.o.URL, "error", err)
		return &fault.Error{
			Code: fault.Limited, Err: err, RetryAfter: p.wait(resp),
			Public: fmt.Sprintf("%s asks this server to wait. Please try again in a few minutes.", p.o.Label),
		}
	case status.status == http.StatusForbidden && strings.Contains(strings.ToLower(status.message), "suspended"):
		return p.suspended(err)
	case status.status == http.StatusUnauthorized:
		return again(err)
	}
	return p.unavailable(err)
}

func (p *Provider) suspended(err error) error {
	return fault.Wrap(err, fault.Forbidden, "%s says that this account is suspended.", p.o.Label)
}

// limited reports whether a response is a rate limit. GitHub uses 403 for other refusals
// too.
func limited(resp *http.Response) bool {
	return resp != nil && (resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusForbidden && (resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0"))
}

// wait returns how long GitHub asks to wait: at most an hour, at least a second.
func (p *Provider) wait(resp *http.Response) time.Duration {
	d := time.Minute // the default in GitHub's documentation
	if s, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32); err == nil {
		d = time.Duration(s) * time.Second
	} else if s, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		d = time.Unix(s, 0).Sub(p.o.Now())
	}
	return min(max(d, time.Second), time.Hour)
}

// label removes unprintable characters from a text of GitHub, and shortens the text.
func label(s string) string {
	const limit = 200 // in bytes, as for a user's name
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	for len(s) > limit {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return strings.TrimSpace(s)
}
