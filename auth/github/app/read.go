package app

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	"satchel/auth"
)

// Reader identifies who wants to read a repository.
type Reader struct {
	// Operator reports whether the reader may read every repository on which the App is
	// installed.
	Operator bool
	// Accounts are the GitHub accounts of a person. Unless Operator is set, at least one of them
	// must be allowed to read the repository.
	Accounts []int64
}

// ReadToken returns a token that can only read the contents of one repository. It returns "" if
// there is no App, if the App is not installed on the repository, or if the reader may not read
// the repository. These cases must look the same to the reader.
//
// ReadToken asks GitHub each time, so that access ends as soon as GitHub ends it. If a request to
// GitHub fails, the error is a fault, such as Limited or Unavailable.
func (c *Client) ReadToken(ctx context.Context, r Reader, fullName string) (string, error) {
	if !goodName(fullName) || !r.Operator && len(r.Accounts) == 0 {
		return "", nil
	}
	a, ok, err := c.o.Store.GitHubApp(ctx)
	if err != nil || !ok || a.URL != c.o.URL {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.VisitTimeout)
	defer cancel()
	owner, name, _ := strings.Cut(fullName, "/")
	var in installation
	err = c.callAsApp(ctx, a, "/repos/"+url.PathEscape(owner)+"/"+url.PathEscape(name)+"/installation", &in)
	switch {
	case statusOf(err) == http.StatusNotFound || statusOf(err) == http.StatusMovedPermanently:
		return "", nil
	case err != nil:
		return "", c.failure("look for an installation", err)
	case in.ID <= 0 || in.AppID != a.ID || in.suspended():
		return "", nil
	}
	token, err := c.readToken(ctx, a, in.ID, fullName)
	if err != nil || token == "" || r.Operator {
		return token, err
	}
	for _, account := range r.Accounts {
		login, err := c.login(ctx, token, account)
		if err != nil {
			return "", err
		}
		if login == "" {
			continue
		}
		if permission, err := c.permission(ctx, token, fullName, login, account); err != nil || permission != "" {
			if err != nil {
				token = ""
			}
			return token, err
		}
	}
	return "", nil
}

// readToken returns a new token of an installation for one repository. It returns "" if the
// installation is suspended or does not include the repository.
func (c *Client) readToken(ctx context.Context, a auth.GitHubApp, installation int64, fullName string) (string, error) {
	s, err := c.signer(a)
	if err != nil {
		return "", err
	}
	_, name, _ := strings.Cut(fullName, "/")
	t := ghinstallation.NewFromAppsTransport(s, installation)
	t.BaseURL = c.o.API
	t.InstallationTokenOptions = &github.InstallationTokenOptions{
		Repositories: []string{name},
		Permissions:  &github.InstallationPermissions{Contents: github.Ptr("read"), Metadata: github.Ptr("read")},
	}
	token, err := t.Token(ctx)
	if err != nil {
		if err = c.mintError(err); stateOf(err) != "" {
			return "", nil
		}
		return "", c.failure("get a token", err)
	}
	repositories, err := t.Repositories()
	if err != nil || token == "" || len(repositories) != 1 || !strings.EqualFold(repositories[0].GetFullName(), fullName) {
		return "", c.failure("get a token", errors.New("github: the token is not for the one repository that it was asked for"))
	}
	return token, nil
}
