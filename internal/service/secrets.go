package service

import (
	"context"
	"errors"
	"slices"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/secretscan"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index"
)

// FoundSecret is a place in a space's history that looks like a secret.
type FoundSecret struct {
	Path space.Path `json:"path"` // empty: the message or a name of the commit
	Line int        `json:"line"` // 0: the file's name
	// Commit is the newest commit that wrote the secret. The file may have changed later.
	Commit      space.CommitID `json:"commit"`
	Rule        string         `json:"rule"`
	Description string         `json:"description"`
	// Fingerprint identifies the secret. It is the same at every place.
	Fingerprint string `json:"fingerprint"`
}

// secretSearch collects the likely secrets in the history of a space.
type secretSearch struct {
	id             space.SpaceID
	permit         func(fingerprint string) bool
	max            int // the search ends with more findings than this; 0: it never ends early
	seen           map[string]bool
	found, allowed []FoundSecret
}

func newSecretSearch(id space.SpaceID, in SetRemoteInput) *secretSearch {
	return &secretSearch{
		id: id, max: in.MaxSecrets, seen: map[string]bool{},
		permit: func(print string) bool { return in.WithSecrets || slices.Contains(in.AllowSecrets, print) },
	}
}

var errEnoughFound = errors.New("enough was found")

// searchSecrets searches the history for secrets, but skips the commit since and its history.
func (s *Service) searchSecrets(ctx context.Context, x *secretSearch, since space.CommitID) error {
	err := s.git.WalkBlobs(ctx, x.id, since, func(at space.CommitID, p space.Path, content []byte) error {
		err := s.secrets.Screen(ctx, x.id, p, content, nil)
		var refusal *secretscan.Refusal
		if !errors.As(err, &refusal) {
			return err
		}
		for _, f := range refusal.Findings {
			if x.max > 0 && x.seen[f.Fingerprint] {
				continue
			}
			x.seen[f.Fingerprint] = true
			one := FoundSecret{Path: p, Line: f.Line, Commit: at, Rule: f.Rule, Description: f.Description, Fingerprint: f.Fingerprint}
			if x.permit(f.Fingerprint) {
				x.allowed = append(x.allowed, one)
				continue
			}
			if x.found = append(x.found, one); x.max > 0 && len(x.found) > x.max {
				return errEnoughFound
			}
		}
		return nil
	})
	if errors.Is(err, errEnoughFound) {
		return nil
	}
	return err
}

// PurgeSecretsInput selects what to remove from commits that were never pushed.
type PurgeSecretsInput struct {
	Space SpaceRef `json:"space"`
	// Path selects a file. If it is empty, the purge covers every file in which the
	// scanner or the remote found a secret.
	Path string `json:"path"`
	// Line is the line of the secret in the file at Path, as the commit At has the file. Lines
	// count from 1. If Line is 0, the scanner finds the secrets.
	Line int `json:"line"`
	// At is a commit, in full or by its first digits. Empty means head.
	At string `json:"at"`
	// File removes the whole file at Path.
	File bool `json:"file"`
	// DryRun returns what would change, and changes nothing.
	DryRun bool `json:"dry_run"`
}

// PurgeResult is what a purge changed.
type PurgeResult struct {
	Head    space.CommitID `json:"head"`
	Commits int            `json:"commits"` // number of rewritten commits
	Files   []space.Path   `json:"files"`
	Words   int            `json:"words"` // commits and tags with a rewritten message or name
	// Unclear lists places that the remote reported but that contain nothing like a secret.
	// They were not changed.
	Unclear []space.RemoteLocation `json:"unclear,omitempty"`
}

// toolPurge is the tool that the metadata of a purge's commit names.
const toolPurge = "purge"

// PurgeSecrets removes secrets from commits that were never pushed. It first stops the
// syncs and sandboxes of the space, so that they do not bring the old commits back.
func (s *Service) PurgeSecrets(ctx context.Context, a Actor, in PurgeSecretsInput) (PurgeResult, error) {
	m, err := s.authorizeSpace(ctx, a, "PurgeSecrets", in.Space)
	if err != nil {
		return PurgeResult{}, err
	}
	path, err := cleanPath(in.Path)
	if err != nil {
		return PurgeResult{}, err
	}
	if path == "" && (in.File || in.Line != 0) || in.File && in.Line != 0 {
		return PurgeResult{}, fault.New(fault.Invalid, "Name the file, and either a line of it or the whole of it.")
	}
	if in.DryRun {
		return s.previewPurge(ctx, m.ID, path, in)
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return PurgeResult{}, err
	}
	resume, err := s.remotes.Pause(ctx, m.ID)
	if err != nil {
		return PurgeResult{}, err
	}
	defer resume()
	progress := Progress(ctx)
	progress("Stopping the space's sandboxes")
	if err := s.stopSpace(ctx, m.ID); err != nil {
		return PurgeResult{}, err
	}
	p, err := s.planPurge(ctx, m.ID, path, in)
	if err != nil {
		return PurgeResult{}, err
	}
	progress("Rewriting commits that were never pushed")
	res, err := s.git.Purge(ctx, m.ID, p.since, p.rewrite, who.commitMeta(toolPurge, ""))
	if err != nil {
		return PurgeResult{}, err
	}
	if res.Commits > 0 {
		s.record(ctx, a, "space.purge", string(m.ID), nil)
		progress("Rebuilding the search index")
		if err := s.withIndex(func(x *index.Index) error { return s.purgeIndex(ctx, x, m.ID) }); err != nil {
			return PurgeResult{}, err
		}
	}
	return PurgeResult{Head: res.Head, Commits: res.Commits, Files: append([]space.Path{}, res.Files...), Words: res.Words, Unclear: p.unclear}, nil
}

// stopSpace stops everything that runs in a space, after its changes are saved.
func (s *Service) stopSpace(ctx context.Context, id space.SpaceID) error {
	if s.running.StopSpace == nil {
		return nil
	}
	return s.running.StopSpace(ctx, id)
}

// previewPurge returns what a purge would change.
func (s *Service) previewPurge(ctx context.Context, id space.SpaceID, path space.Path, in PurgeSecretsInput) (PurgeResult, error) {
	plan, err := s.planPurge(ctx, id, path, in)
	if err != nil {
		return PurgeResult{}, err
	}
	out := PurgeResult{Files: []space.Path{}, Unclear: plan.unclear}
	if out.Head, err = s.git.Head(ctx, id); err != nil {
		return PurgeResult{}, err
	}
	touched, worded := map[space.CommitID]bool{}, map[space.CommitID]bool{}
	err = s.git.WalkBlobs(ctx, id, plan.since, func(at space.CommitID, p space.Path, content []byte) error {
		if now, keep := plan.rewrite(p, content); !keep || string(now) != string(content) {
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

// purgePlan describes how a purge rewrites files.
type purgePlan struct {
	since   space.CommitID // the newest commit that the remote has; empty without a remote
	rewrite gitstore.RewriteFile
	unclear []space.RemoteLocation // places that the remote reported and that have no likely secret
}

func (s *Service) planPurge(ctx context.Context, id space.SpaceID, path space.Path, in PurgeSecretsInput) (purgePlan, error) {
	st, err := s.remotes.Status(ctx, id)
	if err != nil {
		return purgePlan{}, err
	}
	plan := purgePlan{since: st.Pushed}
	if in.File {
		plan.rewrite = func(p space.Path, content []byte) ([]byte, bool) { return content, p != path }
		return plan, nil
	}
	u, err := s.secrets.Purger(ctx, id)
	if err != nil {
		return plan, err
	}
	if in.Line != 0 {
		plan.rewrite = u.RewriteLearnt
		return plan, s.learnLine(ctx, u, id, path, in)
	}
	plan.unclear, err = s.learnLocations(ctx, u, id, path, st)
	plan.rewrite = func(p space.Path, content []byte) ([]byte, bool) {
		if path != "" && p != path && p != "" { // commit messages have no path
			return content, true
		}
		return u.Rewrite(p, content)
	}
	return plan, err
}

// learnLine adds the content of the line in.Line to what the purge removes.
func (s *Service) learnLine(ctx context.Context, u *secretscan.Purger, id space.SpaceID, path space.Path, in PurgeSecretsInput) error {
	at, err := View{store.Membership{Space: store.Space{ID: id}}, s}.commitOf(ctx, in.At)
	if err != nil {
		return err
	}
	_, content, err := s.git.Open(ctx, id, at, path)
	if fault.CodeOf(err) == fault.NotFound && in.At == "" {
		return fault.Wrap(err, fault.NotFound, "There is no file %q now. Name a commit that has it with --at; satchel space status shows one.", string(path))
	}
	if err != nil {
		return err
	}
	if u.Learn(content, in.Line) == 0 {
		return fault.New(fault.Invalid, "Line %d of %q at commit %s has nothing to search for: a secret has at least 8 characters.", in.Line, string(path), at.Short())
	}
	return nil
}

// learnLocations adds the secrets at the places that the remote reported to what the purge removes.
// It returns the places without a likely secret, for a person to check.
func (s *Service) learnLocations(ctx context.Context, u *secretscan.Purger, id space.SpaceID, path space.Path, st space.RemoteStatus) (unclear []space.RemoteLocation, err error) {
	for _, where := range st.Locations {
		at, err := space.ParsePath(where.Path)
		if err != nil || where.Line == 0 || path != "" && at != path {
			continue
		}
		_, content, err := s.git.Open(ctx, id, where.Commit, at)
		if fault.CodeOf(err) == fault.NotFound {
			continue // an earlier purge removed the file
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

// AllowSecretInput names a secret by its fingerprint.
type AllowSecretInput struct {
	Space       SpaceRef `json:"space"`
	Fingerprint string   `json:"fingerprint"`
}

// AllowSecret allows a secret at every path of the space.
func (s *Service) AllowSecret(ctx context.Context, a Actor, in AllowSecretInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "AllowSecret", in.Space)
	if err != nil {
		return None{}, err
	}
	if err := s.secrets.Allow(ctx, space.SecretAllowance{Space: m.ID, Fingerprint: in.Fingerprint, By: a.allower()}); err != nil {
		return None{}, err
	}
	s.record(ctx, a, "space.secret.allow", string(m.ID), nil)
	return None{}, nil
}

// allower returns the text that identifies the actor in the allowance of a secret.
func (a Actor) allower() string {
	if a.kind == operator {
		return a.via
	}
	return string(a.user)
}

// DisallowSecretInput names a secret by its fingerprint.
type DisallowSecretInput struct {
	Space       SpaceRef `json:"space"`
	Fingerprint string   `json:"fingerprint"`
}

// DisallowSecret ends the allowance of a secret. Committed files that contain the secret stay.
func (s *Service) DisallowSecret(ctx context.Context, a Actor, in DisallowSecretInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "DisallowSecret", in.Space)
	if err != nil {
		return None{}, err
	}
	if err := s.secrets.Disallow(ctx, m.ID, in.Fingerprint); err != nil {
		return None{}, err
	}
	s.record(ctx, a, "space.secret.disallow", string(m.ID), nil)
	return None{}, nil
}

// ListAllowedSecretsInput names a space.
type ListAllowedSecretsInput struct {
	Space SpaceRef `json:"space"`
}

// ListAllowedSecrets lists the allowances of secrets in a space, newest first.
func (s *Service) ListAllowedSecrets(ctx context.Context, a Actor, in ListAllowedSecretsInput) ([]space.SecretAllowance, error) {
	m, err := s.authorizeSpace(ctx, a, "ListAllowedSecrets", in.Space)
	if err != nil {
		return nil, err
	}
	return s.secrets.List(ctx, m.ID)
}
