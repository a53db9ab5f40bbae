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
	RunLost        RunEnd = "lost"          // the sandbox ended for another reason
	RunStopped     RunEnd = "stopped"       // the sandbox was stopped in order: what the command had changed by then is in Commits
)

// RunOutput is one stream of a command's output: valid UTF-8 without control
// sequences, bounded and cut by the sandbox.
type RunOutput struct {
	// Text is the output; where some of it was cut, with the sandbox's own line
	// in that place that says so.
	Text  string
	Cut   int64  // bytes of the output that Text does not hold; 0 if it is whole
	Saved string // the file in the sandbox that holds more of it; may be empty
}

// RunResult is how a command went.
type RunResult struct {
	End      RunEnd
	ExitCode int    // as the shell says it: 128+n where Signal is n
	Signal   string // "SIGKILL"; empty if it exited
	// Detail is what more there is to say of End. Of RunOutOfMemory and RunLost
	// it is whole sentences: why the sandbox ended and what is lost with it.
	Detail   string
	Stdout   RunOutput
	Stderr   RunOutput
	Duration time.Duration
	// Commits hold, oldest first, every commit that contains paths changed
	// since the command began, also where another command's end made them.
	Commits []space.Commit
	// NotSaved says, in whole sentences, why what the command changed is not in
	// Commits and what becomes of it; empty if all is. Commits may be there
	// all the same: of others, or of what was collected before.
	NotSaved string
	// Uncommitted are paths that a live command still has open for writing:
	// they are committed when it ends.
	Uncommitted []string
	// Held are changes of this command and earlier ones that could not be
	// committed and are kept until they are resolved; what a commit of Commits
	// tells as refused is not told again.
	Held []space.Rejection
	// Conflicts are paths that met a newer version, where no commit of Commits
	// tells of them: a delete that was dropped makes no commit.
	Conflicts []space.Conflict
	// Push says where the commits are beside this server.
	Push PushState
	// Restarted reports that the sandbox is a new one; Notes say what is gone.
	Restarted bool
	JobID     string // of a job
	JobDir    string // where a job's stdout, stderr and status are
	// Limits names those of its sandbox that the command seems to have met, such as
	// "sandbox.disk"; each once. Notes say what each is, and what raises it.
	Limits []string
	// Notes are sentences for the caller: which limit ended the command, what a
	// new sandbox has lost, what becomes of a job, and whatever else the fields
	// above do not tell.
	Notes []string
}

// PushState says how a space stands with its remote.
type PushState struct {
	// State is "local" (no remote), "pushed", "queued" or "failed"; empty if
	// it is not known.
	State string
	// Detail is one sentence: of a failure, why and what to do.
	Detail string
}
