package service

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// RunCommandInput is one command for bash.
type RunCommandInput struct {
	Space      SpaceRef
	Command    string
	Comment    string // the message of the commit
	Tool       string // the tool that the commit's trailers name
	Background bool   // start the command as a job
}

// The ways a command ends.
const (
	Exited      = protocol.Exited
	TimedOut    = protocol.TimedOut
	Canceled    = protocol.Canceled
	Detached    = protocol.Detached // the command continues as a job
	Stopped     = protocol.Shutdown
	OutOfMemory = protocol.OutOfMemory
	Lost        = protocol.Lost
)

// CommandResult is the result of a command.
type CommandResult struct {
	sandbox.Result
	// Detail says why the sandbox ended during the command, and what was lost.
	Detail string
	// Push says whether the commits of the space were pushed.
	Push PushState
	// NotFacts are the files under memory/ that the command wrote and that are not valid
	// facts.
	NotFacts []MemoryFact
}

// PushState describes pushes. State is "local" (no remote), "pushed", "queued" or
// "failed". Detail says why a push failed and what to do.
type PushState struct{ State, Detail string }

// RunCommand runs a command in the actor's sandbox over a space and commits its changes. It
// returns when the command ends or becomes a job. The command ends when ctx ends. The failure of
// a command is a result. An error means that the command did not run. The output of the command
// is reported as progress.
func (s *Service) RunCommand(ctx context.Context, a Actor, in RunCommandInput) (CommandResult, error) {
	return s.run(ctx, a, "RunCommand", in, false)
}

// RunReadOnlyCommand is like RunCommand, but cannot change the space.
func (s *Service) RunReadOnlyCommand(ctx context.Context, a Actor, in RunCommandInput) (CommandResult, error) {
	return s.run(ctx, a, "RunReadOnlyCommand", in, true)
}

func (s *Service) run(ctx context.Context, a Actor, operation string, in RunCommandInput, readOnly bool) (CommandResult, error) {
	m, err := s.authorizeSpace(ctx, a, operation, in.Space)
	if err != nil {
		return CommandResult{}, err
	}
	s.remotes.Used(m.ID)
	out, err := s.exec(ctx, sandbox.Request{
		User: a.user, Space: m.ID, Command: in.Command, Comment: in.Comment, ReadOnly: readOnly, Background: in.Background,
		Author: a.author, Tool: in.Tool, Client: a.label,
	})
	if err != nil {
		return CommandResult{}, err
	}
	out.Push = s.pushState(m.ID)
	out.NotFacts = View{m, s}.notFacts(ctx, out.Commits)
	if out.Detail != "" {
		return out, nil
	}
	out.Notes = append(out.Notes, s.remotes.Notices(m.ID, a.user)...)
	if out.End == Exited && out.ExitCode == killedExit {
		// When a sandbox runs out of memory, the kernel kills a process without a message.
		out.Notes = append(out.Notes, fmt.Sprintf("Exit code 137 means killed. If the command did not do so itself, "+
			"it most likely met the sandbox's memory limit of %s.", config.FormatSize(s.running.Pool.Memory())))
	}
	if cannotFork.MatchString(out.Stderr.Text) {
		out.Notes = append(out.Notes, s.jobsNote(ctx, sandbox.JobOwner{User: a.user, Space: m.ID, ReadOnly: readOnly}, out.JobID))
	}
	if n := len(out.Applied); n > 0 {
		out.Notes = append(out.Notes, appliedNote(n))
	}
	fillUserName(&out.Result, a.author)
	return out, nil
}

// exec runs a command in a sandbox of the pool. If the sandbox ends, that is a result and not an
// error.
func (s *Service) exec(ctx context.Context, r sandbox.Request) (CommandResult, error) {
	if why := s.NoCommands(); why != "" {
		return CommandResult{}, fault.New(fault.Unavailable, "%s", why)
	}
	began := time.Now()
	report := Progress(ctx)
	r.OnProgress = func(p sandbox.Progress) { report(progressText(p)) }
	res, err := s.running.Pool.Exec(ctx, r)
	out := CommandResult{Result: res}
	switch {
	case errors.Is(err, space.ErrOutOfMemory):
		out.End, out.Limits = OutOfMemory, []sandbox.Limit{"sandbox.memory"}
	case errors.Is(err, space.ErrSandboxEnded):
		out.End = Lost
	default:
		return out, err
	}
	out.ExitCode, out.Duration, out.Detail = -1, time.Since(began), fault.PublicOf(err)
	return out, nil
}

// NoCommands returns why no command can run, or "".
func (s *Service) NoCommands() string {
	if s.running.Pool == nil {
		return "This server's configuration switches bash off (sandbox.runtime: none)."
	}
	return ""
}

// pushState returns whether the commits of a space were pushed.
func (s *Service) pushState(id space.SpaceID) PushState {
	state := s.remotes.State(id)
	if state == space.RemoteLocal || state == space.RemotePushed {
		return PushState{State: string(state)}
	}
	// A failure that the next attempt may fix does not count yet.
	if trouble := s.remotes.Trouble(id); trouble != "" {
		return PushState{State: "failed", Detail: trouble}
	}
	return PushState{State: "queued"}
}

func appliedNote(n int) string {
	if n == 1 {
		return "1 file that changed elsewhere was brought in before the command ran."
	}
	return fmt.Sprintf("%d files that changed elsewhere were brought in before the command ran.", n)
}

// fillUserName puts the user's name into the commands that refusals suggest. It finds the
// name in the address NAME@satchel.invalid, which authors without an address have.
func fillUserName(out *sandbox.Result, author space.Person) {
	fill := func(s string) string { return namedUser(s, author) }
	fillAll := func(list []space.Rejection) []space.Rejection {
		list = slices.Clone(list) // the original belongs to the sandbox or the commit
		for i := range list {
			list[i].Why = fill(list[i].Why)
		}
		return list
	}
	out.Pending = fillAll(out.Pending)
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

// namedUser puts the user's name into the commands in a text.
func namedUser(text string, author space.Person) string {
	name, ok := strings.CutSuffix(author.Email, "@satchel.invalid")
	if !ok || !userName.MatchString(name) {
		return text
	}
	return strings.ReplaceAll(text, " --user NAME ", " --user "+name+" ")
}

// userName matches names that need no quotes in a shell.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// cannotFork matches the error of bash when a process limit (RLIMIT_NPROC) is reached.
var cannotFork = regexp.MustCompile(`fork: (retry: )?Resource temporarily unavailable`)

// jobsNote lists the running jobs of a sandbox, except the one with the ID besides. A command that
// cannot start processes cannot list the jobs itself.
func (s *Service) jobsNote(ctx context.Context, o sandbox.JobOwner, besides string) string {
	note := "All processes that the sandbox may have are in use."
	jobs, err := s.running.Pool.Jobs(ctx, o)
	if err != nil {
		return note
	}
	for _, j := range jobs {
		if j.Running && j.ID != besides {
			note += fmt.Sprintf(" Job %s is running; stop it with: kill -- -$(cat /run/satchel/jobs/%s/pid)", j.ID, j.ID)
		}
	}
	return note
}

// killedExit is the shell's exit code for a command that SIGKILL ended.
const killedExit = 128 + 9

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
