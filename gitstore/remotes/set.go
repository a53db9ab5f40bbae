package remotes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// sealPurpose is the purpose for which secrets are sealed. Their subject is the space, so
// that a secret cannot be moved to another space's row.
const sealPurpose = "remote token"

// Limits of a person's input, in bytes.
const (
	maxURL      = 2000
	maxUsername = 200
	maxSecret   = 8 << 10
)

// Set sets or changes the remote of a space, and syncs it in the background. Another URL or
// branch is another remote: Set forgets the state of the old one, but keeps the Notices and
// the content of the space. For an invalid request, the error is a fault.Invalid that says
// what to do instead.
//
// The caller has checked that the person may do this.
func (m *Manager) Set(ctx context.Context, req SetRequest) error { return m.set(ctx, req, nil) }

// Check returns the error that Set would return for a request, and changes nothing.
func (m *Manager) Check(ctx context.Context, req SetRequest) error {
	r, err := m.check(req)
	if err != nil {
		return err
	}
	if _, err := m.o.Git.Head(ctx, r.Space); err != nil {
		return err
	}
	had, _, err := m.Get(ctx, r.Space)
	if err != nil {
		return err
	}
	return inherit(&r, req, had)
}

// SetAndSync is like Set, and then waits for the sync. If the context wait ends first, the
// sync continues, and the status is the current one. See Sync.
func (m *Manager) SetAndSync(ctx, wait context.Context, req SetRequest, progress func(string)) (space.RemoteStatus, error) {
	w := newWaiter(progress)
	if err := m.set(ctx, req, w); err != nil {
		return space.RemoteStatus{}, err
	}
	st, err := m.wait(wait, req.Space, w)
	if wait.Err() != nil {
		return m.Status(context.WithoutCancel(ctx), req.Space)
	}
	return st, err
}

// set does the work of Set. w, which may be nil, waits for the first sync.
func (m *Manager) set(ctx context.Context, req SetRequest, w *waiter) error {
	r, err := m.check(req)
	if err != nil {
		return err
	}
	if _, err := m.o.Git.Head(ctx, r.Space); err != nil {
		return err
	}
	resume, err := m.Pause(ctx, r.Space)
	if err != nil {
		return err
	}
	defer resume()
	m.setMu.Lock()
	defer m.setMu.Unlock()

	m.mu.Lock()
	old := m.entries[r.Space]
	var had space.Remote
	var sealed []byte
	if old != nil {
		had, sealed = old.remote, old.sealed
	}
	m.mu.Unlock()
	another := old == nil || had.URL != r.URL || r.Chosen && had.Branch != r.Branch || had.Chosen && !r.Chosen
	if !another {
		r.Created, r.Branch = had.Created, had.Branch
	}
	if err := inherit(&r, req, had); err != nil {
		return err
	}
	switch {
	case r.Kind != space.KindToken:
		sealed = nil
	case req.Secret != "":
		if sealed, err = m.o.Seal.Seal([]byte(strings.TrimSpace(req.Secret)), sealPurpose, string(r.Space)); err != nil {
			return err
		}
	}
	if another {
		// Forget the old remote before the new one is stored. After a crash in between, the old
		// remote is only checked again. In the other order, the state of the old remote would
		// count as that of the new remote.
		if err := m.o.Git.ForgetRemote(ctx, r.Space); err != nil {
			return fmt.Errorf("forget the old remote: %w", err)
		}
	}
	if err := m.storeRemote(ctx, r, sealed, another); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosing()
	}
	e := old
	if e == nil {
		e = newEntry(r, sealed)
		m.entries[r.Space] = e
	}
	e.remote, e.sealed, e.replace = r, sealed, req.Replace
	e.forgive()
	if another {
		e.outcome, e.synced, e.checked = outcome{}, "", time.Time{}
		e.rewritten, e.behindSince = false, time.Now()
	}
	e.want |= wantPush | wantCheck // for a sync when the pause ends
	if w != nil {
		e.waiters = append(e.waiters, w)
	}
	return nil
}

// inherit adds to r the settings that the request omits and that the space's current remote has.
// had is the current remote, or zero if there is none.
func inherit(r *space.Remote, req SetRequest, had space.Remote) error {
	same := had.Kind == space.KindToken && had.URL == r.URL
	if req.Kind == "" && r.Kind == space.KindNone && same {
		r.Kind, r.Username = space.KindToken, cmp.Or(r.Username, had.Username)
	}
	// A stored secret is only sent to the URL for which it was given.
	if r.Kind == space.KindToken && req.Secret == "" && !same {
		return fault.New(fault.Invalid, "A token is missing: give the one for %s.", hostOf(r.URL))
	}
	return nil
}

// Remove removes the remote of a space. The repository at the remote, the space and its
// Notices stay unchanged. It does nothing for a space without a remote.
func (m *Manager) Remove(ctx context.Context, id space.SpaceID) error {
	_, err := m.remove(ctx, id, func(space.Remote, bool) bool { return true })
	return err
}

// RemoveSetBefore is like Remove, for a remote that was last set before at, or in the
// same millisecond; removed reports whether there was one.
func (m *Manager) RemoveSetBefore(ctx context.Context, id space.SpaceID, at time.Time) (removed bool, err error) {
	old := func(r space.Remote, has bool) bool { return has && !r.Changed.After(at) }
	if r, has, err := m.Get(ctx, id); err != nil || !old(r, has) {
		return false, err // without a pause, so that the remote's syncs continue
	}
	return m.remove(ctx, id, old)
}

// remove is like Remove, but only removes a remote for which wanted returns true.
func (m *Manager) remove(ctx context.Context, id space.SpaceID, wanted func(r space.Remote, has bool) bool) (removed bool, err error) {
	resume, err := m.Pause(ctx, id)
	if err != nil {
		return false, err
	}
	defer resume()
	m.setMu.Lock()
	defer m.setMu.Unlock()
	if r, has, err := m.Get(ctx, id); err != nil || !wanted(r, has) {
		return false, err
	}
	return true, m.drop(ctx, id)
}

// drop does the work of Remove, under setMu.
func (m *Manager) drop(ctx context.Context, id space.SpaceID) error {
	if err := m.deleteRemote(ctx, id); err != nil {
		return err
	}
	m.mu.Lock()
	if e := m.entries[id]; e != nil {
		delete(m.entries, id)
		e.disarm()
		e.release(errNoRemote())
	}
	m.mu.Unlock()
	err := m.o.Git.ForgetRemote(ctx, id)
	if fault.CodeOf(err) == fault.NotFound { // the space was deleted; there is nothing more to do
		return m.dropNotices(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("forget the remote: %w", err)
	}
	return nil
}

// Get returns a space's remote; false if it has none.
func (m *Manager) Get(_ context.Context, id space.SpaceID) (space.Remote, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[id]; e != nil {
		return e.remote, true, nil
	}
	return space.Remote{}, false, nil
}

// check validates a request and returns its remote.
func (m *Manager) check(req SetRequest) (space.Remote, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := space.Remote{
		Space: req.Space, URL: strings.TrimSpace(req.URL), Branch: strings.TrimSpace(req.Branch), Trusted: req.Trusted,
		Kind: req.Kind, Username: strings.TrimSpace(req.Username), Created: now, Changed: now,
	}
	r.Chosen = r.Branch != ""
	if _, err := space.ParseSpaceID(string(r.Space)); err != nil {
		return r, err
	}
	if len(r.URL) > maxURL || len(r.Username) > maxUsername || len(req.Secret) > maxSecret {
		return r, fault.New(fault.Invalid, "The URL can have at most %d bytes, the user name %d and the token %d.", maxURL, maxUsername, maxSecret)
	}
	if err := m.o.Transport.Check(transport.Endpoint{URL: r.URL, Trusted: r.Trusted, SSH: m.o.SSH}); err != nil {
		return r, err
	}
	if r.Branch != "" {
		if err := transport.CheckBranch(r.Branch); err != nil {
			return r, err
		}
	}
	isSSH := strings.HasPrefix(strings.ToLower(r.URL), "ssh:")
	switch {
	case r.Kind != "":
	case isSSH:
		r.Kind = space.KindSSH
	case req.Secret != "":
		r.Kind = space.KindToken
	default:
		r.Kind = space.KindNone
	}
	switch {
	case r.Kind != space.KindNone && r.Kind != space.KindToken && r.Kind != space.KindGitHub && r.Kind != space.KindSSH:
		return r, fault.New(fault.Invalid, "%.40q is not a kind of remote: use none, token, github or ssh.", string(r.Kind))
	case r.Kind == space.KindGitHub && m.o.Credentials == nil:
		return r, errNoCredentials()
	case r.Kind == space.KindGitHub && !isAtGitHub(r) && !r.Trusted:
		// Another host would get the app's token.
		return r, fault.New(fault.Invalid, "The GitHub App is only for repositories at github.com. Use a token for this one.")
	case isSSH && !r.Trusted:
		// The key belongs to the operator, who may have access to repositories that this
		// person does not.
		return r, fault.New(fault.Invalid, "A remote over SSH uses the server's own key, so only the people who run this server can set it, with --trusted. Otherwise give the repository's https URL, and a token.")
	case (r.Kind == space.KindSSH) != isSSH:
		return r, fault.New(fault.Invalid, "The kind ssh needs a URL that begins with ssh://.")
	case r.Kind != space.KindToken && req.Secret != "":
		return r, fault.New(fault.Invalid, "A token can only be used with the kind token, not with %s.", r.Kind)
	case strings.ContainsFunc(strings.TrimSpace(req.Secret)+r.Username, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return r, fault.New(fault.Invalid, "The token or the user name has characters that are not allowed, such as a line end. Copy it again.")
	}
	return r, nil
}

// credential gets the credential for the remote, unless s has one that does not expire soon.
func (s *syncing) credential(ctx context.Context) error {
	if s.has && (s.cred.Expires.IsZero() || time.Until(s.cred.Expires) > expiresSoon) {
		return nil
	}
	var err error
	switch s.remote.Kind {
	case space.KindToken:
		var b []byte
		if b, err = s.m.o.Seal.Open(s.sealed, sealPurpose, string(s.remote.Space)); err != nil {
			return &ownError{NoToken, err}
		}
		s.cred = space.Credential{Username: s.remote.Username, Secret: string(b)}
	case space.KindGitHub:
		if s.m.o.Credentials == nil {
			return &ownError{NoAccess, errNoCredentials()}
		}
		if s.cred, err = s.m.o.Credentials.Credential(ctx, space.Repository{Space: s.remote.Space, URL: s.remote.URL}); err != nil {
			return refusedCredential(err)
		}
	}
	s.has = true
	return nil
}

// refusedCredential distinguishes withdrawn access, which a person must restore, from a
// service that does not answer.
func refusedCredential(err error) error {
	var remote *transport.Error
	var f *fault.Error
	switch {
	case asRemote(err, &remote):
		return err
	case errors.As(err, &f) && (f.Code == fault.Limited || f.RetryAfter > 0):
		return &transport.Error{Problem: transport.RateLimited, Op: "list", Host: "GitHub", RetryAfter: f.RetryAfter, Err: err}
	case f != nil && f.Code == fault.Unavailable:
		return &ownError{NoAccess, err}
	}
	return &transport.Error{Problem: transport.Server, Op: "list", Host: "GitHub", Err: err}
}

// expiresSoon is how long a credential must be valid when a transfer begins.
const expiresSoon = 5 * time.Minute

func errNoCredentials() error {
	return fault.New(fault.Unavailable, "This server has no GitHub App. Give the repository's https URL and a token instead.")
}

// ssh returns the operator's SSH settings, or nil if the remote is not of the kind SSH.
func (s *syncing) ssh() *transport.SSH {
	if s.remote.Kind != space.KindSSH {
		return nil
	}
	return s.m.o.SSH
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "the remote"
	}
	return u.Hostname()
}
