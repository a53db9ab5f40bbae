package remotes

import (
	"context"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// Kind says how a remote is proven to be the space's.
type Kind string

// The kinds.
const (
	None   Kind = "none"   // no credential: a public repository, or a directory of the operator's
	Token  Kind = "token"  // a user name and a secret that a person gave
	GitHub Kind = "github" // a GitHub App's installation token, from Options.Credentials
	SSH    Kind = "ssh"    // the operator's key, by Options.SSH
)

// Remote is where a space is kept in step with.
type Remote struct {
	Space space.SpaceID `json:"space"`
	URL   string        `json:"url"` // without a credential in it
	// Branch is the remote's branch; empty until the first sync found out which
	// is its default.
	Branch string `json:"branch"`
	// Chosen reports that a person named the branch: a default branch that is
	// renamed is then not followed.
	Chosen bool `json:"chosen,omitempty"`
	// Trusted reports that the operator vouches for the URL; see
	// transport.Endpoint.
	Trusted  bool      `json:"trusted,omitempty"`
	Kind     Kind      `json:"kind"`
	Username string    `json:"username,omitempty"`
	Created  time.Time `json:"created"`
	Changed  time.Time `json:"changed"`
}

// SetRequest is what Set takes.
type SetRequest struct {
	Space space.SpaceID
	// URL is https://…, or what Trusted allows. White space around it is dropped.
	URL string
	// Branch is empty for the remote's default.
	Branch string
	// Kind may be empty: SSH for such a URL, Token where there is a Secret or the
	// space has one for the same URL, else None.
	Kind Kind
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

// State is how a space and its remote stand, in one word.
type State string

// The states.
const (
	Local   State = "local"   // the space has no remote
	Pushed  State = "pushed"  // the remote has the head, as far as was last seen
	Queued  State = "queued"  // something waits to be pushed
	Syncing State = "syncing" // a transfer runs
	Failed  State = "failed"  // the last sync failed; Problem says why, NextTry when it is tried again
)

// Status is how a space and its remote stand.
type Status struct {
	Remote *Remote `json:"remote,omitempty"` // nil: the space has none
	State  State   `json:"state"`
	// Problem is empty unless the last sync failed. Detail says what happened
	// and Remedy what to do, each a sentence or two for people.
	Problem Problem `json:"problem,omitempty"`
	Detail  string  `json:"detail,omitempty"`
	Remedy  string  `json:"remedy,omitempty"`
	// Unpushed counts the commits that the remote is not known to have.
	Unpushed int `json:"unpushed"`
	// Head is the space's newest commit, and Pushed the commit that the remote's
	// branch was last seen at.
	Head   space.CommitID `json:"head"`
	Pushed space.CommitID `json:"pushed,omitempty"`
	// LastCheck is when the remote last answered, LastSync when both were last
	// seen to be the same, NextTry when a failed sync is tried again.
	LastCheck time.Time `json:"last_check,omitzero"`
	LastSync  time.Time `json:"last_sync,omitzero"`
	NextTry   time.Time `json:"next_try,omitzero"`
	// Attempts counts the syncs that failed since the last that did not.
	Attempts int `json:"attempts,omitempty"`
	// Locations are the commits and files that the remote refused.
	Locations []transport.Location `json:"locations,omitempty"`
	// Notes are the last few things that merges and the remote did lately,
	// newest first; also of a remote that the space has no more.
	Notes []Note `json:"notes,omitempty"`
}

// Note is a notice, with its time.
type Note struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // a few sentences for people
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
