package tools

import (
	"context"
	"time"

	"satchel/internal/space"
)

// Runner runs commands over a space in a sandbox, and commits what they
// changed. The sandbox's pool satisfies it through an adapter.
type Runner interface {
	// Run returns when the command has ended or has become a job, and what it
	// changed is committed. A command that failed is no error: errors are
	// fault.Unavailable, Limited, Canceled and the like, where it did not run
	// or nothing is known of it. When ctx ends, the command is ended.
	Run(ctx context.Context, r RunRequest, p Progress) (RunResult, error)
}

// RunRequest is one command.
type RunRequest struct {
	User       space.UserID
	Space      space.SpaceID
	Author     space.Person
	Client     string // for the commit's trailer
	Tool       string // "bash", for the commit's trailer
	Command    string // given to bash -c
	Comment    string // becomes the commit's message; empty: a summary is made
	ReadOnly   bool   // the space cannot be changed
	Background bool   // becomes a job at once
}

// RunEnd says how a command ended.
type RunEnd string

// The ways a command ends.
const (
	RunExited      RunEnd = "exited"        // by itself; ExitCode or Signal says how
	RunJob         RunEnd = "job"           // it runs on as Job
	RunTimedOut    RunEnd = "timed_out"     // the time limit ended it
	RunCanceled    RunEnd = "canceled"      // the caller ended it
	RunOutOfMemory RunEnd = "out_of_memory" // the memory limit ended the sandbox
	RunLost        RunEnd = "lost"          // the sandbox ended for another reason; Detail says why
)

// RunOutput is one stream of a command's output: valid UTF-8 without control
// sequences, bounded by the sandbox.
type RunOutput struct {
	Head    string
	Tail    string // what follows the cut; empty where nothing was cut
	Dropped int64  // bytes between Head and Tail
	Saved   string // the file in the sandbox that holds more of it
}

// RunResult is how a command went.
type RunResult struct {
	End      RunEnd
	ExitCode int    // as the shell says it: 128+n where Signal is n
	Signal   string // "SIGKILL"; empty where it exited
	Detail   string // one sentence about End, where there is more to say
	Stdout   RunOutput
	Stderr   RunOutput
	Duration time.Duration
	Leftover int // processes that outlived the command and were ended with it
	// Commits hold, oldest first, every commit that contains paths changed
	// since the command began, also where another command's end made them.
	Commits []space.Commit
	// Uncommitted are paths that a live command still has open for writing:
	// they are committed when it ends.
	Uncommitted []string
	// Held are changes of earlier commands that could not be committed and are
	// kept until they are resolved; this command's are in Commits.
	Held []space.Refusal
	// Push says where the commits are beside this server.
	Push PushState
	// Restarted tells that the sandbox is a new one: background processes and
	// /tmp of the last one are gone.
	Restarted bool
	JobID     string // of a job
	JobDir    string // where a job's stdout, stderr and status are
	// Notes are further sentences for the caller.
	Notes []string
}

// PushState says how a space stands with its remote.
type PushState struct {
	// State is "local" (no remote), "pushed", "queued" or "failed"; empty where
	// it is not known.
	State string
	// Detail is one sentence: of a failure, why and what to do.
	Detail string
}
