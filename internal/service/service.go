package service

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/reviews"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/pending"
	"satchel/tools/index"
)

// Options are the engines that a Service drives. Accounts and Git are required.
type Options struct {
	Accounts *store.Store
	Git      *gitstore.Store
	Sources  *sources.Manager
	Secrets  *secretscan.Scanner
	Remotes  *remotes.Manager
	Held     *pending.Store
	Reviews  *reviews.Reviews
	// ScreenSecrets says that commits to spaces with a remote are searched for secrets.
	ScreenSecrets bool
	// OpenIndex opens the search index if no server runs.
	OpenIndex func() (*index.Index, error)
	// ForgetVectors removes the embeddings of a collection; nil if there are none.
	ForgetVectors func(ctx context.Context, x *index.Index, id space.SpaceID) error
	// Imports are for imports from URLs.
	Imports ImportOptions
	// DeleteSpace deletes a space if no server runs; see Running.
	DeleteSpace func(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (done <-chan error, err error)
	Search      SearchLimits
	// URL is the origin of the pages, for links that people open.
	URL string
	// LinkLifetime and InviteLifetime are how long sign-in links and invitations can be
	// used; 0 for the defaults.
	LinkLifetime, InviteLifetime time.Duration
	MaxSpaces                    int    // of their own that people can make for themselves; 0 for the default
	SpacesDir                    string // of the bare repositories
	// Allow admits people without an invitation. MembersInvite lets the invitations of
	// members admit people, too.
	Allow         auth.AllowList
	MembersInvite bool
	Now           func() time.Time // nil for time.Now
	Logger        *slog.Logger     // nil discards
}

// The defaults of Options.
const (
	DefaultLinkLifetime   = 15 * time.Minute
	DefaultInviteLifetime = 7 * 24 * time.Hour
	DefaultMaxSpaces      = 50
)

// Running holds the parts that only a running server has. Any may be nil.
type Running struct {
	// Pool runs commands.
	Pool *sandbox.Pool
	// PagesURL replaces Options.URL.
	PagesURL string
	// Index is the search index.
	Index *index.Index
	// UserRemoved stops everything that runs for a removed person.
	UserRemoved func(ctx context.Context, user space.UserID)
	// MemberChanged stops what a member's role in a space does not permit any more; an
	// empty role is that of a person who is no longer a member.
	MemberChanged func(ctx context.Context, user space.UserID, id space.SpaceID, role space.Role)
	// GrantsRevoked ends the calls and streams whose grant is no longer good.
	GrantsRevoked func()
	// LinkMade informs the person for whom a sign-in link was made.
	LinkMade func(ctx context.Context, link string)
	// SpaceCreated prepares a new space for its first use.
	SpaceCreated func(id space.SpaceID)
	// StopSpace stops what runs in a space, after it has saved its changes.
	StopSpace func(ctx context.Context, id space.SpaceID) error
	// DiscardHeld discards files of a person that could not be committed, and returns how
	// many; an empty path means all.
	DiscardHeld func(ctx context.Context, user space.UserID, id space.SpaceID, path string) (int, error)
	// Background starts work that outlives its request. Its context ends with the
	// server.
	Background func(work func(ctx context.Context)) error
	// Health reports the state of the server, and Usage what people use. Access is what the
	// configuration says about access besides Options.Allow and Options.MembersInvite.
	Health func(ctx context.Context) (Health, error)
	Usage  func(ctx context.Context, people []space.UserID) ([]Usage, error)
	Access Access
	// DeleteSpace deletes a space for good and records that. If owner is not empty, they
	// must own it. done gets nil when all of it is removed.
	DeleteSpace func(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (done <-chan error, err error)
}

// Attach adds the parts of a running server, and removes what a killed one left. Call it
// before the first operation.
func (s *Service) Attach(r Running) {
	s.running = r
	s.o.URL = cmp.Or(r.PagesURL, s.o.URL)
	if s.o.Imports.Dir != "" {
		removeLeftImports(s.o.Imports.Dir)
	}
}

// Service performs operations. Its methods are safe for concurrent use.
type Service struct {
	accounts *store.Store
	git      *gitstore.Store
	sources  *sources.Manager
	secrets  *secretscan.Scanner
	remotes  *remotes.Manager
	held     *pending.Store
	reviews  *reviews.Reviews
	o        Options
	running  Running
	sessions sessions
	imports  *importRuns
	searches *perUserQueue
	log      *slog.Logger
	rights   map[string]Right // by the names of operations
}

// New returns a Service.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.MaxSpaces = cmp.Or(o.MaxSpaces, DefaultMaxSpaces)
	o.LinkLifetime, o.InviteLifetime = cmp.Or(o.LinkLifetime, DefaultLinkLifetime), cmp.Or(o.InviteLifetime, DefaultInviteLifetime)
	o.Search = o.Search.withDefaults()
	s := &Service{
		accounts: o.Accounts, git: o.Git, sources: o.Sources, secrets: o.Secrets, remotes: o.Remotes, held: o.Held, reviews: o.Reviews,
		o: o, log: o.Logger, rights: map[string]Right{},
		searches: newPerUserQueue(o.Search.AtOnce, o.Search.Waiting),
		sessions: sessions{byID: map[space.SpaceID]*session{}},
	}
	s.imports = s.newImportRuns()
	for _, op := range Operations() {
		s.rights[op.Name] = op.Right
	}
	return s
}

// record writes an audit line. The operation has succeeded by then, so that a failure
// is only logged.
func (s *Service) record(ctx context.Context, a Actor, action, subject string, detail map[string]any) {
	if err := s.accounts.Record(context.WithoutCancel(ctx), a.audit(), action, subject, detail); err != nil {
		s.log.Error("write the audit log", "action", action, "err", err)
	}
}
