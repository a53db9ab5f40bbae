package service

import (
	"context"
	"errors"
	"slices"
	"strings"

	"satchel/gitstore/secretscan"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/pending"
)

// ListPendingFilesInput names a space. The first Inspect files are searched for secrets.
type ListPendingFilesInput struct {
	Space   SpaceRef `json:"space"`
	Inspect int      `json:"inspect"`
}

// ListPendingFiles lists the actor's files in a space that could not be committed, sorted
// by path. Each member of a space has their own pending files.
func (s *Service) ListPendingFiles(ctx context.Context, a Actor, in ListPendingFilesInput) ([]space.PendingFile, error) {
	m, err := s.authorizeSpace(ctx, a, "ListPendingFiles", in.Space)
	if err != nil {
		return nil, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return nil, err
	}
	list, err := s.pending.List(ctx, who.user, m.ID)
	if err != nil || in.Inspect <= 0 || len(list) == 0 {
		return list, err
	}
	files, err := s.pending.Load(ctx, who.user, m.ID)
	if err != nil {
		return nil, err
	}
	for _, f := range files[:min(in.Inspect, len(files))] {
		i := slices.IndexFunc(list, func(p space.PendingFile) bool { return p.Path == f.Path })
		if i < 0 {
			continue // the file was added since List
		}
		if err := s.inspect(ctx, m.ID, f, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// inspect searches a file for secrets again, because some may have been allowed since.
func (s *Service) inspect(ctx context.Context, id space.SpaceID, f pending.File, p *space.PendingFile) error {
	p.Shown, p.Why = s.redacted(f.Path), s.redacted(f.Why)
	if f.Lost != "" {
		p.Why += " It is only named here: " + s.redacted(f.Lost) + "."
		return nil
	}
	found, secret, err := s.secretsIn(ctx, id, f)
	if err != nil {
		return err
	}
	p.Allowed = secret && len(found) == 0
	for _, x := range found {
		p.Secrets = append(p.Secrets, space.PendingSecret{Line: x.Line, Rule: x.Rule, Description: x.Description, Fingerprint: x.Fingerprint})
	}
	return nil
}

// redacted removes likely secrets from a text.
func (s *Service) redacted(text string) string {
	return string(secretscan.Redact([]byte(text), s.secrets.Scan("", []byte(text))))
}

// secretsIn finds the likely secrets that keep a file from being committed. secret reports
// whether the file was refused for secrets.
func (s *Service) secretsIn(ctx context.Context, id space.SpaceID, f pending.File) (found []secretscan.Finding, secret bool, err error) {
	if f.Code != fault.Forbidden || len(s.secrets.Scan("", f.Content))+len(s.secrets.Scan("", []byte(f.Path))) == 0 {
		return nil, false, nil // refused by another rule
	}
	if !s.o.ScreenSecrets || !s.remotes.Has(id) {
		return nil, true, nil
	}
	at := space.Path(f.Path)
	err = s.secrets.Screen(ctx, id, at, f.Content, func() ([]byte, error) {
		_, now, err := s.git.Open(ctx, id, "", at)
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

var errNotPending = fault.New(fault.NotFound, "No such file is waiting to be saved.")

// AllowPendingSecretsInput holds the fingerprints of secrets that the actor saw in a
// pending file.
type AllowPendingSecretsInput struct {
	Space        SpaceRef `json:"space"`
	Path         string   `json:"path"`
	Fingerprints []string `json:"fingerprints"`
}

// AllowPendingSecrets allows secrets in the space. It returns a fault.Conflict if the file has
// none of them, or if all of them are allowed already.
func (s *Service) AllowPendingSecrets(ctx context.Context, a Actor, in AllowPendingSecretsInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "AllowPendingSecrets", in.Space)
	if err != nil {
		return None{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return None{}, err
	}
	files, err := s.pending.Load(ctx, who.user, m.ID)
	if err != nil {
		return None{}, err
	}
	i := slices.IndexFunc(files, func(f pending.File) bool { return f.Path == in.Path })
	if i < 0 || files[i].Lost != "" {
		return None{}, errNotPending
	}
	found, _, err := s.secretsIn(ctx, m.ID, files[i])
	if err != nil {
		return None{}, err
	}
	allowed := false
	for _, f := range found {
		if !slices.Contains(in.Fingerprints, f.Fingerprint) {
			continue
		}
		err := s.secrets.Allow(ctx, space.SecretAllowance{Space: m.ID, Fingerprint: f.Fingerprint, Rule: f.Rule, Path: space.Path(s.redacted(in.Path)), By: string(who.user)})
		if err != nil {
			return None{}, err
		}
		allowed = true
	}
	if !allowed {
		return None{}, fault.New(fault.Conflict, "The file has changed or is already allowed. Look at it again.")
	}
	s.record(ctx, a, "space.secret.allow", string(m.ID), nil)
	return None{}, nil
}

// DiscardPendingFileInput names a pending file, or a directory of them.
type DiscardPendingFileInput struct {
	Space SpaceRef `json:"space"`
	Path  string   `json:"path"`
}

// DiscardPendingFile discards the actor's pending files at or under a path, also in a
// running sandbox, and returns the number of discarded files.
func (s *Service) DiscardPendingFile(ctx context.Context, a Actor, in DiscardPendingFileInput) (int, error) {
	m, err := s.authorizeSpace(ctx, a, "DiscardPendingFile", in.Space)
	if err != nil {
		return 0, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return 0, err
	}
	if strings.Trim(in.Path, "/") == "" {
		return 0, errNotPending // an empty path would discard all files
	}
	discard := s.pending.Drop
	if s.running.DiscardPending != nil {
		discard = s.running.DiscardPending
	}
	n, err := discard(ctx, who.user, m.ID, in.Path)
	if err == nil && n == 0 {
		err = errNotPending
	}
	return n, err
}
