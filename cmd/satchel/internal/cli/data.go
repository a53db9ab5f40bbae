package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"satchel/cmd/satchel/internal/admin"
	"satchel/cmd/satchel/internal/app"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/telemetry"
)

// startTime is how long a server may hold the data directory before it takes
// commands: it migrates its database first.
const startTime = 15 * time.Second

// withAdmin runs an administrative command on the data directory: through the
// server that works on it, or else directly.
func withAdmin(do func(ctx context.Context, c *call, s admin.Service, args []string) error) runner {
	return func(ctx context.Context, c *call, args []string) error {
		cfg, err := c.load()
		if err != nil {
			return err
		}
		s, done, err := openAdmin(ctx, cfg, c.Version.Version, commandLog(c.Stderr))
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, c, s, args), done())
	}
}

// openAdmin returns the service of the data directory. The directory's lock
// decides: who gets it is the only one at work; else its holder is asked.
func openAdmin(ctx context.Context, cfg *config.Config, version string, log *slog.Logger) (s admin.Service, done func() error, err error) {
	path := app.SocketPath(cfg.DataDir)
	for deadline := time.Now().Add(startTime); ; {
		if remote, err := admin.Dial(ctx, path); err == nil {
			return remote, func() error { return nil }, nil
		}
		core, err := app.OpenCore(ctx, cfg, version, log)
		if err == nil {
			return core.Admin, core.Close, nil
		}
		if fault.CodeOf(err) != fault.Conflict || time.Now().After(deadline) {
			return nil, nil, err
		}
		// Another command, which ends soon, or a server that does not listen
		// yet.
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// commandLog is the log of a command that a person waits for: only what goes
// wrong.
func commandLog(w io.Writer) *slog.Logger {
	return slog.New(telemetry.NewHandler(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})))
}
