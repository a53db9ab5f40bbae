package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
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
	// Ended, where it is set, is told of a person who was removed, to stop what
	// runs for them.
	Ended func(ctx context.Context, user space.UserID)
	// MemberEnded is told of one who is no member of a space any more, and Revoked
	// that grants were revoked.
	MemberEnded func(ctx context.Context, user space.UserID, id space.SpaceID)
	Revoked     func()
	// LinkMade is told of a sign-in link that was made; nil if nobody is.
	LinkMade func(ctx context.Context, link string)
	Pages    Pages

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

// AddUser makes the space's repository first, so that a crash in between
// leaves a repository that nobody reaches and not a person without one.
func (l *Local) AddUser(ctx context.Context, name string, admin bool) (User, error) {
	return l.AddPerson(ctx, NewPerson{Name: name, Admin: admin})
}

// AddPerson makes a person as AddUser does.
func (l *Local) AddPerson(ctx context.Context, n NewPerson) (User, error) {
	if n.Email != "" {
		if err := store.CheckEmail(n.Email); err != nil {
			return User{}, err
		}
		if u, err := l.Accounts.UserByEmail(ctx, n.Email); err == nil {
			return User{}, fault.New(fault.Conflict, "%s has the address %s.", u.Name, n.Email)
		}
	}
	return l.addUser(ctx, operator, store.NewUser{Name: n.Name, Admin: n.Admin, Email: n.Email, Admitted: "command"})
}

// SetEmail changes an address.
func (l *Local) SetEmail(ctx context.Context, r EmailRequest) error {
	u, err := l.Accounts.FindUser(ctx, r.Name)
	if err != nil {
		return err
	}
	return l.Accounts.SetEmail(ctx, operator, u.ID, r.Email)
}

// FirstUser makes the first admin, where nobody was ever a user here; made is
// false if somebody was.
func (l *Local) FirstUser(ctx context.Context, name string) (u User, made bool, err error) {
	first, err := l.Accounts.FirstRun(ctx)
	if err != nil || !first {
		return User{}, false, err
	}
	u, err = l.addUser(ctx, store.Actor{Via: "first run"}, store.NewUser{Name: name, Admin: true, First: true, Admitted: "first run"})
	if fault.CodeOf(err) == fault.Conflict {
		return User{}, false, nil // another server on this database was quicker
	}
	return u, err == nil, err
}

func (l *Local) addUser(ctx context.Context, by store.Actor, n store.NewUser) (User, error) {
	u, err := l.AdmitUser(ctx, by, n)
	if err != nil {
		return User{}, err
	}
	return userOf(u), nil
}

// AdmitUser makes a user with a space of their own. The caller has checked that
// they may become one.
func (l *Local) AdmitUser(ctx context.Context, by store.Actor, n store.NewUser) (store.User, error) {
	if err := store.CheckName(n.Name); err != nil {
		return store.User{}, err
	}
	if _, err := l.Accounts.FindUser(ctx, n.Name); err == nil {
		return store.User{}, fault.New(fault.Conflict, "There is a user %q already.", n.Name)
	}
	n.Space = space.NewSpaceID()
	meta := space.Meta{Author: space.Person{Name: n.Name, Email: n.Name + "@satchel.invalid"}, Message: "Start the space", Tool: "satchel"}
	if _, err := l.Git.Create(ctx, n.Space, gitstore.StartingTree(), meta); err != nil {
		return store.User{}, err
	}
	u, _, err := l.Accounts.CreateUser(ctx, by, n)
	if err != nil {
		return store.User{}, errors.Join(err, l.Git.Remove(context.WithoutCancel(ctx), n.Space))
	}
	return u, nil
}

func userOf(u store.User) User {
	out := User{ID: u.ID, Name: u.Name, Admin: u.Admin, Email: u.Email, State: StateActive, Created: u.Created}
	if !u.Suspended.IsZero() {
		out.State = StateSuspended
	}
	return out
}

// Users lists the people by name.
func (l *Local) Users(ctx context.Context) ([]User, error) {
	rows, err := l.Accounts.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	users := make([]User, len(rows))
	for i, u := range rows {
		users[i] = userOf(u)
	}
	return users, nil
}

// RemoveUser ends a person's keys, and what runs for them.
func (l *Local) RemoveUser(ctx context.Context, name string) error {
	_, err := l.PartUser(ctx, name)
	return err
}

// PartUser removes a person and lists their spaces.
func (l *Local) PartUser(ctx context.Context, name string) (Parted, error) {
	u, err := l.Accounts.FindUser(ctx, name)
	if err != nil {
		return Parted{}, err
	}
	if err := l.Accounts.RemoveUser(ctx, operator, u.ID); err != nil {
		return Parted{}, err
	}
	if err := l.UserRemoved(ctx, u.ID); err != nil {
		return Parted{}, err
	}
	all, err := l.Accounts.Spaces(ctx)
	if err != nil {
		return Parted{}, err
	}
	out := Parted{Removed: u.Name, Spaces: []SpaceName{}}
	for _, sp := range all {
		if sp.Owner == u.ID {
			out.Spaces = append(out.Spaces, SpaceName{sp.ID, sp.Name})
		}
	}
	return out, nil
}

// UserRemoved ends what a removed person leaves: what runs for them, their
// remotes, what was held for them.
func (l *Local) UserRemoved(ctx context.Context, user space.UserID) error {
	if l.Ended != nil {
		l.Ended(ctx, user)
	}
	// Their token is theirs: nothing is pushed with it any more.
	if err := l.removeRemotes(ctx, user); err != nil {
		return fmt.Errorf("remove the remotes of a removed user: %w", err)
	}
	// After the stop, by which their sandboxes may still have kept something.
	if err := l.Held.DropUser(context.WithoutCancel(ctx), user); err != nil {
		return fmt.Errorf("throw away what was held for a removed user: %w", err)
	}
	return nil
}

func (l *Local) removeRemotes(ctx context.Context, owner space.UserID) error {
	rows, err := l.Accounts.Spaces(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Owner != owner {
			continue
		}
		if err := l.EndRemote(ctx, operator, row.ID); err != nil {
			return err
		}
	}
	return nil
}

// EndRemote ends a space's remote, if it has one.
func (l *Local) EndRemote(ctx context.Context, by store.Actor, id space.SpaceID) error {
	if !l.Remotes.Has(id) {
		return nil
	}
	if err := l.Remotes.Remove(context.WithoutCancel(ctx), id); err != nil {
		return err
	}
	l.note(ctx, by, "space.remote.remove", id, nil)
	return nil
}

// EndGivenRemote ends the remote that a space had when it was given away: its token
// and the repository are the former owner's. What the new owner has set stays.
func (l *Local) EndGivenRemote(ctx context.Context, gift store.Entry) error {
	id := space.SpaceID(gift.Subject)
	removed, err := l.Remotes.RemoveSetBefore(context.WithoutCancel(ctx), id, gift.At)
	if err != nil {
		return fmt.Errorf("remove the remote of a given space: %w", err)
	}
	if removed {
		l.note(ctx, gift.Actor, "space.remote.remove", id, nil)
	}
	return nil
}

// user finds a person by name; empty means the first admin, or the only person where
// nobody is one.
func (l *Local) user(ctx context.Context, name string) (store.User, error) {
	return l.Service.NamedUser(ctx, name)
}

// CreateToken makes a key for the person's own space.
func (l *Local) CreateToken(ctx context.Context, r TokenRequest) (Token, error) {
	u, err := l.user(ctx, r.User)
	if err != nil {
		return Token{}, err
	}
	m, err := l.Accounts.FindSpace(ctx, u.ID, r.Space)
	if err != nil {
		return Token{}, err
	}
	k := store.NewKey{User: u.ID, Space: m.ID, Scopes: r.Scopes, Name: r.Name}
	if r.Expires > 0 {
		k.Expires = time.Now().Add(r.Expires)
	}
	g, secret, err := l.Accounts.CreateKey(ctx, operator, k)
	if err != nil {
		return Token{}, err
	}
	return Token{ID: g.ID, Secret: secret.Reveal()}, nil
}

// Tokens lists keys, newest first.
func (l *Local) Tokens(ctx context.Context, user string) ([]TokenInfo, error) {
	var id space.UserID
	if user != "" {
		u, err := l.Accounts.FindUser(ctx, user)
		if err != nil {
			return nil, err
		}
		id = u.ID
	}
	keys, err := l.Accounts.ListKeys(ctx, id)
	if err != nil {
		return nil, err
	}
	out := []TokenInfo{}
	for _, k := range keys {
		out = append(out, TokenInfo{
			ID: k.ID, User: k.UserName, Space: k.SpaceName, Name: k.Name, Scopes: k.Scopes, Created: k.Created,
			Expires: known(k.Expires), LastUsed: known(k.LastUsed), Revoked: !k.Revoked.IsZero(),
		})
	}
	return out, nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// RevokeToken ends a key at once.
func (l *Local) RevokeToken(ctx context.Context, id space.GrantID) error {
	if err := l.Accounts.RevokeKey(ctx, operator, id, ""); err != nil {
		return err
	}
	l.grantsEnded()
	return nil
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
