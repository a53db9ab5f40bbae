package server

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"satchel/gitstore/remotes"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/agent"
	"satchel/tools"
)

// runner lets the tools run commands in the pool.
type runner struct {
	pool    *sandbox.Pool
	remotes *remotes.Manager
	memory  int64 // bytes of one sandbox, for people
}

var _ tools.Runner = runner{}

// Run runs one command.
func (r runner) Run(ctx context.Context, q tools.RunRequest, p tools.Progress) (tools.RunResult, error) {
	began := time.Now()
	var shown int
	r.remotes.Used(q.Space)
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
		return tools.RunResult{
			End: end, Detail: fault.PublicOf(err), Duration: time.Since(began), Push: pushState(r.remotes, q.Space),
			Limits: limitsOfDeath(end),
		}, nil
	}
	if err != nil {
		return tools.RunResult{}, err
	}
	out := tools.RunResult{
		End: ends[res.End], ExitCode: res.ExitCode, Signal: res.Signal,
		Stdout: output(res.Stdout), Stderr: output(res.Stderr),
		Duration: res.Duration, Commits: res.Commits, Conflicts: res.Conflicts, Held: res.Held,
		Push:      pushState(r.remotes, q.Space),
		Restarted: res.Restarted, JobID: res.JobID, JobDir: res.JobDir, Notes: res.Notes,
		Limits: limitNames(res.Limits),
	}
	out.Notes = append(out.Notes, r.remotes.Notices(q.Space, q.User)...)
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
		out.Notes = append(out.Notes, appliedNote(n))
	}
	nameUser(&out, q.Author)
	return out, nil
}

func appliedNote(n int) string {
	if n == 1 {
		return "1 file that changed elsewhere was brought in before the command ran."
	}
	return fmt.Sprintf("%d files that changed elsewhere were brought in before the command ran.", n)
}

// nameUser puts the user's name into the commands that a refusal tells a person
// to run, where the commits' author shows it: who has told no address of their
// own gets NAME@satchel.invalid.
func nameUser(out *tools.RunResult, author space.Person) {
	name, ok := strings.CutSuffix(author.Email, "@satchel.invalid")
	if !ok || !userName.MatchString(name) {
		return
	}
	fill := func(s string) string { return strings.ReplaceAll(s, " --user NAME ", " --user "+name+" ") }
	fillAll := func(list []space.Rejection) []space.Rejection {
		list = slices.Clone(list) // the sandbox's, or the commit's
		for i := range list {
			list[i].Why = fill(list[i].Why)
		}
		return list
	}
	out.Held = fillAll(out.Held)
	for i := range out.Commits {
		c := &out.Commits[i]
		c.Rejected, c.Warnings = fillAll(c.Rejected), slices.Clone(c.Warnings)
		for j := range c.Warnings {
			c.Warnings[j].Why = fill(c.Warnings[j].Why)
		}
	}
	for i := range out.Notes {
		out.Notes[i] = fill(out.Notes[i])
	}
}

// userName is what a shell takes as it is.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// noFork is what bash says, with and without another try, where the kernel lets
// it start nothing more (RLIMIT_NPROC, which counts all processes of the
// sandbox's user).
var noFork = regexp.MustCompile(`fork: (retry: )?Resource temporarily unavailable`)

// processNote names what holds a sandbox's processes, beside the command that
// asks, since a command that can start nothing cannot look itself.
func (r runner) processNote(ctx context.Context, q tools.RunRequest, self string) string {
	note := "All processes that the sandbox may have are in use."
	jobs, err := r.pool.Jobs(ctx, sandbox.JobOwner{User: q.User, Space: q.Space, ReadOnly: q.ReadOnly})
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

// deathOf reports how a sandbox ended under its command; empty if err says
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

// limitsOfDeath are the limits that ended a sandbox.
func limitsOfDeath(end tools.RunEnd) []string {
	if end == tools.RunOutOfMemory {
		return []string{"sandbox.memory"}
	}
	return nil
}

// limitNames names each limit that a command met once, in the order in which
// the notes speak of them.
func limitNames(met []sandbox.Limit) []string {
	var names []string
	for _, l := range met {
		if !slices.Contains(names, string(l)) {
			names = append(names, string(l))
		}
	}
	return names
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
	agent.Shutdown: tools.RunStopped,
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
