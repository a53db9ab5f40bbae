package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
)

// shellArgs is the body of a shell request: one command, or several that run in
// order.
type shellArgs struct {
	session
	Command  string   `json:"command"`
	Commands []string `json:"commands"`
}

type ranBody struct {
	Command string `json:"command"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	// Cut are the bytes of both that are left out.
	Cut      int64    `json:"cut,omitempty"`
	ExitCode int      `json:"exitCode"`
	Signal   string   `json:"signal,omitempty"`
	End      string   `json:"end"`
	Duration float64  `json:"duration"` // seconds
	Notes    []string `json:"notes,omitempty"`
}

type shellBody struct {
	session
	Results []ranBody `json:"results"`
	// Fresh tells that nothing of earlier calls was in the sandbox.
	Fresh bool `json:"fresh"`
	// Error is why the commands after those of Results did not run.
	Error *errorDetail `json:"error,omitempty"`
}

// shell is POST /api/sandbox/shell.
func (s *Server) shell(c *call) error {
	var a shellArgs
	if err := c.decode(&a); err != nil {
		return err
	}
	commands := a.Commands
	switch {
	case a.Command != "" && a.Commands != nil:
		return fault.New(fault.Invalid, "Send command or commands, not both.")
	case a.Command != "":
		commands = []string{a.Command}
	case len(commands) == 0:
		return fault.New(fault.Invalid, `Name what to run, such as {"command": "ls docs"}.`)
	case len(commands) > s.o.Limits.Commands:
		return tooMany("commands", len(commands), s.o.Limits.Commands)
	}
	for _, cmd := range commands {
		switch {
		case strings.TrimSpace(cmd) == "":
			return fault.New(fault.Invalid, "A command is empty.")
		case len(cmd) > s.o.Limits.CommandBytes:
			return fault.New(fault.TooLarge, "A command has %d bytes, and %d are allowed.", len(cmd), s.o.Limits.CommandBytes)
		case strings.ContainsRune(cmd, 0):
			return fault.New(fault.Invalid, "A command holds a NUL character, which no shell command can.")
		}
	}
	if s.o.Shells == nil {
		return fault.New(fault.Unavailable, "%s Searching and reading still work.", s.o.ShellProblem)
	}
	ctx, end := s.whileAllowed(c)
	defer end()
	body := shellBody{session: a.session, Results: []ranBody{}}
	at := Shell{User: c.p.User, Grant: c.p.Grant, Session: a.SessionID}
	for i, cmd := range commands {
		r, err := s.o.Shells.Run(ctx, at, cmd)
		if ctx.Err() != nil && c.r.Context().Err() == nil {
			return context.Cause(ctx)
		}
		if err != nil && i == 0 {
			return err
		}
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				s.o.Logger.ErrorContext(ctx, "a command of several failed", "err", err)
			}
			body.Error = detailOf(err)
			break
		}
		body.Fresh = body.Fresh || r.Fresh
		body.Results = append(body.Results, ranBody{
			Command: cmd, Stdout: r.Stdout, Stderr: r.Stderr, Cut: r.StdoutCut + r.StderrCut,
			ExitCode: r.ExitCode, Signal: r.Signal, End: r.End, Duration: r.Duration.Seconds(), Notes: r.Notes,
		})
		if r.End != "exited" && i+1 < len(commands) {
			body.Error = &errorDetail{string(fault.Canceled), fmt.Sprintf("Command %d did not end by itself, so that those after it were not run.", i+1)}
			break
		}
	}
	return c.answer(http.StatusOK, body)
}

// whileAllowed returns a context that ends where the caller's token is good no
// more: a command may run for minutes, and a revoked key must not.
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
