package space

import (
	"context"
	"io"
	"time"
)

// Committer turns change sets into commits. gitstore implements it; every
// writer takes it.
type Committer interface {
	// Commit applies cs on head and returns once the commit is durable (fsync). Commits of
	// one space are serialised. Entries that cannot be committed are in Commit.Rejected and
	// the rest is committed; a stale base follows cs.Policy. If the change takes the space
	// over its limits, KeepBoth refuses the largest entries, in Commit.Rejected, until the
	// rest fits; RefuseStale returns a fault.TooLarge. It returns fault.NotFound for an
	// unknown space, fault.Conflict for a stale base under RefuseStale, fault.TooLarge if
	// the change is over its limit; then nothing was changed.
	Commit(ctx context.Context, id SpaceID, cs ChangeSet, m Meta) (Commit, error)
}

// Checkouts makes a space ready for a sandbox to start from.
type Checkouts interface {
	// Checkout returns host directories that hold the space at its head. They stay
	// as they are until Release is called, but for GitView, which the host
	// keeps at head.
	Checkout(ctx context.Context, id SpaceID) (*Checkout, error)
	// Blob returns the blob and the mode of a path at a commit; ok is false if the file
	// does not exist.
	Blob(ctx context.Context, id SpaceID, at CommitID, p Path) (b BlobID, m Mode, ok bool, err error)
	// Files lists the files at or under a path at a commit, sorted by path. "" lists all
	// files. A path that does not exist has none. If directories cannot be read, it returns
	// all other files and a fault.Damaged.
	Files(ctx context.Context, id SpaceID, at CommitID, under Path) ([]Entry, error)
	// Head returns the newest commit.
	Head(ctx context.Context, id SpaceID) (CommitID, error)
	// Diff lists the files that differ between two commits, sorted by path.
	Diff(ctx context.Context, id SpaceID, from, to CommitID) ([]FileChange, error)
	// ReadBlob returns a blob's content.
	ReadBlob(ctx context.Context, id SpaceID, b BlobID) ([]byte, error)
}

// Checkout is what a sandbox starts from.
type Checkout struct {
	Head CommitID
	// Dir holds the files at Head (directories 0777, files 0666 or 0777,
	// under a parent of mode 0700). It is never written while in use.
	Dir string
	// GitView is a read-only git directory for the sandbox's /space/.git: HEAD,
	// refs, objects, an index; no credentials. The host moves it to each new
	// head.
	GitView string
	// Library is the host directory that becomes /library; may be empty.
	Library string
	// Damaged lists files and whole directories that Head has and Dir lacks, because they
	// are damaged on the server's disk. Their absence is not a deletion.
	Damaged []Path
	// Release reports that the sandbox is gone. It must be called once.
	Release func()
}

// SandboxID names one start of one sandbox. It is always 64 hexadecimal
// digits, because gVisor matches container ids by prefix.
type SandboxID string

// Limits bound one sandbox. Zero means no limit, which only tests use.
type Limits struct {
	Memory    int64         // bytes, for all processes and file systems of the sandbox
	Processes int           // for all commands together
	CPUs      float64       // share of processors
	Disk      int64         // bytes of changes held in the sandbox
	Inodes    int64         // files of changes held in the sandbox
	Tmp       int64         // bytes of /tmp
	OpenFiles int           // per process
	FileSize  int64         // bytes of one file
	WallTime  time.Duration // of one command
}

// SandboxSpec is what a Runtime starts.
type SandboxSpec struct {
	ID       SandboxID
	Checkout *Checkout
	Limits   Limits
}

// Runtime starts isolated places to run commands in. What it starts runs the
// agent as process 1, to which Sandbox.Conn speaks; the Runtime itself knows
// nothing of commands.
type Runtime interface {
	// Name is what configuration calls it, such as "gvisor".
	Name() string
	// Check says why no sandbox can start here, as a fault.Unavailable with
	// what to do about it; nil means that one can.
	Check(ctx context.Context) error
	// Start boots a sandbox. When ctx ends before it returns, nothing is left. The error's
	// tree has ErrKilled if the start was ended from outside, as far as the Runtime knows,
	// and a fault.Unavailable if no sandbox works here.
	Start(ctx context.Context, spec SandboxSpec) (Sandbox, error)
	// Reap destroys what no sandbox of this Runtime owns (processes, mounts,
	// cgroups, directories) and returns how many sandboxes left it. Before the
	// first Start those are an earlier process's. Later it never touches one
	// that runs, starts or is being stopped.
	Reap(ctx context.Context) (int, error)
	// Close stops every sandbox and returns when all are gone.
	Close() error
}

// Sandbox is one running sandbox.
type Sandbox interface {
	// Conn carries the agent's protocol. What it reads is an attacker's data.
	Conn() io.ReadWriteCloser
	// Done is closed when the sandbox has ended, whoever ended it.
	Done() <-chan struct{}
	// Err says, after Done, why it ended: nil if Stop was called,
	// ErrOutOfMemory where its memory limit killed it. ErrKilled is in its tree
	// where something outside is seen to have done so.
	Err() error
	// Stats reports what it uses now.
	Stats(ctx context.Context) (SandboxStats, error)
	// Stop kills everything inside and returns when it is gone. It may be
	// called more than once.
	Stop(ctx context.Context) error
}

// SandboxStats is what a sandbox uses.
type SandboxStats struct {
	Memory    int64 // bytes (proportional set size of all its processes)
	Processes int
}

// Credential authorises git to reach one repository. Its Secret never reaches
// argv, URLs, configuration, logs, errors or a sandbox.
type Credential struct {
	Username string
	Secret   string
	Expires  time.Time // zero: unknown
}

// Repository names the remote of a space for which a credential is asked.
type Repository struct {
	Space SpaceID
	URL   string // without a credential in it
}

// Credentials finds the credential for a repository: a token that was stored
// for it, or a GitHub App's installation token. It is asked before every
// transfer, so it caches what is dear to make and gives nothing that expires
// within the next minutes.
type Credentials interface {
	// Credential returns the zero Credential where the repository needs none,
	// and fault.Unavailable if access was withdrawn.
	Credential(ctx context.Context, r Repository) (Credential, error)
}

// Event reports that a space has a new head.
type Event struct {
	Space  SpaceID
	Commit Commit
}

// Events spreads commits to whoever follows: the index, the push queue, live
// sandboxes, the web event stream.
type Events interface {
	// Publish never blocks on a slow subscriber.
	Publish(Event)
}
