package server

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"satchel/auth/github/app"
	"satchel/internal/space"
)

// readToken returns the token with which a source reads a repository of a GitHub server. The
// operator's sources read every repository with the App. A person's sources read the repositories
// that one of the person's GitHub accounts may read. The token is "" for every other repository,
// and if no server runs. A public repository can be read without a token.
func (c *Core) readToken(ctx context.Context, by space.UserID, host, repository string) (string, error) {
	gh := c.github.client.Load()
	if gh == nil {
		return "", nil
	}
	if u, err := url.Parse(gh.Address()); err != nil || !strings.EqualFold(u.Host, host) {
		return "", nil // the App is at another GitHub server
	}
	r := app.Reader{Operator: by == ""}
	if !r.Operator {
		var err error
		if r.Accounts, err = c.gitHubAccounts(ctx, gh.Address(), by); err != nil {
			return "", err
		}
	}
	return gh.ReadToken(ctx, r, repository)
}

// gitHubAccounts returns the GitHub accounts of a person: those with which the person signs in, and
// those with which the person connected a repository to a space.
func (c *Core) gitHubAccounts(ctx context.Context, issuer string, user space.UserID) ([]int64, error) {
	identities, err := c.Accounts.Identities(ctx, user)
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, i := range identities {
		if i.Issuer != issuer {
			continue
		}
		if id, err := strconv.ParseInt(i.Subject, 10, 64); err == nil {
			out = append(out, id)
		}
	}
	links, err := c.Accounts.RepositoryLinks(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if l.User == user && l.GitHubUser > 0 {
			out = append(out, l.GitHubUser)
		}
	}
	return out, nil
}
