package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Link connects a repository to a space. It replaces the space's former repository. f is the
// result of Finish for this person. The caller must have kept f only on the server. Link refuses
// a repository that is not in f or to which the person may not push. It also asks GitHub again,
// as the App. The error is a fault: Forbidden if the connection is not permitted, Unavailable if
// GitHub does not answer. The caller checks that the person owns the space.
func (c *Client) Link(ctx context.Context, by space.UserID, id space.SpaceID, f Found, repository int64) (auth.RepositoryLink, error) {
	i := slices.IndexFunc(f.Repositories, func(r Repository) bool { return r.ID == repository })
	if i < 0 {
		return auth.RepositoryLink{}, fault.New(fault.Forbidden, "GitHub did not list that repository among those that you let this server use. Choose one from the list.")
	}
	r := f.Repositories[i]
	j := slices.IndexFunc(f.Installations, func(i Installation) bool { return i.ID == r.Installation })
	switch {
	case f.GitHubUser <= 0 || j < 0 || !goodName(r.FullName):
		return auth.RepositoryLink{}, again(errors.New("what was found is not whole"))
	case f.Installations[j].Suspended:
		return auth.RepositoryLink{}, fault.New(fault.Forbidden, "The GitHub App is suspended for %s. An owner can end that at GitHub.", f.Installations[j].Account)
	case !r.Push:
		return auth.RepositoryLink{}, fault.New(fault.Forbidden, "GitHub says that you may only read %s. Ask for the right to push to it, or choose another.", r.FullName)
	case r.Archived:
		return auth.RepositoryLink{}, fault.New(fault.Forbidden, "%s is archived, so nothing can be pushed to it. Choose another.", r.FullName)
	}
	a, err := c.app(ctx)
	if err != nil {
		return auth.RepositoryLink{}, err
	}
	if a.ID != f.App {
		return auth.RepositoryLink{}, again(errors.New("found with another App"))
	}
	now := c.o.Now()
	l := auth.RepositoryLink{
		Space: id, User: by, GitHubUser: f.GitHubUser, GitHubLogin: f.Login, Installation: r.Installation, Account: f.Installations[j].Account,
		Repository: r.ID, FullName: r.FullName, State: auth.LinkConnected, Since: now, Created: now,
	}
	if l, err = c.look(ctx, a, l); err != nil {
		return auth.RepositoryLink{}, err
	}
	if l.State != auth.LinkConnected {
		return auth.RepositoryLink{}, fault.Wrap(stateError(l), fault.Forbidden, "%s", fault.PublicOf(stateError(l)))
	}
	if err := c.o.Before(ctx, l); err != nil {
		return auth.RepositoryLink{}, err
	}
	before, err := c.others(ctx, id, r.ID)
	if err != nil {
		return auth.RepositoryLink{}, err
	}
	// Ignore the request's cancellation from here on, so that nothing is left incomplete.
	ctx = context.WithoutCancel(ctx)
	if err := c.o.Store.LinkRepository(ctx, by, via, l); err != nil {
		return auth.RepositoryLink{}, err
	}
	for _, o := range before {
		if _, has, err := c.o.Store.RepositoryLink(ctx, o.Space); err == nil && !has {
			c.Ended(ctx, o)
		}
	}
	kept, ok, err := c.o.Store.RepositoryLink(ctx, id)
	if err != nil {
		return auth.RepositoryLink{}, err
	}
	if !ok {
		return auth.RepositoryLink{}, fault.New(fault.Conflict, "The space was disconnected at the same moment.")
	}
	if err := c.o.OnState(ctx, kept); err != nil {
		return auth.RepositoryLink{}, errors.Join(err, c.Unlink(ctx, by, id))
	}
	return kept, nil
}

// others returns the connections of other spaces to a repository. It checks their state at
// GitHub, because the stored state may be out of date.
func (c *Client) others(ctx context.Context, id space.SpaceID, repository int64) ([]auth.RepositoryLink, error) {
	links, err := c.o.Store.RepositoryLinks(ctx)
	if err != nil {
		return nil, err
	}
	links = slices.DeleteFunc(links, func(l auth.RepositoryLink) bool { return l.Repository != repository || l.Space == id })
	for i, l := range links {
		now, err := c.Recheck(ctx, l.Space)
		switch {
		case fault.CodeOf(err) == fault.NotFound:
		case err != nil:
			return nil, err
		default:
			links[i] = now
		}
	}
	return links, nil
}

// Taken returns the repositories that are connected to spaces other than id. The map's values
// are those spaces. A connection that is removed or lost does not count.
func (c *Client) Taken(ctx context.Context, id space.SpaceID) (map[int64]space.SpaceID, error) {
	links, err := c.o.Store.RepositoryLinks(ctx)
	if err != nil {
		return nil, err
	}
	taken := map[int64]space.SpaceID{}
	for _, l := range links {
		if l.Space != id && (l.State == auth.LinkConnected || l.State == auth.LinkSuspended) {
			taken[l.Repository] = l.Space
		}
	}
	return taken, nil
}

// Linked returns the connection of a space. It returns false if the space has none.
func (c *Client) Linked(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, bool, error) {
	return c.o.Store.RepositoryLink(ctx, id)
}

// Unlink ends a space's connection, if it has one. It changes nothing at GitHub.
func (c *Client) Unlink(ctx context.Context, by space.UserID, id space.SpaceID) error {
	l, ok, err := c.o.Store.RepositoryLink(ctx, id)
	if err != nil || !ok {
		return err
	}
	if err := c.o.Store.UnlinkRepository(ctx, by, via, id); err != nil {
		return err
	}
	c.Ended(ctx, l)
	return nil
}

// Ended forgets the tokens of a link that the Store no longer contains, and calls OnState.
func (c *Client) Ended(ctx context.Context, l auth.RepositoryLink) {
	c.tokens.dropLink(l)
	l.State = ""
	c.notify(ctx, l)
}

// Recheck asks GitHub for the state of a space's connection, and stores the state. The error
// is a fault: NotFound if the space has no connection, Unavailable if GitHub does not answer.
func (c *Client) Recheck(ctx context.Context, id space.SpaceID) (auth.RepositoryLink, error) {
	was, ok, err := c.o.Store.RepositoryLink(ctx, id)
	if err != nil {
		return auth.RepositoryLink{}, err
	}
	if !ok {
		return auth.RepositoryLink{}, fault.New(fault.NotFound, "No repository is connected to this space.")
	}
	a, err := c.app(ctx)
	if err != nil {
		return was, err
	}
	for range maxLooks {
		now, err := c.look(ctx, a, was)
		if err != nil {
			return was, err
		}
		kept, changed, err := c.settle(ctx, was, now, c.notify)
		if err != nil || changed {
			return kept, err
		}
		// A concurrent check has stored its result, which may be older.
		was = kept
	}
	return was, nil
}

// maxLooks is the maximum number of times that Recheck asks GitHub while concurrent checks change
// the link.
const maxLooks = 4

// RecheckAll rechecks all connections once, one at a time. It continues after a failure, but
// stops if ctx ends or if GitHub asks to wait.
func (c *Client) RecheckAll(ctx context.Context) error { return c.RecheckOlder(ctx, 0) }

// RecheckOlder checks only connections that GitHub last confirmed at least age ago; see
// RecheckAll. A refusal by GitHub is not a confirmation.
func (c *Client) RecheckOlder(ctx context.Context, age time.Duration) error {
	links, err := c.o.Store.RepositoryLinks(ctx)
	if err != nil {
		return err
	}
	before := c.o.Now().Add(-age)
	links = slices.DeleteFunc(links, func(l auth.RepositoryLink) bool { return l.Checked.After(before) })
	if len(links) == 0 {
		return nil
	}
	if _, ok, err := c.o.Store.GitHubApp(ctx); err != nil || !ok {
		return err // without an App, all links are already auth.LinkRemoved
	}
	if _, err := c.app(ctx); err != nil {
		return err
	}
	var errs []error
	for _, l := range links {
		_, err := c.Recheck(ctx, l.Space)
		switch code := fault.CodeOf(err); {
		case ctx.Err() != nil:
			return errors.Join(append(errs, ctx.Err())...)
		case err == nil || code == fault.NotFound:
			continue
		case code == fault.Limited:
			return errors.Join(append(errs, err)...)
		}
		if len(errs) < 10 {
			errs = append(errs, fmt.Errorf("look at the repository of the space %s: %w", l.Space, err))
		}
	}
	return errors.Join(errs...)
}

// settle stores GitHub's answer about a link. If the state or the name changed, it calls the
// function tell. If another call changed the stored link after GitHub was asked, settle stores
// nothing, and changed is false.
func (c *Client) settle(ctx context.Context, was, now auth.RepositoryLink, tell func(context.Context, auth.RepositoryLink)) (kept auth.RepositoryLink, changed bool, err error) {
	ctx = context.WithoutCancel(ctx)
	if changed, err = c.o.Store.UpdateLink(ctx, was, now); err != nil {
		return was, false, err
	}
	kept, ok, err := c.o.Store.RepositoryLink(ctx, was.Space)
	switch {
	case err != nil:
		return was, false, err
	case !ok:
		return auth.RepositoryLink{}, false, fault.New(fault.NotFound, "No repository is connected to this space.")
	case !changed:
		return kept, false, nil
	}
	if kept.State != auth.LinkConnected || was.State != auth.LinkConnected {
		c.tokens.dropLink(was)
	}
	if kept.State != was.State {
		c.log.Info("a connected repository has another state", "space", kept.Space, "repository", kept.Repository, "from", was.State, "to", kept.State)
	}
	if kept.State != was.State || kept.FullName != was.FullName {
		tell(ctx, kept)
	}
	return kept, true, nil
}

// look asks GitHub, as the App, for the state of a link. The App must still be installed on
// the repository, and the person who connected the repository must still have the right to
// push to it. If GitHub does not answer, the error is a fault.
func (c *Client) look(ctx context.Context, a auth.GitHubApp, l auth.RepositoryLink) (auth.RepositoryLink, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.VisitTimeout)
	defer cancel()
	var in installation
	err := c.callAsApp(ctx, a, fmt.Sprintf("/app/installations/%d", l.Installation), &in)
	switch {
	case statusOf(err) == http.StatusNotFound:
		l.State = auth.LinkRemoved
		return l, nil
	case err != nil:
		return l, c.failure("look at an installation", err)
	case in.ID != l.Installation || in.AppID != a.ID:
		return l, c.failure("look at an installation", errors.New("github: the answer is about another installation or App"))
	case in.suspended():
		l.State = auth.LinkSuspended
		return l, nil
	}
	l.Account = github.Redact(in.account())
	k := tokenKey{a.ID, l.Installation, l.Repository}
	// A cached token would stay valid for up to an hour after the access ended.
	c.tokens.drop(func(o tokenKey) bool { return o == k })
	token, _, err := c.token(ctx, a, k)
	if err != nil {
		if l.State = stateOf(err); l.State != "" {
			return l, nil
		}
		return l, c.failure("get a token", err)
	}
	return c.lookWith(ctx, token, l)
}

// lookWith asks GitHub about the repository and the person, with a token for the repository.
func (c *Client) lookWith(ctx context.Context, token string, l auth.RepositoryLink) (auth.RepositoryLink, error) {
	var repo repository
	_, err := c.call(ctx, token, http.MethodGet, fmt.Sprintf("/repositories/%d", l.Repository), nil, &repo)
	switch {
	case statusOf(err) == http.StatusNotFound:
		l.State = auth.LinkRemoved
		return l, nil
	case err != nil:
		return l, c.failure("look at a repository", err)
	case repo.ID != l.Repository || !goodName(repo.FullName):
		return l, c.failure("look at a repository", errors.New("github: the answer is about another repository, or its name is invalid"))
	}
	l.FullName = repo.FullName
	login, err := c.login(ctx, token, l.GitHubUser)
	if err != nil || login == "" {
		l.State = auth.LinkLost // the account was deleted
		return l, err
	}
	l.GitHubLogin = login
	permission, err := c.permission(ctx, token, l.FullName, login, l.GitHubUser)
	if err != nil {
		return l, err
	}
	l.State = auth.LinkLost
	if permission == "admin" || permission == "write" {
		l.State, l.Checked = auth.LinkConnected, c.o.Now()
	}
	return l, nil
}

// login returns the login of an account; "" if the account does not exist any more.
func (c *Client) login(ctx context.Context, token string, account int64) (string, error) {
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	}
	_, err := c.call(ctx, token, http.MethodGet, fmt.Sprintf("/user/%d", account), nil, &user)
	switch {
	case statusOf(err) == http.StatusNotFound:
		return "", nil
	case err != nil:
		return "", c.failure("look at a person", err)
	case user.ID != account || !loginForm().MatchString(user.Login):
		return "", c.failure("look at a person", errors.New("github: the answer is about another person, or their login is invalid"))
	}
	return user.Login, nil
}

// permission asks GitHub what an account may do with a repository: admin, write, read or "".
// GitHub counts maintain as write, and triage as read. The request names the account by login.
// permission also compares the ID in the answer, because somebody else may have taken the login.
func (c *Client) permission(ctx context.Context, token, fullName, login string, account int64) (string, error) {
	owner, name, _ := strings.Cut(fullName, "/")
	path := "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name) + "/collaborators/" + url.PathEscape(login) + "/permission"
	var answer struct {
		Permission string `json:"permission"`
		User       struct {
			ID int64 `json:"id"`
		} `json:"user"`
	}
	_, err := c.call(ctx, token, http.MethodGet, path, nil, &answer)
	switch {
	case statusOf(err) == http.StatusNotFound: // not a collaborator
		return "", nil
	case err != nil:
		return "", c.failure("ask what a person may do", err)
	case answer.User.ID != account || answer.Permission == "none":
		return "", nil
	}
	return answer.Permission, nil
}

// AskApproval records that a person asked the owner of an organization to install the App,
// to connect a repository to the space.
func (c *Client) AskApproval(ctx context.Context, id space.SpaceID, user space.UserID) error {
	return c.o.Store.AskForApproval(ctx, id, user)
}

// Waiting returns the time at which somebody asked for an approval for the space. It returns
// false if nobody waits for an approval.
func (c *Client) Waiting(ctx context.Context, id space.SpaceID) (since time.Time, ok bool, err error) {
	return c.o.Store.PendingApproval(ctx, id)
}
