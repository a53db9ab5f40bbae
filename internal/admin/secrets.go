package admin

import (
	"context"
	"errors"
	"slices"
	"strings"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// review finds what looks like a secret in a space that is about to get another
// remote: the first push takes along all that was saved while nothing screened
// it. It returns none if the request allows them all.
func (l *Local) review(ctx context.Context, id space.SpaceID, r RemoteRequest, progress func(string)) ([]Secret, error) {
	had, has, err := l.Remotes.Get(ctx, id)
	if err != nil || l.Unscreened || r.Replace || has && had.URL == strings.TrimSpace(r.URL) {
		return nil, err
	}
	progress("Looking for secrets in what the space has")
	var found []Secret
	err = l.Git.WalkBlobs(ctx, id, "", func(at space.CommitID, p space.Path, content []byte) error {
		err := l.Secrets.Screen(ctx, id, p, content, nil)
		var refusal *secretscan.Refusal
		if !errors.As(err, &refusal) {
			return err
		}
		for _, f := range refusal.Findings {
			found = append(found, Secret{Path: p, Line: f.Line, Commit: at, Rule: f.Rule, Description: f.Description, Fingerprint: f.Fingerprint})
		}
		return nil
	})
	if err != nil || !r.WithSecrets {
		return found, err
	}
	for _, f := range found {
		err := l.Secrets.Allow(ctx, secretscan.Allowance{Space: id, Fingerprint: f.Fingerprint, Rule: f.Rule, Path: f.Path, By: operator.Via})
		if err != nil {
			return nil, err
		}
	}
	if len(found) > 0 {
		l.audit(ctx, "space.secret.allow", id)
	}
	return nil, nil
}

// wouldPurge reports what a purge would do.
func (l *Local) wouldPurge(ctx context.Context, id space.SpaceID, path space.Path, r PurgeRequest) (Purged, error) {
	since, rewrite, unclear, err := l.purger(ctx, id, path, r)
	if err != nil {
		return Purged{}, err
	}
	out := Purged{Files: []space.Path{}, Unclear: unclear}
	if out.Head, err = l.Git.Head(ctx, id); err != nil {
		return Purged{}, err
	}
	touched, worded := map[space.CommitID]bool{}, map[space.CommitID]bool{}
	err = l.Git.WalkBlobs(ctx, id, since, func(at space.CommitID, p space.Path, content []byte) error {
		if now, keep := rewrite(p, content); !keep || string(now) != string(content) {
			touched[at] = true
			if p == "" {
				worded[at] = true
			} else if !slices.Contains(out.Files, p) {
				out.Files = append(out.Files, p)
			}
		}
		return nil
	})
	slices.Sort(out.Files)
	out.Commits, out.Words = len(touched), len(worded)
	return out, err
}

// purger returns the newest commit that the remote has, what takes secrets out
// of files, and the places that the remote named and in which none is recognised.
// Of a space without a remote nothing counts as pushed.
func (l *Local) purger(ctx context.Context, id space.SpaceID, path space.Path, r PurgeRequest) (since space.CommitID, rewrite gitstore.RewriteFile, unclear []transport.Location, err error) {
	st, err := l.Remotes.Status(ctx, id)
	if err != nil {
		return "", nil, nil, err
	}
	if r.File {
		return st.Pushed, func(p space.Path, content []byte) ([]byte, bool) { return content, p != path }, nil, nil
	}
	u, err := l.Secrets.Purger(ctx, id)
	if err != nil {
		return "", nil, nil, err
	}
	if r.Line != 0 {
		err = l.learnLine(ctx, u, id, path, r)
	} else {
		unclear, err = l.learnLocations(ctx, u, id, path, st)
	}
	if err != nil {
		return "", nil, nil, err
	}
	return st.Pushed, func(p space.Path, content []byte) ([]byte, bool) {
		if path != "" && r.Line == 0 && p != path && p != "" { // messages have no path
			return content, true
		}
		return u.Rewrite(p, content)
	}, unclear, nil
}

// learnLine has u take out what a line holds that a person named.
func (l *Local) learnLine(ctx context.Context, u *secretscan.Purger, id space.SpaceID, path space.Path, r PurgeRequest) error {
	at, err := l.resolve(ctx, id, r.At)
	if err != nil {
		return err
	}
	_, content, err := l.Git.Open(ctx, id, at, path)
	if fault.CodeOf(err) == fault.NotFound && r.At == "" {
		return fault.Wrap(err, fault.NotFound, "There is no file %q now. Name a commit that has it with --at; satchel space status tells which.", string(path))
	}
	if err != nil {
		return err
	}
	if u.Learn(content, r.Line) == 0 {
		return fault.New(fault.Invalid, "Line %d of %q at commit %s holds nothing that could be looked for: a secret has at least 8 characters.", r.Line, string(path), at.Short())
	}
	return nil
}

// learnLocations has u take out what the remote named, and returns the places
// in which nothing looks like a secret: whether a line goes on the word of a
// remote alone, a person decides.
func (l *Local) learnLocations(ctx context.Context, u *secretscan.Purger, id space.SpaceID, path space.Path, st remotes.Status) (unclear []transport.Location, err error) {
	for _, where := range st.Locations {
		at, err := space.ParsePath(where.Path)
		if err != nil || where.Line == 0 || path != "" && at != path {
			continue
		}
		_, content, err := l.Git.Open(ctx, id, where.Commit, at)
		if fault.CodeOf(err) == fault.NotFound {
			continue // an earlier purge has taken it
		}
		if err != nil {
			return nil, err
		}
		if u.LearnNamed(content, where.Line) == 0 {
			unclear = append(unclear, where)
		}
	}
	return unclear, nil
}
