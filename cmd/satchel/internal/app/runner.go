package app

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/agent"
	"satchel/tools"
)

// runner lets the tools run commands in the pool.
type runner struct {
	pool   *sandbox.Pool
	memory int64 // bytes of one sandbox, for people
}

var _ tools.Runner = runner{}

// Run runs one command.
func (r runner) Run(ctx context.Context, q tools.RunRequest, p tools.Progress) (tools.RunResult, error) {
	began := time.Now()
	var shown int
	res, err := r.pool.Exec(ctx, sandbox.Request{
		User: q.User, Space: q.Space, Command: q.Command, Comment: q.Comment,
		ReadOnly: q.ReadOnly, Background: q.Background,
		Author: q.Author, Tool: q.Tool, Client: q.Client,
		OnProgress: func(now sandbox.Progress) {
			shown++
			p(float64(shown), 0, progressText(now))
		},
	})
	if end := deathOf(err); end != "" {
		// The command began, so it is a result: what is known of it, and what is
		// lost, is in the error's words.
		return tools.RunResult{End: end, Detail: fault.PublicOf(err), Duration: time.Since(began)}, nil
	}
	if err != nil {
		return tools.RunResult{}, err
	}
	out := tools.RunResult{
		End: ends[res.End], ExitCode: res.ExitCode, Signal: res.Signal,
		Stdout: output(res.Stdout), Stderr: output(res.Stderr),
		Duration: res.Duration, Commits: res.Commits, Conflicts: res.Conflicts, Held: res.Refused,
		Push:      tools.PushState{State: "local"},
		Restarted: res.Restarted, JobID: res.JobID, JobDir: res.JobDir, Notes: res.Notes,
	}
	if res.NotSaved != nil {
		out.NotSaved = notSavedNote(res.NotSaved)
	}
	if res.End == agent.Exited && res.ExitCode == killedExit {
		// The kernel kills a process where its sandbox is out of memory, and
		// tells nobody why.
		out.Notes = append(out.Notes, fmt.Sprintf("Exit code 137 means killed. Where the command did not do so itself, "+
			"it most likely met the sandbox's memory limit of %s.", config.FormatSize(r.memory)))
	}
	if noFork.MatchString(res.Stderr.Text) {
		out.Notes = append(out.Notes, r.processNote(ctx, q, res.JobID))
	}
	if n := len(res.Applied); n > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d files that changed elsewhere were brought in before the command ran.", n))
	}
	return out, nil
}

// noFork is what bash says, with and without another try, where the kernel lets
// it start nothing more (RLIMIT_NPROC, which counts all processes of the
// sandbox's user).
var noFork = regexp.MustCompile(`fork: (retry: )?Resource temporarily unavailable`)

// processNote names what holds a sandbox's processes, beside the command that
// asks, since a command that can start nothing cannot look itself.
func (r runner) processNote(ctx context.Context, q tools.RunRequest, self string) string {
	note := "All processes that the sandbox may have are in use."
	jobs, err := r.pool.Jobs(ctx, q.User, q.Space)
	if err != nil {
		return note
	}
	for _, j := range jobs {
		if j.Running && j.ID != self {
			note += fmt.Sprintf(" Job %s is running; stop it with: kill -- -$(cat /run/satchel/jobs/%s/pid)", j.ID, j.ID)
		}
	}
	return note
}

// notSavedNote tells a command's caller that what it changed was not committed.
// What the sandbox says itself, it says with what becomes of the changes: those
// of one that ended are lost. What refused a commit knows nothing of sandboxes.
func notSavedNote(err error) string {
	note := "What changed could not be committed: " + fault.PublicOf(err)
	if fault.CodeOf(err) == fault.Unavailable {
		return note
	}
	return note + " It stays in the sandbox and is tried again after the next command."
}

// killedExit is the shell's exit code for a command that SIGKILL ended.
const killedExit = 128 + 9

// deathOf tells how a sandbox ended under its command; empty where err says
// something else.
func deathOf(err error) tools.RunEnd {
	switch {
	case errors.Is(err, space.ErrOutOfMemory):
		return tools.RunOutOfMemory
	case errors.Is(err, space.ErrSandboxEnded):
		return tools.RunLost
	}
	return ""
}

func output(o sandbox.Output) tools.RunOutput {
	return tools.RunOutput{Text: o.Text, Cut: o.Cut, Saved: o.Saved}
}

// ends maps how the agent says a command ended to how the tools say it.
var ends = map[agent.End]tools.RunEnd{
	agent.Exited:   tools.RunExited,
	agent.TimedOut: tools.RunTimedOut,
	agent.Canceled: tools.RunCanceled,
	agent.Detached: tools.RunJob,
	agent.Shutdown: tools.RunLost,
}

func progressText(p sandbox.Progress) string {
	switch p.Phase {
	case sandbox.PhaseQueued:
		return "Waiting for room: other sandboxes fill this server."
	case sandbox.PhaseStarting:
		return "Starting the sandbox."
	case sandbox.PhaseSaving:
		return "Committing what changed."
	}
	if p.Line != "" {
		return p.Line
	}
	return fmt.Sprintf("Running for %s.", p.Elapsed.Round(time.Second))
}
