package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/reviews"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/facts"
	"satchel/internal/space"
	"satchel/internal/usage"
	"satchel/sandbox"
	"satchel/sandbox/pending"
	"satchel/tools/index"
)

// Options configure a Service. Accounts and Git are required.
type Options struct {
	Accounts *store.Store
	Git      *gitstore.Store
	Sources  *sources.Manager
	Syncs    *syncs.Manager // nil where sources cannot be synced
	Secrets  *secretscan.Scanner
	Remotes  *remotes.Manager
	Pending  *pending.Store
	Reviews  *reviews.Reviews
	// ScreenSecrets says that commits are searched for secrets. A commit with secrets is refused.
	// In a space without a remote, it only gets a warning.
	ScreenSecrets bool
	// OpenIndex opens the search index if no server is running.
	OpenIndex func() (*index.Index, error)
	// ForgetVectors removes the embeddings of a collection. It may be nil.
	ForgetVectors func(ctx context.Context, x *index.Index, id space.SpaceID) error
	Imports       ImportOptions
	// DeleteSpace deletes a space if no server is running; see Running.
	DeleteSpace func(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (done <-chan error, err error)
	Search      SearchLimits
	// URL is the origin of the pages, for links.
	URL string
	// LinkLifetime and InviteLifetime are the lifetimes of sign-in links and invitations;
	// 0 means the default.
	LinkLifetime, InviteLifetime time.Duration
	MaxSpaces                    int    // spaces that a person can create and own; 0: the default
	SpacesDir                    string // the directory of the bare repositories
	// Allow admits people without an invitation. MembersInvite lets owners of spaces invite
	// new people.
	Allow         auth.AllowList
	MembersInvite bool
	// AllowSources lists the hosts and repositories from which people who are not admins can add
	// synced sources; see syncs.Allowed.
	AllowSources []string
	Now          func() time.Time // nil means time.Now
	Logger       *slog.Logger     // nil discards messages
}

// Defaults of Options.
const (
	DefaultLinkLifetime   = 15 * time.Minute
	DefaultInviteLifetime = 7 * 24 * time.Hour
	DefaultMaxSpaces      = 50
)

// Running holds the parts that only a running server has. Each field may be nil or zero.
type Running struct {
	// Pool runs commands.
	Pool *sandbox.Pool
	// PagesURL replaces Options.URL.
	PagesURL string
	Index    *index.Index
	// UserRemoved stops everything that runs for a removed person.
	UserRemoved func(ctx context.Context, user space.UserID)
	// MemberChanged stops everything that a member's new role in a space does not allow.
	// The role is empty if the person is no longer a member.
	MemberChanged func(ctx context.Context, user space.UserID, id space.SpaceID, role space.Role)
	// GrantsRevoked ends the calls and streams of invalid grants.
	GrantsRevoked func()
	// LinkMade notifies a person of a new sign-in link for them.
	LinkMade func(ctx context.Context, link string)
	// SpaceCreated prepares a new space for its first use.
	SpaceCreated func(id space.SpaceID)
	// StopSpace stops everything that runs in a space, after its changes are saved.
	StopSpace func(ctx context.Context, id space.SpaceID) error
	// DiscardPending discards a person's pending files at or under a path, and returns the
	// number of discarded files. An empty path means all.
	DiscardPending func(ctx context.Context, user space.UserID, id space.SpaceID, path string) (int, error)
	// Background starts work that outlives its request and ends with the server.
	Background func(work func(ctx context.Context)) error
	// Health and Usage implement GetHealth and ListUsage. Access holds the configuration's
	// rules of access, without Options.Allow and Options.MembersInvite.
	Health func(ctx context.Context) (Health, error)
	Usage  func(ctx context.Context, people []space.UserID) ([]Usage, error)
	// ClientUsage implements ListClientUsage.
	ClientUsage func(ctx context.Context, days int) ([]usage.Row, error)
	Access      Access
	// DeleteSpace deletes a space and writes the audit entry. If owner is not empty, that
	// person must own the space. done receives the result when the space's files are
	// removed.
	DeleteSpace func(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (done <-chan error, err error)
}

// Attach adds the parts of a running server, and removes what the imports of a killed server
// left. Call it before the first operation.
func (s *Service) Attach(r Running) {
	s.running = r
	s.o.URL = cmp.Or(r.PagesURL, s.o.URL)
	if s.o.Imports.Dir != "" {
		removeLeftImports(s.o.Imports.Dir)
	}
}

// Service performs operations. Its methods are safe for concurrent use.
type Service struct {
	accounts    *store.Store
	git         *gitstore.Store
	sources     *sources.Manager
	syncs       *syncs.Manager
	secrets     *secretscan.Scanner
	remotes     *remotes.Manager
	pending     *pending.Store
	reviews     *reviews.Reviews
	o           Options
	running     Running
	sessions    sessions
	imports     *importRuns
	importSlots chan struct{} // see importSlot
	userImports *perUserQueue
	searches    *perUserQueue
	uploads     *perUserQueue // uploads to sources
	// facts caches parsed facts by blob. A blob never changes, and callers look up only blobs
	// of spaces that they may read.
	facts  *lru.Cache[space.BlobID, facts.Fact]
	log    *slog.Logger
	rights map[string]Right // by operation
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
		accounts: o.Accounts, git: o.Git, sources: o.Sources, syncs: o.Syncs, secrets: o.Secrets, remotes: o.Remotes, pending: o.Pending, reviews: o.Reviews,
		o: o, log: o.Logger, rights: map[string]Right{},
		searches: newPerUserQueue(o.Search.AtOnce, o.Search.Waiting,
			fmt.Sprintf("You have %d searches running and %d waiting, which is the limit for one user. Wait until some of them finish.", o.Search.AtOnce, o.Search.Waiting)),
		uploads: newPerUserQueue(maxUploadsAtOnce, 0,
			fmt.Sprintf("You are already uploading %d files, which is the limit for one person. Wait until one of them is done.", maxUploadsAtOnce)),
		userImports: newPerUserQueue(1, maxImportsWaiting,
			fmt.Sprintf("You have an import running and %d waiting. Wait until one of them is done.", maxImportsWaiting)),
		sessions: sessions{byID: map[space.SpaceID]*session{}},
	}
	s.facts, _ = lru.New[space.BlobID, facts.Fact](maxCachedFacts) // fails only for a size of 0
	s.imports, s.importSlots = s.newImportRuns(), make(chan struct{}, maxImportsAtOnce)
	for _, op := range Operations() {
		s.rights[op.Name] = op.Right
	}
	return s
}

// record writes an audit entry. If that fails, it only logs the error, because the operation has
// already succeeded.
func (s *Service) record(ctx context.Context, a Actor, action, subject string, detail map[string]any) {
	if err := s.accounts.Record(context.WithoutCancel(ctx), a.audit(), action, subject, detail); err != nil {
		s.log.Error("write the audit log", "action", action, "err", err)
	}
}
