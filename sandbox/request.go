package sandbox

import (
	"time"

	"satchel/internal/space"
	"satchel/sandbox/agent"
)

// Request is one command of one user in one space. Who may do that was decided
// before.
type Request struct {
	User    space.UserID
	Space   space.SpaceID
	Command string // for bash -c
	Comment string // the message of the commits that it leads to
	// ReadOnly runs it where the space cannot be written.
	ReadOnly bool
	// Background makes it a job at once, and Attached keeps it from ever becoming
	// one: it ends, at the latest with its time.
	Background, Attached bool
	// WallTime, of the command, and IdleStop, of the sandbox after it, take the
	// place of the pool's; zero: the pool's.
	WallTime, IdleStop time.Duration
	// Ephemeral sandboxes leave nothing to be remembered by: the next one of the same
	// user and space counts as the first. It is for spaces whose names callers
	// make up, of which there may be any number.
	Ephemeral bool
	Author    space.Person // of the commits
	Tool      string       // for the commits' trailers
	Client    string
	// OnProgress, which may be nil, is told what happens, at most four times a
	// second and at least every five seconds, from one goroutine, and never
	// after Exec has returned. It must not block.
	OnProgress func(Progress)
}

func (r Request) meta() space.Meta {
	return space.Meta{Author: r.Author, Message: r.Comment, Tool: r.Tool, Client: r.Client}
}

// Phase says what a command is waiting for.
type Phase string

// The phases, in order. All but PhaseRunning may be left out.
const (
	PhaseQueued   Phase = "queued"   // other users' sandboxes fill the server
	PhaseStarting Phase = "starting" // the sandbox starts
	PhaseRunning  Phase = "running"
	PhaseSaving   Phase = "saving" // its changes are committed
)

// Progress is a sign of life.
type Progress struct {
	Phase   Phase
	Elapsed time.Duration // since Exec was called
	Bytes   int64         // of output so far
	Line    string        // the newest line of output, cleaned, at most 200 characters
}

// Result is how a command went.
type Result struct {
	Stdout, Stderr Output
	End            agent.End
	ExitCode       int
	Signal         string // "SIGKILL"; empty if it exited
	JobID, JobDir  string // of a job
	Duration       time.Duration
	// Commits hold what changed in the space since the command began, oldest
	// first; with the same author where another command's end made one.
	Commits []space.Commit
	// Refused lists what could not be committed and was not told before. It
	// stays in the sandbox while that lives.
	Refused []space.Rejection
	// Pending lists everything that could not be committed, of this command and of
	// earlier ones, until it is committed, deleted or dropped: also in the answer
	// of a command that changes nothing. Refused is part of it. It stays empty
	// without Options.Pending.
	Pending []space.Rejection
	// Conflicts lists the paths that someone else had changed as well. Both
	// versions are in the space and, by now, in the sandbox.
	Conflicts []space.Conflict
	// NotSaved is why changes could not be committed as a whole, nil if
	// they were. They stay in the sandbox and are tried again at the end of
	// the next command.
	NotSaved error
	// Applied lists the files that others had changed and that were brought
	// into the sandbox before the command ran.
	Applied []space.FileChange
	// Cold is true if the command waited for the sandbox to start.
	Cold bool
	// Restarted is true in the first answer of a sandbox that replaced another
	// of the same user and space; Notes then say what is gone.
	Restarted  bool
	Generation uint64 // counts the sandboxes of this user and space
	// Limits are those that the command met, as far as can be told from what it
	// said and left; Notes say what each is.
	Limits []Limit
	// Notes are sentences for the caller that fit nowhere else.
	Notes []string
}
