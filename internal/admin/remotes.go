package admin

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/gitstore/remotes"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Remotes is what the command line may ask of a space's remote and of what
// stands between the two. An empty user is the first admin.
type Remotes interface {
	// SpaceStatus reports how a person's space stands.
	SpaceStatus(ctx context.Context, user string) (SpaceStatus, error)
	// SetRemote gives a space a remote and brings both in step. A sync that
	// fails is no error: the status tells of it.
	SetRemote(ctx context.Context, r RemoteRequest, progress func(string)) (SpaceStatus, error)
	// RemoveRemote leaves the space with all it has, on this server alone.
	RemoveRemote(ctx context.Context, user string) error
	// Sync brings a space and its remote in step now.
	Sync(ctx context.Context, user string, progress func(string)) (SpaceStatus, error)

	// Purge takes secrets out of commits that were never pushed.
	Purge(ctx context.Context, r PurgeRequest, progress func(string)) (Purged, error)
	// AllowSecret lets a screened secret be committed; Take takes that back.
	AllowSecret(ctx context.Context, r AllowRequest) error
	// AllowedSecrets lists what was allowed, newest first.
	AllowedSecrets(ctx context.Context, user string) ([]secretscan.Allowance, error)
}

// SpaceStatus is how a space stands.
type SpaceStatus struct {
	Space service.SpaceInfo `json:"space"`
	remotes.Status
	// Held are the person's files that could not be committed.
	Held []space.PendingFile `json:"held"`
	// Secrets are told by SetRemote alone: what looks like a secret in the space,
	// for which the remote was not set.
	Secrets []Secret `json:"secrets,omitempty"`
}

// RemoteRequest names a remote. Token may be empty.
type RemoteRequest struct {
	User     string `json:"user"`
	URL      string `json:"url"`
	Branch   string `json:"branch"` // empty: the remote's default
	Username string `json:"username"`
	Token    string `json:"token"`
	// Trusted is the operator's word that the URL may lead to a private network
	// or a directory of this machine.
	Trusted bool `json:"trusted"`
	// Replace asks for what the remote has in the place of what the space has.
	Replace bool `json:"replace"`
	// WithSecrets allows whatever looks like a secret in what the space has.
	WithSecrets bool `json:"with_secrets"`
}

// Secret is a place of the space's history that looks like one.
type Secret struct {
	Path        space.Path     `json:"path"` // empty: the commit's message, or a name in it
	Line        int            `json:"line"`
	Commit      space.CommitID `json:"commit"` // the newest that wrote it there
	Rule        string         `json:"rule"`
	Description string         `json:"description"`
	Fingerprint string         `json:"fingerprint"`
}

// PurgeRequest says what is to be taken out of commits that were never pushed.
type PurgeRequest struct {
	User string `json:"user"`
	// Path narrows it to a file; empty means every file in which the rules find
	// a secret or in which the remote found one.
	Path string `json:"path"`
	// Line, from 1, names a line of Path that holds the secret, as the commit At
	// has the file; 0 leaves finding it to the rules.
	Line int `json:"line"`
	// At is a commit, in full or by its first digits; empty is head.
	At string `json:"at"`
	// File takes Path out altogether.
	File bool `json:"file"`
	// DryRun changes nothing, and tells what would be.
	DryRun bool `json:"dry_run"`
}

// Purged is what a purge did.
type Purged struct {
	Head    space.CommitID `json:"head"`
	Commits int            `json:"commits"` // that were rewritten
	Files   []space.Path   `json:"files"`
	Words   int            `json:"words"` // commits and tags whose message or names were rewritten
	// Unclear are the places that the remote named and that were left alone,
	// because nothing there looks like a secret.
	Unclear []transport.Location `json:"unclear,omitempty"`
}

// AllowRequest names a secret by its fingerprint, as a refusal tells it.
type AllowRequest struct {
	User        string `json:"user"`
	Fingerprint string `json:"fingerprint"`
	Take        bool   `json:"take"` // back
}

// SpaceStatus reports how a person's space stands.
func (l *Local) SpaceStatus(ctx context.Context, user string) (SpaceStatus, error) {
	u, id, err := l.spaceOf(ctx, user)
	if err != nil {
		return SpaceStatus{}, err
	}
	st, err := l.Remotes.Status(ctx, id)
	if err != nil {
		return SpaceStatus{}, err
	}
	return l.statusOf(ctx, u.ID, u.Name, id, st)
}

func (l *Local) statusOf(ctx context.Context, user space.UserID, name string, id space.SpaceID, st remotes.Status) (SpaceStatus, error) {
	spaces, err := l.Service.ListSpaces(ctx, service.Operator(), service.ListSpacesInput{User: name})
	if err != nil {
		return SpaceStatus{}, err
	}
	out := SpaceStatus{Status: st, Held: []space.PendingFile{}}
	for _, s := range spaces {
		if s.ID == id {
			out.Space = s
		}
	}
	items, err := l.Held.List(ctx, user, id)
	if err != nil {
		return SpaceStatus{}, err
	}
	out.Held = append(out.Held, items...)
	return out, nil
}

// SetRemote sets a remote and syncs.
func (l *Local) SetRemote(ctx context.Context, r RemoteRequest, progress func(string)) (SpaceStatus, error) {
	u, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return SpaceStatus{}, err
	}
	if l.within(r.URL) {
		return SpaceStatus{}, fault.New(fault.Invalid, "That directory is inside this server's own data directory. Give a repository elsewhere.")
	}
	set := remotes.SetRequest{Space: id, URL: r.URL, Branch: r.Branch, Username: r.Username, Secret: r.Token, Trusted: r.Trusted, Replace: r.Replace}
	if found, err := l.review(ctx, id, r, progress); err != nil {
		return SpaceStatus{}, err
	} else if len(found) > 0 {
		st, err := l.SpaceStatus(ctx, r.User)
		st.Secrets = found
		return st, err
	}
	if r.Replace {
		// What sandboxes have not committed yet is committed before, so that it is
		// kept aside with the rest.
		if err := l.stopSpace(ctx, id); err != nil {
			return SpaceStatus{}, err
		}
	}
	st, err := l.Remotes.SetAndSync(ctx, set, progress)
	if err != nil {
		return SpaceStatus{}, untrusted(err)
	}
	l.note(ctx, operator, "space.remote.set", id, RemoteDetail(r.URL, r.Branch))
	return l.statusOf(ctx, u.ID, u.Name, id, st)
}

// untrusted reports how an address is set that is refused without somebody's word.
func untrusted(err error) error {
	if transport.NeedsTrust(err) {
		return fault.Wrap(err, fault.Invalid, "%s If you know where it leads, add --trusted.", fault.PublicOf(err))
	}
	return err
}

// within reports whether a URL is a directory of this server's own.
func (l *Local) within(url string) bool {
	path := strings.TrimPrefix(strings.TrimSpace(url), "file://")
	if !filepath.IsAbs(path) {
		return false
	}
	data := filepath.Dir(l.SpacesDir)
	for _, p := range []*string{&path, &data} {
		if real, err := filepath.EvalSymlinks(*p); err == nil {
			*p = real
		}
	}
	rel, err := filepath.Rel(data, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// RemoveRemote forgets a remote.
func (l *Local) RemoveRemote(ctx context.Context, user string) error {
	_, id, err := l.spaceOf(ctx, user)
	if err != nil {
		return err
	}
	if err := l.Remotes.Remove(ctx, id); err != nil {
		return err
	}
	l.audit(ctx, "space.remote.remove", id)
	return nil
}

// Sync syncs.
func (l *Local) Sync(ctx context.Context, user string, progress func(string)) (SpaceStatus, error) {
	u, id, err := l.spaceOf(ctx, user)
	if err != nil {
		return SpaceStatus{}, err
	}
	st, err := l.Remotes.Sync(ctx, id, progress)
	if err != nil {
		return SpaceStatus{}, err
	}
	return l.statusOf(ctx, u.ID, u.Name, id, st)
}

// PurgeTool is the tool that what a purge leaves names.
const PurgeTool = "purge"

func (l *Local) stopSpace(ctx context.Context, id space.SpaceID) error {
	if l.StopSpace == nil {
		return nil
	}
	return l.StopSpace(ctx, id)
}

// Purge purges. A push of the old commits must not run meanwhile, nor may a
// sandbox hold their files.
func (l *Local) Purge(ctx context.Context, r PurgeRequest, progress func(string)) (Purged, error) {
	path, err := pathOf(r.Path)
	if err != nil {
		return Purged{}, err
	}
	if path == "" && (r.File || r.Line != 0) || r.File && r.Line != 0 {
		return Purged{}, fault.New(fault.Invalid, "Name the file, and either a line of it or the whole of it.")
	}
	u, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return Purged{}, err
	}
	if r.DryRun {
		return l.wouldPurge(ctx, id, path, r)
	}
	resume, err := l.Remotes.Pause(ctx, id)
	if err != nil {
		return Purged{}, err
	}
	defer resume()
	progress("Stopping the space's sandboxes")
	if err := l.stopSpace(ctx, id); err != nil {
		return Purged{}, err
	}
	since, rewrite, unclear, err := l.purger(ctx, id, path, r)
	if err != nil {
		return Purged{}, err
	}
	progress("Rewriting commits that were never pushed")
	res, err := l.Git.Purge(ctx, id, since, rewrite, space.Meta{Author: author(u), Tool: PurgeTool})
	if err != nil {
		return Purged{}, err
	}
	if res.Commits > 0 {
		l.audit(ctx, "space.purge", id)
		progress("Making the search index anew")
		if err := l.Purged(ctx, id); err != nil {
			return Purged{}, err
		}
	}
	files := res.Files
	if files == nil {
		files = []space.Path{}
	}
	return Purged{Head: res.Head, Commits: res.Commits, Files: files, Words: res.Words, Unclear: unclear}, nil
}

// AllowSecret allows a secret, or takes that back.
func (l *Local) AllowSecret(ctx context.Context, r AllowRequest) error {
	_, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return err
	}
	if r.Take {
		if err := l.Secrets.Disallow(ctx, id, r.Fingerprint); err != nil {
			return err
		}
		l.audit(ctx, "space.secret.disallow", id)
		return nil
	}
	if err := l.Secrets.Allow(ctx, secretscan.Allowance{Space: id, Fingerprint: r.Fingerprint, By: operator.Via, At: time.Now()}); err != nil {
		return err
	}
	l.audit(ctx, "space.secret.allow", id)
	return nil
}

// AllowedSecrets lists what was allowed.
func (l *Local) AllowedSecrets(ctx context.Context, user string) ([]secretscan.Allowance, error) {
	_, id, err := l.spaceOf(ctx, user)
	if err != nil {
		return nil, err
	}
	return l.Secrets.List(ctx, id)
}

// audit notes an act of the operator's on a space. What was done stands where
// the note fails.
func (l *Local) audit(ctx context.Context, action string, id space.SpaceID) {
	l.note(ctx, operator, action, id, nil)
}

func (l *Local) note(ctx context.Context, by store.Actor, action string, id space.SpaceID, detail map[string]any) {
	if err := l.Accounts.Record(context.WithoutCancel(ctx), by, action, string(id), detail); err != nil {
		l.Logger.Error("write the audit log", "action", action, "err", err)
	}
}

// RemoteDetail is what the audit log tells of a remote that was set: where it
// leads, without what may be a secret.
func RemoteDetail(address, branch string) map[string]any {
	out := map[string]any{"url": PlaceOf(address)}
	if branch != "" {
		out["branch"] = branch
	}
	return out
}

// PlaceOf is an address without the user, the query and the fragment, in which
// people put tokens.
func PlaceOf(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Opaque != "" || u.Host == "" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
