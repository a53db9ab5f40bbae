package remotes

import (
	"context"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// SetRequest is the input of Set.
type SetRequest struct {
	Space space.SpaceID
	// URL is https://…, or what Trusted allows. White space around it is dropped.
	URL string
	// Branch is empty for the remote's default.
	Branch string
	// Kind may be empty: then it is SSH for an ssh URL, Token if there is a Secret or the
	// space has one for the same URL, and otherwise None.
	Kind space.RemoteKind
	// Username may be empty: most servers only check the secret.
	Username string
	// Secret is sealed before it is stored. If it is empty, and the kind is Token and the URL
	// is the same as before, the stored secret stays.
	Secret string
	// Trusted is only set by the operator's commands, never by a request from outside.
	Trusted bool
	// Replace replaces the content of the space with the remote's branch instead of merging
	// the two, because a person asked for it, for example after rewriting the remote's
	// history. The former head is kept (gitstore.ResetToRemote). Replace applies to the
	// first sync that succeeds, and has no effect if the remote has no such branch. If the
	// process ends before this sync, the next process merges both sides.
	Replace bool
}

// Stats are totals over all remotes, for metrics.
type Stats struct {
	Remotes int
	Queued  int // number of syncs that wait for their turn
	Running int
	Failed  map[Problem]int
	// OldestUnpushed is the longest time for which a space has had unpushed commits; zero
	// if there is none.
	OldestUnpushed time.Duration
}

// Git is the part of *gitstore.Store that a Manager needs.
type Git interface {
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	Fetch(ctx context.Context, id space.SpaceID, e transport.Endpoint, branch string, progress func(string)) (gitstore.Fetched, error)
	ResetToRemote(ctx context.Context, id space.SpaceID, tip space.CommitID, m space.Meta) (space.Commit, error)
	Integrate(ctx context.Context, id space.SpaceID, tip space.CommitID, m space.Meta) (gitstore.Integration, error)
	Push(ctx context.Context, id space.SpaceID, e transport.Endpoint, branch string, progress func(string)) (space.CommitID, error)
	Tracked(ctx context.Context, id space.SpaceID, branch string) (space.CommitID, bool, error)
	Unpushed(ctx context.Context, id space.SpaceID, branch string, limit int) (n int, newest []space.Commit, err error)
	Contains(ctx context.Context, id space.SpaceID, tip, commit space.CommitID) (bool, error)
	ForgetRemote(ctx context.Context, id space.SpaceID) error
}

// Transport checks URLs and lists the refs of remotes; see *transport.Client.
type Transport interface {
	Check(e transport.Endpoint) error
	List(ctx context.Context, e transport.Endpoint) (transport.Refs, error)
}
