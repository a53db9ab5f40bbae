package service

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// SpaceStatus describes a space, its remote and the actor's pending files. Its JSON is
// part of the command line's contract.
type SpaceStatus struct {
	Space SpaceInfo `json:"space"`
	space.RemoteStatus
	// Pending are the person's files that could not be committed.
	Pending []space.PendingFile `json:"held"`
	// Secrets are set only by SetRemote. If there are any, SetRemote changed nothing.
	Secrets []FoundSecret `json:"secrets,omitempty"`
}

// GetRemoteInput names a space.
type GetRemoteInput struct {
	Space SpaceRef `json:"space"`
}

// GetRemote returns the status of a space's remote, without calling the remote.
func (s *Service) GetRemote(ctx context.Context, a Actor, in GetRemoteInput) (space.RemoteStatus, error) {
	m, err := s.authorizeSpace(ctx, a, "GetRemote", in.Space)
	if err != nil {
		return space.RemoteStatus{}, err
	}
	return s.remotes.Status(ctx, m.ID)
}

// GetSpaceStatusInput names a space.
type GetSpaceStatusInput struct {
	Space SpaceRef `json:"space"`
}

// GetSpaceStatus returns the status of a space, without calling its remote.
func (s *Service) GetSpaceStatus(ctx context.Context, a Actor, in GetSpaceStatusInput) (SpaceStatus, error) {
	m, err := s.authorizeSpace(ctx, a, "GetSpaceStatus", in.Space)
	if err != nil {
		return SpaceStatus{}, err
	}
	st, err := s.remotes.Status(ctx, m.ID)
	if err != nil {
		return SpaceStatus{}, err
	}
	return s.statusOf(ctx, a, in.Space, m, st)
}

func (s *Service) statusOf(ctx context.Context, a Actor, ref SpaceRef, m store.Membership, st space.RemoteStatus) (SpaceStatus, error) {
	out := SpaceStatus{RemoteStatus: st, Pending: []space.PendingFile{}}
	var err error
	if out.Space, err = s.oneSpaceInfo(ctx, m.ID); err != nil {
		return out, err
	}
	who, err := s.onBehalf(ctx, a, ref)
	if err != nil {
		return out, err
	}
	items, err := s.pending.List(ctx, who.user, m.ID)
	out.Pending = append(out.Pending, items...)
	return out, err
}

// ListRemoteStatesInput is empty.
type ListRemoteStatesInput struct{}

// ListRemoteStates returns the last known states of the remotes of the actor's spaces.
func (s *Service) ListRemoteStates(ctx context.Context, a Actor, _ ListRemoteStatesInput) (map[space.SpaceID]space.RemoteState, error) {
	if err := s.authorize(a, "ListRemoteStates"); err != nil {
		return nil, err
	}
	all, err := s.accounts.SpacesOf(ctx, a.user)
	out := map[space.SpaceID]space.RemoteState{}
	for _, m := range all {
		out[m.ID] = s.remotes.State(m.ID)
	}
	return out, err
}

// SetRemoteInput is a remote for a space.
type SetRemoteInput struct {
	Space    SpaceRef `json:"space"`
	URL      string   `json:"url"`
	Branch   string   `json:"branch"` // empty: the remote's default
	Username string   `json:"username"`
	// If Token is empty, the space keeps the token that it has for the same URL.
	Token string `json:"token"`
	// AllowSecrets are the fingerprints of findings that are not secrets.
	AllowSecrets []string `json:"allow_secrets"`
	// MaxSecrets limits the result to MaxSecrets+1 findings, each secret once. If it is 0,
	// the result has every place of every secret.
	MaxSecrets int `json:"max_secrets"`
	// Wait limits how long the call waits for the first sync. The sync then continues in the
	// background. If Wait is 0, the call waits until the sync ends.
	Wait time.Duration `json:"wait"`

	// Only the operator can set the following fields. Trusted allows URLs of private
	// networks and directories. Replace replaces the content of the space with the
	// remote's. WithSecrets allows all likely secrets.
	Trusted     bool `json:"trusted"`
	Replace     bool `json:"replace"`
	WithSecrets bool `json:"with_secrets"`
}

// SetRemote sets the remote of a space and syncs. If the sync fails, the status says so.
// If the space has likely secrets, SetRemote changes nothing and returns them, because the
// first push would publish them.
func (s *Service) SetRemote(ctx context.Context, a Actor, in SetRemoteInput) (SpaceStatus, error) {
	m, err := s.authorizeSpace(ctx, a, "SetRemote", in.Space)
	if err != nil {
		return SpaceStatus{}, err
	}
	if a.kind != operator && (in.Trusted || in.Replace || in.WithSecrets) {
		return SpaceStatus{}, fault.New(fault.Forbidden, "Only the operator of this server may do that.")
	}
	if s.inDataDir(in.URL) {
		return SpaceStatus{}, fault.New(fault.Invalid, "That directory is inside this server's own data directory. Give a repository elsewhere.")
	}
	in.URL = strings.TrimSpace(in.URL)
	set := remotes.SetRequest{Space: m.ID, URL: in.URL, Branch: in.Branch, Username: in.Username, Secret: in.Token, Trusted: in.Trusted, Replace: in.Replace}
	if err := s.remotes.Check(ctx, set); err != nil {
		return SpaceStatus{}, needsTrust(a, err)
	}
	if found, err := s.allowFirstPush(ctx, a, m.ID, in); err != nil {
		return SpaceStatus{}, err
	} else if len(found) > 0 {
		st, err := s.remotes.Status(ctx, m.ID)
		if err != nil {
			return SpaceStatus{}, err
		}
		out, err := s.statusOf(ctx, a, in.Space, m, st)
		out.Secrets = found
		return out, err
	}
	if in.Replace {
		// Sandboxes commit their changes when they stop, so stop them before the change.
		if err := s.stopSpace(ctx, m.ID); err != nil {
			return SpaceStatus{}, err
		}
	}
	wait, cancel := waiting(ctx, in.Wait)
	defer cancel()
	st, err := s.remotes.SetAndSync(ctx, wait, set, Progress(ctx))
	if err != nil {
		return SpaceStatus{}, needsTrust(a, err)
	}
	s.record(ctx, a, "space.remote.set", string(m.ID), remoteDetail(in.URL, in.Branch))
	if ctx.Err() != nil {
		return SpaceStatus{}, fault.Wrap(ctx.Err(), fault.Canceled, "The remote was set. The sync continues in the background.")
	}
	return s.statusOf(ctx, a, in.Space, m, st)
}

func waiting(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, wait)
}

// needsTrust adds the remedy to the refusal of an untrusted URL.
func needsTrust(a Actor, err error) error {
	switch {
	case !transport.NeedsTrust(err):
		return err
	case a.kind == operator:
		return fault.Wrap(err, fault.Invalid, "%s If you know where it leads, add --trusted.", fault.PublicOf(err))
	}
	return fault.Wrap(err, fault.Invalid, "%s The operator of this server can set such an address with the command satchel space remote set.", fault.PublicOf(err))
}

// inDataDir reports whether a URL is the path of the data directory or of something inside it.
func (s *Service) inDataDir(url string) bool {
	path := strings.TrimPrefix(strings.TrimSpace(url), "file://")
	if !filepath.IsAbs(path) {
		return false
	}
	data := filepath.Dir(s.o.SpacesDir)
	for _, p := range []*string{&path, &data} {
		if real, err := filepath.EvalSymlinks(*p); err == nil {
			*p = real
		}
	}
	rel, err := filepath.Rel(data, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// allowFirstPush returns the likely secrets in a space that gets a new remote. The first push
// publishes the whole history, and a space without a remote accepts secrets. If the input allows
// all of them, allowFirstPush stores the allowances and returns none.
func (s *Service) allowFirstPush(ctx context.Context, a Actor, id space.SpaceID, in SetRemoteInput) ([]FoundSecret, error) {
	had, has, err := s.remotes.Get(ctx, id)
	if err != nil || !s.o.ScreenSecrets || in.Replace || has && had.URL == in.URL {
		return nil, err
	}
	Progress(ctx)("Looking for secrets in the space")
	head, err := s.git.Head(ctx, id)
	if err != nil {
		return nil, err
	}
	search := newSecretSearch(id, in)
	// The second search covers what was committed during the first.
	for _, since := range []space.CommitID{"", head} {
		if err := s.searchSecrets(ctx, search, since); err != nil || len(search.found) > 0 {
			return search.found, err
		}
	}
	for _, f := range search.allowed {
		err := s.secrets.Allow(ctx, space.SecretAllowance{Space: id, Fingerprint: f.Fingerprint, Rule: f.Rule, Path: space.Path(s.redacted(string(f.Path))), By: a.allower()})
		if err != nil {
			return nil, err
		}
	}
	if n := len(search.allowed); n > 0 {
		s.record(ctx, a, "space.secret.allow", string(id), map[string]any{"found": n})
	}
	return nil, nil
}

// RemoveRemoteInput names a space.
type RemoveRemoteInput struct {
	Space SpaceRef `json:"space"`
}

// RemoveRemote disconnects a space from its remote. The space and the remote keep their contents.
func (s *Service) RemoveRemote(ctx context.Context, a Actor, in RemoveRemoteInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "RemoveRemote", in.Space)
	if err != nil {
		return None{}, err
	}
	if err := s.remotes.Remove(ctx, m.ID); err != nil {
		return None{}, err
	}
	s.record(ctx, a, "space.remote.remove", string(m.ID), nil)
	return None{}, nil
}

// SyncRemoteInput names a space.
type SyncRemoteInput struct {
	Space SpaceRef `json:"space"`
	// Wait limits how long the call waits for the sync. The sync then continues in the
	// background. If Wait is 0, the call waits until the sync ends.
	Wait time.Duration `json:"wait"`
}

// SyncRemote syncs a space with its remote. If the sync fails, the status says so.
func (s *Service) SyncRemote(ctx context.Context, a Actor, in SyncRemoteInput) (SpaceStatus, error) {
	m, err := s.authorizeSpace(ctx, a, "SyncRemote", in.Space)
	if err != nil {
		return SpaceStatus{}, err
	}
	wait, cancel := waiting(ctx, in.Wait)
	defer cancel()
	st, err := s.remotes.Sync(wait, m.ID, Progress(ctx))
	if wait.Err() != nil && ctx.Err() == nil {
		st, err = s.remotes.Status(ctx, m.ID)
	}
	if err != nil {
		return SpaceStatus{}, err
	}
	return s.statusOf(ctx, a, in.Space, m, st)
}

// FetchRemoteInput names a space.
type FetchRemoteInput struct {
	Space SpaceRef `json:"space"`
}

// FetchRemote asks for a fetch from the remote of a space, and does not wait for the fetch.
func (s *Service) FetchRemote(ctx context.Context, a Actor, in FetchRemoteInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "FetchRemote", in.Space)
	if err == nil {
		s.remotes.Notify(m.ID)
	}
	return None{}, err
}

// remoteDetail describes a remote in the audit log, without secrets.
func remoteDetail(address, branch string) map[string]any {
	out := map[string]any{"url": PublicURL(address)}
	if branch != "" {
		out["branch"] = branch
	}
	return out
}

// PublicURL returns an address without the user, query and fragment, which may contain
// tokens. It returns "" unless the address is a URL with a host.
func PublicURL(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Opaque != "" || u.Host == "" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
