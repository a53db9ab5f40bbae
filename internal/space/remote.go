package space

import "time"

// RemoteKind is the kind of credential that a remote needs.
type RemoteKind string

// The kinds of credentials.
const (
	KindNone   RemoteKind = "none"   // no credential, such as for a directory of this machine
	KindToken  RemoteKind = "token"  // a user name and a secret that a person gave
	KindGitHub RemoteKind = "github" // an installation token of the GitHub App
	KindSSH    RemoteKind = "ssh"    // the operator's key
)

// Remote is the repository that a space is synced with. The JSON of this type and of the
// types below is part of the command line's contract.
type Remote struct {
	Space SpaceID `json:"space"`
	URL   string  `json:"url"` // without a credential in it
	// Branch is the remote's branch. It is empty until the first sync has found the default
	// branch.
	Branch string `json:"branch"`
	// Chosen reports that a person named the branch. The space then keeps the branch when
	// the remote renames its default branch.
	Chosen bool `json:"chosen,omitempty"`
	// Trusted reports that the operator vouches for the URL.
	Trusted  bool       `json:"trusted,omitempty"`
	Kind     RemoteKind `json:"kind"`
	Username string     `json:"username,omitempty"`
	Created  time.Time  `json:"created"`
	Changed  time.Time  `json:"changed"`
}

// RemoteState says in one word whether a space and its remote are in sync.
type RemoteState string

// The states of a remote.
const (
	RemoteLocal   RemoteState = "local"   // the space has no remote
	RemotePushed  RemoteState = "pushed"  // the remote had the head when it was last asked
	RemoteQueued  RemoteState = "queued"  // a commit waits to be pushed
	RemoteSyncing RemoteState = "syncing" // a transfer runs
	RemoteFailed  RemoteState = "failed"  // the last sync failed
)

// RemoteProblem is a stable word for why a sync failed. The packages gitstore/transport and
// gitstore/remotes define the values.
type RemoteProblem string

// RemoteStatus describes a space, its remote and their last sync.
type RemoteStatus struct {
	Remote *Remote     `json:"remote,omitempty"` // nil if the space has none
	State  RemoteState `json:"state"`
	// Problem is empty unless the last sync failed. Detail says what happened, and Remedy
	// what to do, each in a sentence or two for people.
	Problem RemoteProblem `json:"problem,omitempty"`
	Detail  string        `json:"detail,omitempty"`
	Remedy  string        `json:"remedy,omitempty"`
	// Do is the part of Remedy that says what to do, without what happens meanwhile. DoBelow is
	// Do for a page that has the form of the remote below this text.
	Do      string `json:"-"`
	DoBelow string `json:"-"`
	// Unpushed counts the commits that the remote is not known to have.
	Unpushed int `json:"unpushed"`
	// Head is the space's newest commit. Pushed is the last known commit of the
	// remote's branch.
	Head   CommitID `json:"head"`
	Pushed CommitID `json:"pushed,omitempty"`
	// LastCheck is the time of the remote's last answer. LastSync is when the space and the
	// remote were last found to be the same. NextTry is when a failed sync is tried again.
	LastCheck time.Time `json:"last_check,omitzero"`
	LastSync  time.Time `json:"last_sync,omitzero"`
	NextTry   time.Time `json:"next_try,omitzero"`
	// Attempts counts the failed syncs after the last successful one.
	Attempts int `json:"attempts,omitempty"`
	// Locations are the commits and files that the remote refused.
	Locations []RemoteLocation `json:"locations,omitempty"`
	// Notes are the latest notices about merges and the remote, newest first. Notices about
	// a former remote stay.
	Notes []RemoteNote `json:"notes,omitempty"`
}

// RemoteLocation is a place that a remote complained about, in the remote's words.
type RemoteLocation struct {
	Commit CommitID `json:"commit,omitempty"`
	Path   string   `json:"path,omitempty"`
	Line   int      `json:"line,omitempty"`
	Rule   string   `json:"rule,omitempty"` // such as "GitHub Personal Access Token"
}

// RemoteNote is a notice about a merge or about the remote.
type RemoteNote struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // a few sentences for people
}
