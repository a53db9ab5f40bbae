package space

import (
	"context"
	"io"
	"time"
)

// Committer turns change sets into commits. gitstore implements it.
type Committer interface {
	// Commit applies cs to head and returns when the commit is durable (fsync). The commits
	// of a space run one at a time. Commit.Rejected lists the entries that cannot be
	// committed; the other entries are committed. If the base of an entry is stale, cs.Policy
	// says what happens. If the change takes the space over its limits, KeepBoth rejects the
	// largest entries until the rest fits, and RefuseStale returns a fault.TooLarge. The error is a
	// fault.NotFound for an unknown space, a fault.Conflict for a stale base under
	// RefuseStale, and a fault.TooLarge also for a change with more entries or bytes than one
	// change may have. After these errors nothing has changed.
	Commit(ctx context.Context, id SpaceID, cs ChangeSet, m Meta) (Commit, error)
}

// Checkouts prepares the files of a space for a sandbox.
type Checkouts interface {
	// Checkout returns host directories with the space at its head. They do not change
	// until Release is called, except GitView, which the host keeps at head.
	Checkout(ctx context.Context, id SpaceID) (*Checkout, error)
	// Blob returns the blob and the mode of a path at a commit; ok is false if the file
	// does not exist.
	Blob(ctx context.Context, id SpaceID, at CommitID, p Path) (b BlobID, m Mode, ok bool, err error)
	// Files lists the files at or under a path at a commit, sorted by path. The path ""
	// lists all files. A missing path has no files. If directories cannot be read, Files
	// returns all other files and a fault.Damaged.
	Files(ctx context.Context, id SpaceID, at CommitID, under Path) ([]Entry, error)
	// Head returns the newest commit.
	Head(ctx context.Context, id SpaceID) (CommitID, error)
	// Diff lists the files that differ between two commits, sorted by path.
	Diff(ctx context.Context, id SpaceID, from, to CommitID) ([]FileChange, error)
	// ReadBlob returns a blob's content.
	ReadBlob(ctx context.Context, id SpaceID, b BlobID) ([]byte, error)
}

// Checkout is the files that a sandbox starts from.
type Checkout struct {
	Head CommitID
	// Dir holds the files at Head (directories 0777, files 0666 or 0777, under a parent of
	// mode 0700). Nobody writes to it while it is in use.
	Dir string
	// GitView is a read-only git directory for the sandbox's /space/.git. It holds HEAD,
	// refs, objects and an index, but no credentials. The host updates it to each new head.
	GitView string
	// Library is the host directory that becomes /library. It may be empty.
	Library string
	// Damaged lists files and whole directories of Head that are missing from Dir because
	// they are damaged on the server's disk. Their absence is not a deletion.
	Damaged []Path
	// Release reports that the sandbox is gone. It must be called once.
	Release func()
}

// SandboxID identifies one start of a sandbox. It always has 64 hexadecimal digits, because
// gVisor matches container ids by prefix.
type SandboxID string

// Limits limit one sandbox. Zero means no limit, which only tests use.
type Limits struct {
	Memory    int64         // bytes, for all processes and file systems of the sandbox
	Processes int           // for all commands together
	CPUs      float64       // number of processors for all processes together, such as 1.5
	Disk      int64         // bytes of changes held in the sandbox
	Inodes    int64         // number of changed files held in the sandbox
	Tmp       int64         // bytes of /tmp
	OpenFiles int           // per process
	FileSize  int64         // bytes of one file
	WallTime  time.Duration // maximum time of one command
}

// SandboxSpec describes a sandbox to start.
type SandboxSpec struct {
	ID       SandboxID
	Checkout *Checkout
	Limits   Limits
}

// Runtime starts sandboxes. Each sandbox runs the agent as process 1, and Sandbox.Conn
// connects to the agent. The Runtime itself runs no commands.
type Runtime interface {
	// Name returns the name in the configuration, such as "gvisor".
	Name() string
	// Check returns nil if a sandbox can start here. Otherwise it returns a
	// fault.Unavailable with the reason and the remedy.
	Check(ctx context.Context) error
	// Start boots a sandbox. If ctx ends before Start returns, nothing of the sandbox is
	// left. The error's tree contains ErrKilled if something outside is known to have ended
	// the start, and a fault.Unavailable if no sandbox works here.
	Start(ctx context.Context, spec SandboxSpec) (Sandbox, error)
	// Reap removes the processes, mounts, cgroups and directories that belong to no sandbox
	// of this Runtime. It returns how many sandboxes left them. Before the first Start,
	// these are the sandboxes of an earlier process. Reap never touches a sandbox that
	// runs, starts or is being stopped.
	Reap(ctx context.Context) (int, error)
	// Close stops every sandbox and returns when all have ended.
	Close() error
}

// Sandbox is one running sandbox.
type Sandbox interface {
	// Conn carries the agent's protocol. The data that it reads is untrusted.
	Conn() io.ReadWriteCloser
	// Done is closed when the sandbox has ended for any reason.
	Done() <-chan struct{}
	// Err returns, after Done, why the sandbox ended: nil if Stop was called, or
	// ErrOutOfMemory if the sandbox reached its memory limit. The error's tree contains
	// ErrKilled if something outside is known to have killed the sandbox.
	Err() error
	// Stats reports what the sandbox uses now.
	Stats(ctx context.Context) (SandboxStats, error)
	// Stop kills everything inside and returns when the sandbox has ended. It may be called
	// more than once.
	Stop(ctx context.Context) error
}

// SandboxStats is what a sandbox uses.
type SandboxStats struct {
	Memory    int64 // bytes (proportional set size of all its processes)
	Processes int
}

// Credential lets git reach one repository. Its Secret never appears in argv, URLs,
// configuration, logs, errors or a sandbox.
type Credential struct {
	Username string
	Secret   string
	Expires  time.Time // zero: unknown
}

// Repository names the remote of a space when its credential is requested from Credentials.
type Repository struct {
	Space SpaceID
	URL   string // without a credential in it
}

// Credentials finds the credential for a repository: a stored token, or an installation
// token of the GitHub App. It is called before every transfer, so it caches tokens that are
// slow to get. It returns no token that expires within the next minutes.
type Credentials interface {
	// Credential returns the zero Credential if the repository needs none, and a
	// fault.Unavailable if access was withdrawn.
	Credential(ctx context.Context, r Repository) (Credential, error)
}

// Event reports that a space has a new head.
type Event struct {
	Space  SpaceID
	Commit Commit
}

// Events sends new commits to all followers: the index, the push queue, live sandboxes, the
// web event stream and listening clients.
type Events interface {
	// Publish never blocks on a slow subscriber.
	Publish(Event)
}
