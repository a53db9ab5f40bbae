package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (s *Server) shellRoutes() []route {
	return []route{
		on(http.MethodPost, "/api/sandbox/shell", space.ScopeRead, about{
			id: "shell", summary: "Run bash over the library", notFound: true, answer: "A result for each command that ran, in order.", example: `{"command": "ls docs"}`,
			detail: "Everything but /tmp is read-only, and there is no network. A command that fails is a result with its exit code, not an error. " +
				"sessionId names a sandbox of the token's grant, which is kept for 30 minutes after its last call. Without it, the grant's own sandbox is used, which is kept as long as any idle sandbox (sandbox.idle_stop).",
		}, s.shell),
		on(http.MethodPost, "/api/sandbox/snapshot", space.ScopeWrite, about{
			id: "snapshot", summary: "Make the snapshots of all sources again", detail: "Uses the commits that the server has, and asks no upstream.",
			answer: "The snapshots are made.", status: http.StatusAccepted, optionalBody: true,
		}, s.snapshot),
	}
}

// shellRequest has a command, or several that run in order.
type shellRequest struct {
	session
	Command  string   `json:"command" doc:"A bash script, run in /library." api:"minLength=1,maxLength=$commandBytes"`
	Commands []string `json:"commands" doc:"Instead of command: several, run in order in one sandbox." api:"minItems=1,maxItems=$commands" each:"minLength=1,maxLength=$commandBytes"`
}

type ranView struct {
	Command  string   `json:"command"`
	Stdout   string   `json:"stdout"`
	Stderr   string   `json:"stderr"`
	Cut      int64    `json:"cut,omitempty" doc:"Bytes of output that were left out." api:"minimum=0"`
	ExitCode int      `json:"exitCode"`
	Signal   string   `json:"signal,omitempty"`
	End      string   `json:"end" api:"enum=exited|timed_out|canceled|stopped|out_of_memory|lost"`
	Duration float64  `json:"duration" doc:"Seconds." api:"minimum=0"`
	Notes    []string `json:"notes,omitempty"`
}

type shellResultsView struct {
	session
	Stdout   *string `json:"stdout,omitempty" doc:"Of the command, if the request has one command."`
	Stderr   *string `json:"stderr,omitempty" doc:"Like stdout."`
	ExitCode *int    `json:"exitCode,omitempty" doc:"Like stdout."`

	Results []ranView    `json:"results"`
	Fresh   bool         `json:"fresh" doc:"The sandbox was started for this call, so it has nothing from earlier calls."`
	Error   *errorDetail `json:"error,omitempty" doc:"Why the commands after those of results were not run."`
}

// shell is POST /api/sandbox/shell.
func (s *Server) shell(c *call, a shellRequest) (none shellResultsView, err error) {
	commands := a.Commands
	switch {
	case a.Command != "" && a.Commands != nil:
		return none, fault.New(fault.Invalid, "Send command or commands, not both.")
	case a.Command != "":
		commands = []string{a.Command}
	case len(commands) == 0:
		return none, fault.New(fault.Invalid, `Give a command, such as {"command": "ls docs"}.`)
	case len(commands) > s.o.Limits.Commands:
		return none, tooMany("commands", len(commands), s.o.Limits.Commands)
	}
	for _, cmd := range commands {
		switch {
		case strings.TrimSpace(cmd) == "":
			return none, fault.New(fault.Invalid, "A command is empty.")
		case len(cmd) > s.o.Limits.CommandBytes:
			return none, fault.New(fault.TooLarge, "A command has %d bytes, but at most %d are allowed.", len(cmd), s.o.Limits.CommandBytes)
		case strings.ContainsRune(cmd, 0):
			return none, fault.New(fault.Invalid, "A command contains a NUL character.")
		}
	}
	if why := s.o.Service.NoCommands(); why != "" {
		return none, fault.New(fault.Unavailable, "%s Searching and reading still work.", why)
	}
	ctx, end := s.whileAllowed(c)
	defer end()
	body := shellResultsView{session: a.session.named(), Results: []ranView{}}
	for i, cmd := range commands {
		r, err := s.o.Service.RunLibraryCommand(ctx, c.actor(), service.RunLibraryCommandInput{Session: a.SessionID, Command: cmd})
		if ctx.Err() != nil && c.r.Context().Err() == nil {
			return none, context.Cause(ctx)
		}
		if err != nil && i == 0 {
			return none, err
		}
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				s.o.Logger.ErrorContext(ctx, "a command of several failed", "err", err)
			}
			body.Error = detailOf(err)
			break
		}
		if r.Detail != "" {
			r.Notes = append(r.Notes, r.Detail)
		}
		body.Fresh = body.Fresh || r.Cold
		body.Results = append(body.Results, ranView{
			Command: cmd, Stdout: r.Stdout.Text, Stderr: r.Stderr.Text, Cut: r.Stdout.Cut + r.Stderr.Cut,
			ExitCode: r.ExitCode, Signal: r.Signal, End: r.End.String(), Duration: r.Duration.Seconds(), Notes: r.Notes,
		})
		if r.End != service.Exited && i+1 < len(commands) {
			body.Error = &errorDetail{string(fault.Canceled), fmt.Sprintf("Command %d did not end by itself, so the commands after it were not run.", i+1)}
			break
		}
	}
	if len(commands) == 1 && len(body.Results) == 1 {
		r := &body.Results[0]
		body.Stdout, body.Stderr, body.ExitCode = &r.Stdout, &r.Stderr, &r.ExitCode
	}
	return body, nil
}

type startedView struct {
	session
	Status  string `json:"status" api:"enum=started"`
	Message string `json:"message" doc:"What was started, for people."`
}

type snapshotRequest struct{ session }

// snapshot is POST /api/sandbox/snapshot. It needs no body.
func (s *Server) snapshot(c *call, a snapshotRequest) (startedView, error) {
	all, err := s.o.Service.RebuildSnapshots(c.r.Context(), c.actor(), service.None{})
	return startedView{a.session.named(), started, fmt.Sprintf("The snapshots of %s were made again.", count(len(all)))}, err
}

// whileAllowed returns a context that is canceled when the caller's token is no longer
// valid: a command can run for minutes, but a revoked key must not be used.
func (s *Server) whileAllowed(c *call) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(s.o.Limits.Recheck)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			p, err := auth.Authenticate(ctx, c.r, s.o.Verifier)
			if err == nil {
				err = p.Require("read")
			}
			switch fault.CodeOf(err) {
			case fault.Unauthenticated, fault.Forbidden:
				cancel(err)
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
