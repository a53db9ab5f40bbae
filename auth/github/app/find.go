package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/internal/fault"
)

// nameForm matches the name of a repository at GitHub, with its owner: owner/name.
var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}/[A-Za-z0-9._-]{1,100}$`)
})

// goodName reports whether a repository's full name can be part of an address.
func goodName(full string) bool {
	_, name, _ := strings.Cut(full, "/")
	return nameForm().MatchString(full) && name != "." && name != ".."
}

// installation is an installation of the App, in the form of GitHub's API.
type installation struct {
	ID      int64 `json:"id"`
	AppID   int64 `json:"app_id"`
	Account struct {
		Login string `json:"login"`
		Slug  string `json:"slug"` // set for an enterprise
		Type  string `json:"type"`
	} `json:"account"`
	HTMLURL     string  `json:"html_url"`
	Selection   string  `json:"repository_selection"`
	SuspendedAt *string `json:"suspended_at"`
}

func (i installation) suspended() bool { return i.SuspendedAt != nil && *i.SuspendedAt != "" }

func (i installation) account() string { return cmp.Or(i.Account.Login, i.Account.Slug) }

// repository is a repository in the form in which GitHub describes it to a person.
type repository struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"`
	Private       bool   `json:"private"`
	Archived      bool   `json:"archived"`
	Disabled      bool   `json:"disabled"`
	DefaultBranch string `json:"default_branch"`
	PushedAt      string `json:"pushed_at"`
	Permissions   struct {
		Push bool `json:"push"`
	} `json:"permissions"`
	in int64
}

// find returns the repositories that the person may connect. It uses the person's own token,
// because the App's token does not show what the person may do. The repository with the ID
// created comes first.
func (c *Client) find(ctx context.Context, a auth.GitHubApp, p person, created int64) (Found, error) {
	found := Found{App: a.ID, GitHubUser: p.id, Login: p.login}
	seen := map[int64]bool{}
	cut, err := listed(ctx, c, p.token, "/user/installations", c.o.MaxInstallations, func(page struct {
		Installations []installation `json:"installations"`
	}) int {
		for _, i := range page.Installations {
			// GitHub's documentation says that the list contains only this App's
			// installations. Do not rely on this.
			if i.ID <= 0 || i.AppID != a.ID || seen[i.ID] {
				continue
			}
			seen[i.ID] = true
			found.Installations = append(found.Installations, Installation{
				ID: i.ID, Account: github.Redact(i.account()), AccountType: github.Redact(i.Account.Type), ManageURL: c.ownPage(i.HTMLURL),
				Selection: github.Redact(i.Selection), Suspended: i.suspended(),
			})
		}
		return len(page.Installations)
	})
	if err != nil {
		return Found{}, c.failure("list installations", err)
	}
	found.Cut = cut
	var all []repository
	have := map[int64]bool{}
	for _, i := range found.Installations {
		if i.Suspended {
			continue
		}
		path := fmt.Sprintf("/user/installations/%d/repositories", i.ID)
		cut, err := listed(ctx, c, p.token, path, c.o.MaxRepositories-len(all), func(page struct {
			Repositories []repository `json:"repositories"`
		}) int {
			for _, r := range page.Repositories {
				if r.ID <= 0 || !goodName(r.FullName) || have[r.ID] {
					continue
				}
				have[r.ID] = true
				r.in = i.ID
				all = append(all, r)
			}
			return len(page.Repositories)
		})
		switch statusOf(err) {
		case http.StatusForbidden, http.StatusNotFound:
			// The installation was just suspended or removed.
			c.log.Warn("GitHub does not list an installation's repositories", "installation", i.ID, "error", err)
			continue
		}
		if err != nil {
			return Found{}, c.failure("list repositories", err)
		}
		found.Cut = found.Cut || cut
	}
	c.choose(&found, all, created)
	return found, nil
}

// choose adds repositories to found until found would be larger than MaxFound. The comment of
// Found.Repositories describes the order.
func (c *Client) choose(found *Found, all []repository, created int64) {
	rank := func(r repository) int {
		switch {
		case r.ID == created:
			return 0
		case r.Permissions.Push && !r.Archived && !r.Disabled:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b repository) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(b.PushedAt, a.PushedAt), strings.Compare(a.FullName, b.FullName))
	})
	size := func(v any) int {
		b, err := json.Marshal(v)
		if err != nil {
			return 0 // impossible for a struct of texts and numbers
		}
		return len(b) + 1
	}
	left := c.o.MaxFound - size(found)
	for _, r := range all {
		one := Repository{
			ID: r.ID, FullName: r.FullName, Private: r.Private, Push: r.Permissions.Push && !r.Disabled, Archived: r.Archived,
			Installation: r.in, DefaultBranch: github.Redact(r.DefaultBranch), CloneURL: c.CloneURL(r.FullName),
		}
		if left -= size(one); left < 0 {
			found.Cut = true
			return
		}
		found.Repositories = append(found.Repositories, one)
	}
}

// listed calls the function each for every page of a list, until the list ends or the number
// of entries reaches most. each returns the number of entries of its page. cut reports whether
// listed stopped before the end of the list.
func listed[T any](ctx context.Context, c *Client, token, path string, most int, each func(T) int) (cut bool, err error) {
	for page, n := 1, 0; ; page++ {
		if n >= most {
			return true, nil
		}
		var entries T
		more, err := c.call(ctx, token, http.MethodGet, fmt.Sprintf("%s?per_page=%d&page=%d", path, perPage, page), nil, &entries)
		if err != nil {
			return false, err
		}
		got := each(entries)
		if !more || got == 0 {
			return false, nil
		}
		n += got
	}
}

// ownPage returns s if it is the address of a page at this GitHub, and "" otherwise.
func (c *Client) ownPage(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme+"://"+strings.ToLower(u.Host) != c.origin() || u.User != nil || len(s) > 500 {
		return ""
	}
	return s
}

// maxDescription is GitHub's limit for a repository's description, in bytes.
const maxDescription = 350

var repositoryForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
})

func checkNew(r NewRepository) error {
	switch {
	case !repositoryForm().MatchString(r.Name) || r.Name == "." || r.Name == ".." || strings.HasSuffix(strings.ToLower(r.Name), ".git"):
		return fault.New(fault.Invalid, "A repository's name has up to 100 letters, digits, dots, dashes and underscores, and does not end in .git.")
	case r.Owner != "" && !loginForm().MatchString(r.Owner):
		return fault.New(fault.Invalid, "That is not a GitHub account.")
	case len(r.Description) > maxDescription || strings.ContainsFunc(r.Description, func(c rune) bool { return c < ' ' }):
		return fault.New(fault.Invalid, "The description must be one line of at most %d bytes.", maxDescription)
	}
	return nil
}

// create creates a repository with the person's token, so that GitHub checks the person's
// permission.
func (c *Client) create(ctx context.Context, a auth.GitHubApp, p person, r NewRepository) (int64, error) {
	if !a.Creates {
		return 0, fault.New(fault.Forbidden, "This server's GitHub App is not allowed to create repositories. Create one at GitHub and connect it.")
	}
	path := "/user/repos"
	if r.Owner != "" && !strings.EqualFold(r.Owner, p.login) {
		path = "/orgs/" + url.PathEscape(r.Owner) + "/repos"
	}
	var made struct {
		ID int64 `json:"id"`
	}
	_, err := c.call(ctx, p.token, http.MethodPost, path, map[string]any{
		"name": r.Name, "description": r.Description, "private": r.Private,
	}, &made)
	switch statusOf(err) {
	case http.StatusUnprocessableEntity:
		return 0, fault.Wrap(err, fault.Conflict, "GitHub did not create the repository: the name is already taken, or the account's rules do not allow it. Choose another name.")
	case http.StatusForbidden, http.StatusNotFound:
		return 0, fault.Wrap(err, fault.Forbidden, "GitHub does not let you, or this server's GitHub App, create a repository there. Install the App on that account first, or create the repository at GitHub.")
	}
	if err != nil {
		return 0, c.failure("make a repository", err)
	}
	if made.ID <= 0 {
		return 0, c.failure("make a repository", fmt.Errorf("github: the repository has no id"))
	}
	return made.ID, nil
}
