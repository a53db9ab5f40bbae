package sandbox

import (
	"time"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// Request is one command of one user in one space. The caller has checked the
// user's rights.
type Request struct {
	User    space.UserID
	Space   space.SpaceID
	Command string // for bash -c
	Comment string // the message of its commits
	// ReadOnly runs the command with a space that it cannot write to.
	ReadOnly bool
	// Background makes the command a job at once. Attached keeps the command from becoming a
	// job: Exec waits until the command ends, at its time limit at the latest.
	Background, Attached bool
	// WallTime of the command and IdleStop of its sandbox replace the pool's; zero
	// means the pool's.
	WallTime, IdleStop time.Duration
	// Ephemeral makes the pool forget the sandbox when it ends. The next sandbox of the
	// same user and space then counts as the first. It is for spaces with names that
	// callers invent, whose records would otherwise pile up.
	Ephemeral bool
	Author    space.Person // the author of the commits
	Tool      string       // for the commits' trailers
	Client    string
	// OnProgress reports what happens, at most four times a second and at least
	// every five seconds, from one goroutine, and never after Exec has returned. It
	// must not block, and may be nil.
	OnProgress func(Progress)
}

func (r Request) meta() space.Meta {
	return space.Meta{Author: r.Author, Message: r.Comment, Tool: r.Tool, Client: r.Client}
}

// Phase is the stage that a command has reached.
type Phase string

// The phases, in order. A command may skip all but PhaseRunning.
const (
	PhaseQueued   Phase = "queued"   // other users' sandboxes fill the server
	PhaseStarting Phase = "starting" // the sandbox starts
	PhaseRunning  Phase = "running"
	PhaseSaving   Phase = "saving" // its changes are committed
)

// Progress is a report on a command that has not ended.
type Progress struct {
	Phase   Phase
	Elapsed time.Duration // since Exec was called
	Bytes   int64         // bytes of output so far
	Line    string        // the newest line of output, cleaned, at most 200 characters
}

// Result is the outcome of a command.
type Result struct {
	Stdout, Stderr Output
	End            protocol.End
	ExitCode       int
	Signal         string // such as "SIGKILL"; empty if the command exited
	JobID, JobDir  string // set if the command continues as a job
	Duration       time.Duration
	// Commits are the commits that this sandbox made since the command began, oldest first. They
	// include commits that were made when another command ended.
	Commits []space.Commit
	// Refused lists files that could not be committed and that no earlier answer named.
	// They stay in the sandbox until it ends.
	Refused []space.Rejection
	// Pending lists all files that could not be committed, of this command and of earlier
	// ones, until they are committed, deleted or dropped. It includes Refused, and is empty
	// without Options.Pending.
	Pending []space.Rejection
	// Conflicts lists the paths that somebody else changed too. Both versions are in the
	// space and in the sandbox.
	Conflicts []space.Conflict
	// NotSaved says why some changes could not be committed; it is nil if all were committed. While
	// the sandbox runs, the uncommitted changes stay in it, and the next command commits them at
	// its end if possible.
	NotSaved error
	// Applied lists the files that others had changed and that the pool updated in
	// the sandbox before the command ran.
	Applied []space.FileChange
	// Cold is true if the command waited for the sandbox to start.
	Cold bool
	// Restarted is true in the first answer of a sandbox that replaced another
	// of the same user and space; Notes then say what is gone.
	Restarted  bool
	Generation uint64 // counts the sandboxes of this user and space
	// Limits are the limits that the command reached, as far as its output and its files show.
	// Notes explain each limit.
	Limits []Limit
	// Notes are other sentences for the caller.
	Notes []string
}
