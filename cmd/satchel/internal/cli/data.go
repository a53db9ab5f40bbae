package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/server"
	"satchel/internal/service"
	"satchel/internal/telemetry"
)

// startTime is how long a command waits for a process that uses the data directory and does not
// accept commands. Such a process is a server that migrates its database or shuts down, or
// another command, which usually ends soon.
const startTime = 15 * time.Second

// admin runs do, the work of an administrative command, on the data directory. If a server has
// the directory open, that server does the work. A command checks its arguments before it calls
// admin, because admin may wait.
func (c *call) admin(ctx context.Context, do func(s admin.Service) error) error {
	cfg, err := c.existing()
	if err != nil {
		return err
	}
	return c.adminIn(ctx, cfg, do)
}

// existing returns the configuration, or an error if its data directory has no
// Satchel. Without this check, a mistyped name would create a new data directory.
func (c *call) existing() (*config.Config, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	if !server.Initialised(cfg.DataDir) {
		return nil, fault.New(fault.NotFound, "There is no Satchel in %s. Start one with: satchel serve --data %s; or name another directory with --data.",
			cfg.DataDir, shellQuote(cfg.DataDir))
	}
	return cfg, nil
}

// adminIn is like admin, but takes the configuration. If the data directory of cfg does not exist,
// adminIn creates it.
func (c *call) adminIn(ctx context.Context, cfg *config.Config, do func(s admin.Service) error) error {
	// The log omits warnings. A failure outside the data directory, such as at a remote, is in
	// the command's answer.
	log := commandLog(c.Stderr, slog.LevelError)
	var remote *admin.Remote
	core, err := take(ctx, c, cfg, &remote, func() (*server.Core, error) {
		return server.OpenCore(ctx, cfg, c.Version.Version, log)
	})
	switch {
	case err != nil:
		return err
	case remote != nil:
		return errors.Join(do(remote), remote.Close())
	}
	return errors.Join(do(core.Admin), core.Close())
}

// take opens the data directory with open, or sets remote to the server that has it open. The
// directory's lock ensures that only one process opens it. If the process with the lock does not
// accept commands, it is another command or a server that starts or stops. take waits up to
// startTime for it to end or to accept commands.
func take[T any](ctx context.Context, c *call, cfg *config.Config, remote **admin.Remote, open func() (T, error)) (T, error) {
	var none T
	noted := false
	for began := time.Now(); ; {
		r, err := admin.Dial(ctx, server.SocketPath(cfg.DataDir))
		if err == nil {
			*remote = r
			return none, nil
		}
		opened, err := open()
		if err == nil || fault.CodeOf(err) != fault.Conflict || time.Since(began) > startTime {
			return opened, err
		}
		if !noted && time.Since(began) > time.Second {
			noted = true
			c.note("satchel: waiting for another process that works on %s\n", cfg.DataDir)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// commandLog returns a log for a command that a person waits for. It omits
// entries below the level least.
func commandLog(w io.Writer, least slog.Level) *slog.Logger {
	return slog.New(telemetry.NewHandler(slog.NewTextHandler(w, &slog.HandlerOptions{Level: least})))
}

// longTask calls m like admin.Do, and shows the progress of the operation on one line.
func longTask[In, Out any](ctx context.Context, c *call, m service.Method[In, Out], in In) (out Out, err error) {
	line := progressLine{w: c.Stderr, shown: c.Watched}
	defer line.clear()
	err = c.admin(ctx, func(s admin.Service) error {
		out, err = admin.Do(service.WithProgress(ctx, line.show), s, m, in)
		return err
	})
	return out, err
}
