package admin

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"unicode"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/sandbox/pending"
)

// Local is the Service on a data directory that this process has open.
type Local struct {
	Service  *service.Service
	Accounts *store.Store
	Git      *gitstore.Store
	// SpacesDir is the directory of the bare repositories.
	SpacesDir string
	// Running is what Info answers.
	Running Info
	Remotes *remotes.Manager
	// Published is what people publish of their spaces.
	Published *sources.Manager
	Secrets   *secretscan.Scanner
	// Unscreened is set where the configuration lets secrets be pushed.
	Unscreened bool
	Held       *pending.Store
	// StopSpace, where it is set, stops what runs in a space after it has saved
	// what that changed.
	StopSpace func(ctx context.Context, id space.SpaceID) error
	// Delete deletes a space for good; owner is whose it must be, empty for anyone's.
	Delete func(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) error
	// Purged forgets what is derived from a space's files, after some were purged.
	Purged func(ctx context.Context, id space.SpaceID) error
	// OpenFinder opens the search index. What it returns is closed after each use.
	OpenFinder func(ctx context.Context) (Finder, error)
	Logger     *slog.Logger
}

var _ Service = (*Local)(nil)

// operator is who acts, for the audit log.
var operator = store.Actor{Via: "command line"}

// Info reports what runs.
func (l *Local) Info(context.Context) (Info, error) { return l.Running, nil }

// user finds a person by name; empty means the first admin, or the only person where
// nobody is one.
func (l *Local) user(ctx context.Context, name string) (store.User, error) {
	return l.Service.NamedUser(ctx, name)
}

// ImportTool is the tool that a commit of an import names.
const ImportTool = "import"

// Import fills a person's space.
func (l *Local) Import(ctx context.Context, r ImportRequest, stream io.Reader, progress func(string)) (ImportResult, error) {
	u, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return ImportResult{}, err
	}
	in := &watched{r: stream}
	var src gitstore.ImportSource
	switch r.Kind {
	case KindBundle:
		src = gitstore.FromBundle(in)
	case KindTar:
		src = gitstore.FromTar(in)
	default:
		return ImportResult{}, fault.New(fault.Invalid, "%q is not a kind of import.", r.Kind)
	}
	res, err := l.Git.Import(ctx, id, src, space.Meta{
		Author: author(u), Tool: ImportTool, Message: "Import " + oneLine(r.Source),
	}, progress)
	if failed := in.failure(); err != nil && failed != nil {
		return ImportResult{}, failed
	}
	if err != nil {
		return ImportResult{}, err
	}
	out := ImportResult{Commit: res.Commit.ID, Files: res.Files, History: res.History, Changed: res.Commit.Changed}
	for _, n := range res.Notes {
		out.Refused = append(out.Refused, Refused{n.Path, n.Why})
	}
	for _, w := range res.Commit.Warnings {
		out.Warnings = append(out.Warnings, Warning(w))
	}
	for _, c := range res.Commit.Conflicts {
		out.Conflicts = append(out.Conflicts, Conflict{string(c.Path), string(c.Kept)})
	}
	for _, p := range res.Replaced {
		out.Replaced = append(out.Replaced, string(p))
	}
	return out, nil
}

// maxSource bounds how much of a source's name a commit message has, in
// characters.
const maxSource = 200

// oneLine makes a name fit for the first line of a commit message: a directory
// may be called anything, and what follows a line break could be read as the
// commit's trailers.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxSource {
		s = string(r[:maxSource]) + "…"
	}
	return strings.TrimSpace(s)
}

// author is a person as the author of commits.
func author(u store.User) space.Person {
	return auth.Principal{User: u.ID, UserName: u.Name, Display: u.Display, Email: u.Email}.Person()
}
