package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"satchel/gitstore/secretscan"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/web"
)

// pageHeld is what could not be committed, as the pages have it: what satchel
// space status, space allow and space discard do for one person in one space.
type pageHeld struct{ s *Server }

var _ web.Held = pageHeld{}

func (p pageHeld) Paths(ctx context.Context, user space.UserID, id space.SpaceID) ([]string, error) {
	items, err := p.s.held.List(ctx, user, id)
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.Path
	}
	return out, err
}

// List looks into the files again: what is allowed may have changed since they
// were held, and what a page offers to allow is what they have now.
func (p pageHeld) List(ctx context.Context, user space.UserID, id space.SpaceID, limit int) ([]web.HeldFile, error) {
	files, err := p.s.held.Load(ctx, user, id)
	if err != nil {
		return nil, err
	}
	if limit > 0 && len(files) > limit {
		files = files[:limit]
	}
	out := make([]web.HeldFile, len(files))
	for i, f := range files {
		out[i] = web.HeldFile{Path: f.Path, Shown: p.redacted(f.Path), Size: int64(len(f.Content)), Since: f.Since, Why: p.redacted(f.Why)}
		if f.Lost != "" {
			out[i].Why += " It is only named here: " + p.redacted(f.Lost) + "."
			continue
		}
		found, secret, err := p.secrets(ctx, id, f)
		if err != nil {
			return nil, err
		}
		out[i].Allowed = secret && len(found) == 0
		for _, x := range found {
			out[i].Secrets = append(out[i].Secrets, web.HeldSecret{Line: x.Line, Description: x.Description, Fingerprint: x.Fingerprint})
		}
	}
	return out, nil
}

// redacted is a text without what looks like a secret in it.
func (p pageHeld) redacted(text string) string {
	return string(secretscan.Redact([]byte(text), p.s.secrets.Scan("", []byte(text))))
}

// secrets finds what looks like a secret in a file that was refused for one, and
// what of it may not be committed.
func (p pageHeld) secrets(ctx context.Context, id space.SpaceID, f pending.File) (found []secretscan.Finding, secret bool, err error) {
	if f.Code != fault.Forbidden {
		return nil, false, nil // it is another rule's
	}
	if len(p.s.secrets.Scan("", f.Content))+len(p.s.secrets.Scan("", []byte(f.Path))) == 0 {
		return nil, false, nil
	}
	if !p.s.Config.Space.ScreenSecrets || !p.s.remotes.Has(id) {
		return nil, true, nil
	}
	at := space.Path(f.Path)
	err = p.s.secrets.Screen(ctx, id, at, f.Content, func() ([]byte, error) {
		_, now, err := p.s.Git.Open(ctx, id, "", at)
		if c := fault.CodeOf(err); c == fault.NotFound || c == fault.Invalid {
			return nil, nil
		}
		return now, err
	})
	var refusal *secretscan.Refusal
	if errors.As(err, &refusal) {
		return refusal.Findings, true, nil
	}
	return nil, err == nil, err
}

// Allow allows nothing but what the person saw and the file still has.
func (p pageHeld) Allow(ctx context.Context, user space.UserID, id space.SpaceID, path string, fingerprints []string) error {
	files, err := p.s.held.Load(ctx, user, id)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(f pending.File) bool { return f.Path == path })
	if i < 0 || files[i].Lost != "" {
		return fault.New(fault.NotFound, "No such file is held.")
	}
	found, _, err := p.secrets(ctx, id, files[i])
	if err != nil {
		return err
	}
	allowed := false
	for _, f := range found {
		if !slices.Contains(fingerprints, f.Fingerprint) {
			continue
		}
		err := p.s.secrets.Allow(ctx, secretscan.Allowance{Space: id, Fingerprint: f.Fingerprint, Rule: f.Rule, Path: space.Path(p.redacted(path)), By: string(user)})
		if err != nil {
			return err
		}
		allowed = true
	}
	if !allowed {
		return fault.New(fault.Conflict, "The file was changed meanwhile, or is allowed already. Look at it again.")
	}
	p.s.auditPage(ctx, user, "space.secret.allow", id, nil)
	return nil
}

// Discard throws away what is held at a path, in a sandbox that runs too.
func (p pageHeld) Discard(ctx context.Context, user space.UserID, id space.SpaceID, path string) error {
	if strings.Trim(path, "/") == "" {
		return fault.New(fault.NotFound, "No such file is held.") // it would be all of them
	}
	if p.s.bash != nil {
		_, err := p.s.bash.pool.DropPending(ctx, user, id, path)
		return err
	}
	n, err := p.s.held.Drop(ctx, user, id, path)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "No such file is held.")
	}
	return err
}
