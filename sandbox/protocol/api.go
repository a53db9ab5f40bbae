package protocol

import (
	"time"

	"satchel/internal/space"
)

// Boot is the first request. The agent sets the sandbox up before it replies.
type Boot struct {
	Disk      int64 // bytes of the overlay's upper layer
	Inodes    int64 // files of the upper layer
	Tmp       int64 // bytes of each /tmp
	Output    int64 // bytes kept of each stream: half from its beginning, half from its end
	Processes int   // RLIMIT_NPROC of each command user; 0: none
	OpenFiles int   // RLIMIT_NOFILE; 0: none
	FileSize  int64 // RLIMIT_FSIZE in bytes; 0: none
	// RestAfter is how long after the last request the agent returns unused memory; 0: two
	// seconds.
	RestAfter time.Duration
	Env       []string
}

// ExecRequest is one command.
type ExecRequest struct {
	// Command is given to bash -c, in the space's root.
	Command string
	// ReadOnly runs the command as ReadOnlyUID, in a mount namespace where SpaceDir is
	// read-only.
	ReadOnly bool
	// Background makes the command a job at once.
	Background bool
	// DetachAfter makes the command a job if it still runs after this time; zero: never.
	DetachAfter time.Duration
	// WallTime is the time after which the command is ended with its whole process tree; zero:
	// no limit.
	WallTime time.Duration
	// Grace is the time between SIGTERM and SIGKILL when the command is ended.
	Grace time.Duration
	// HeadTail limits the bytes that the result has of each stream's beginning, and of
	// its end.
	HeadTail int
}

// Stream names one of a command's two outputs.
type Stream uint8

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Output is a stream's output as kept for the caller.
type Output struct {
	Head    []byte // the first bytes
	Tail    []byte // the last bytes, without those of Head
	Dropped int64  // bytes between them
	// Saved is the file inside the sandbox with more of the output; empty if nothing was
	// dropped.
	Saved string
}

// End is the way a command ended.
type End uint8

// The ways a command ends.
const (
	Exited   End = iota // ExitCode or Signal says how
	TimedOut            // its WallTime passed
	Canceled            // the caller canceled the command
	Detached            // it continues as job JobID
	Shutdown            // the sandbox is being stopped

	// The agent never reports these two. They mean that the sandbox ended during the command.
	OutOfMemory
	Lost
)

// String returns the name of the end in answers.
func (e End) String() string {
	names := [...]string{"exited", "timed_out", "canceled", "job", "stopped", "out_of_memory", "lost"}
	return names[e]
}

// ExecResult is the result of a command.
type ExecResult struct {
	End      End
	ExitCode int    // as the shell reports it: 128+n for signal n
	Signal   string // such as "SIGKILL"; empty if the command exited
	JobID    string // the id of the job, if End is Detached
	// JobDir has a job's stdout, stderr and status and, while it runs, the pid of its
	// process group: kill -- -$(cat <JobDir>/pid) stops it.
	JobDir   string
	Stdout   Output
	Stderr   Output
	Duration time.Duration
	// Leftover counts the processes that outlived the command and were ended with it.
	Leftover int
}

// JobEnd reports that a job has ended.
type JobEnd struct {
	ID       string
	ExitCode int
	Signal   string
	Duration time.Duration
	TimedOut bool
}

// Job is a listed job.
type Job struct {
	ID       string
	Command  string
	Running  bool
	ReadOnly bool // a read-only caller started the job; such callers must not see other jobs
	ExitCode int
	Started  time.Time
}

// Entry is one path of the upper layer that changed since it was last acknowledged. Path is
// a slash-separated path relative to SpaceDir, in the file system's bytes, which an
// attacker may have chosen.
type Entry struct {
	Path    string
	Deleted bool // the path and everything under it are gone
	// Opaque marks a directory whose lower contents are hidden.
	Opaque  bool
	Dir     bool
	Mode    space.Mode
	Size    int64
	Content []byte // the content of a file, or the target of a symlink
	// Problem says why there is no content (not a regular file, over the limit,
	// unreadable); Content is then empty.
	Problem string
	// Busy marks a path that a running command may be writing. A later collection reports it again.
	Busy bool
}

// Batch is one collection of changes. Client.Ack acknowledges it once it is committed;
// entries that are not acknowledged are reported again.
type Batch struct {
	ID      uint64
	Entries []Entry
	// More is true if the limits of the request cut the batch short.
	More bool
}

// CollectLimits requests a Batch and limits it.
type CollectLimits struct {
	Entries  int
	FileSize int64 // a larger file is reported with a Problem
	Total    int64 // bytes of content in the batch
	// After is the ID of the last acknowledged batch with More. The new batch continues
	// where that batch stopped. Earlier paths that changed meanwhile, or that were not
	// acknowledged, wait for a collection without After.
	After uint64
}

// ApplyEntry writes or deletes one file in the space to match a newer head, or restores a pending
// file.
type ApplyEntry struct {
	Path    string
	Delete  bool
	Mode    space.Mode
	Content []byte
	// Force replaces a path that has unacknowledged changes; otherwise the path stays, and
	// the result is Dirty.
	Force bool
	// Own makes the entry a change by the space's user, which Collect reports like any
	// other. Its path may be invalid in a space.
	Own bool
}

// ApplyResult is the result of an ApplyEntry.
type ApplyResult struct {
	Path    string
	Dirty   bool   // not written: the path has a change, or a command uses it
	Problem string // why the entry could not be applied; empty if it could
}
