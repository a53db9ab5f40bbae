package remotes

import (
	"context"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// SetRequest is what Set takes.
type SetRequest struct {
	Space space.SpaceID
	// URL is https://…, or what Trusted allows. White space around it is dropped.
	URL string
	// Branch is empty for the remote's default.
	Branch string
	// Kind may be empty: SSH for such a URL, Token where there is a Secret or the
	// space has one for the same URL, else None.
	Kind space.RemoteKind
	// Username may be empty: most servers look at the secret alone.
	Username string
	// Secret is sealed before it is stored. Empty, with the kind Token and the
	// URL that the space has, keeps the one that is stored.
	Secret string
	// Trusted is set by the operator's commands alone, never by a request from
	// outside.
	Trusted bool
	// Replace makes the space what the remote's branch is instead of merging the
	// two, by a person's explicit wish: after they rewrote the remote's history on
	// purpose, say. The head that is left is kept aside (gitstore.ResetToRemote). It
	// counts for the first sync that gets so far, and does nothing where the
	// remote has no such branch; should the process end before, both are merged.
	Replace bool
}

// Stats is what all remotes come to, for metrics.
type Stats struct {
	Remotes int
	Queued  int // wait for their turn
	Running int
	Failed  map[Problem]int
	// OldestUnpushed is for how long the space that has waited longest has had
	// commits that its remote lacks; zero if there is none.
	OldestUnpushed time.Duration
}

// Git is what a Manager needs of the store of spaces; see *gitstore.Store.
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

// Transport judges URLs and asks remotes what they have; see *transport.Client.
type Transport interface {
	Check(e transport.Endpoint) error
	List(ctx context.Context, e transport.Endpoint) (transport.Refs, error)
}
