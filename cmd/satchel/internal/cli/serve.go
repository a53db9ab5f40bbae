package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/procmem"
	"satchel/internal/server"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/telemetry"
)

// firstUser is the name of the admin that a first start makes.
const firstUser = "admin"

// keyFile is the file of the data directory that contains the first admin's key.
// It is written only if no terminal shows a sign-in link.
const keyFile = "admin-key"

func (c *call) serveCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "serve", Args: cobra.NoArgs, Short: "run the server", Long: `
Without a configuration the server keeps everything in the data directory, creates
a first admin with a space and an API key, and serves MCP on 127.0.0.1:8080. It
shuts down cleanly on SIGTERM and SIGINT. On a terminal it logs only what is wrong,
unless --verbose is given or log.level is debug. It reads the sources of the configuration
file again when the file changes, and on SIGHUP unless it runs in a terminal.`}, func(fs *pflag.FlagSet) runner {
		config.AddServerFlags(fs)
		var verbose bool
		fs.BoolVarP(&verbose, "verbose", "v", false, "log what the server does on a terminal, too")
		return func(ctx context.Context, _ []string) error { return c.serve(ctx, verbose) }
	})
}

// served is what `serve --json` prints once the server answers.
type served struct {
	URL     string `json:"url"`
	Data    string `json:"data"`
	KeyFile string `json:"key_file,omitempty"`
}

func (c *call) serve(ctx context.Context, verbose bool) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	level := cfg.Log.Level
	if c.Watched && !verbose && level == "info" {
		level = "warn" // the log would bury the sign-in link
	}
	log, err := telemetry.NewLogger(telemetry.LogOptions{Writer: c.Stderr, Level: level, Format: cfg.Log.Format})
	if err != nil {
		return err
	}
	go returnMemory(ctx)
	var remote *admin.Remote
	s, err := take(ctx, c, cfg, &remote, func() (*server.Server, error) {
		return server.OpenServer(ctx, cfg, c.Version.Version, log)
	})
	switch {
	case err != nil:
		return err
	case remote != nil:
		return inUse(ctx, cfg, remote)
	}
	first, err := firstAccess(ctx, c, s)
	if err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	if !c.Terminal { // in a terminal, SIGHUP still ends the server
		defer reloadOnHangup(s)()
	}
	return s.Serve(ctx, func() {
		c.greet(s, first)
	})
}

// reloadOnHangup reads the sources of the configuration file again on SIGHUP, until the returned
// function is called.
func reloadOnHangup(s *server.Server) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangup {
			s.ReloadSources()
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(hangup)
		<-done
	}
}

// returnMemory gives memory back to the system whenever this process becomes idle, until ctx
// ends.
func returnMemory(ctx context.Context) {
	// The process is idle if it allocates less than idleBytes between two checks. Health checks
	// and reads of the metrics allocate less. With fewer checks in a row the process would count as
	// idle between two calls of a client, and each call would load the memory pages again.
	const idleBytes, checks = 1 << 20, 30
	// Without a reclaimer, only the heap is given back.
	reclaimer, _ := procmem.NewReclaimer()
	reclaimer.Watch(ctx, procmem.Idle{Bytes: idleBytes, Start: 1, Checks: checks})
}

// inUse returns the error of a server that finds another one on its data directory.
func inUse(ctx context.Context, cfg *config.Config, other *admin.Remote) error {
	info, err := other.Info(ctx)
	switch err = errors.Join(err, other.Close()); {
	case err != nil:
		return err
	case info.Passing:
		return fault.New(fault.Conflict, "A client that uses satchel stdio, such as Claude Desktop, has %s open. Quit it, start this server, and start the client again: it will use the server.", cfg.DataDir)
	}
	return fault.New(fault.Conflict, "A server on %s is already running at %s. Stop it first, or name another directory with --data.", cfg.DataDir, info.URL)
}

// access is how the first admin gets in.
type access struct {
	file string // the file with their API key; empty if there is none
	link string // a link that signs them in once; empty if no terminal shows it
}

// firstAccess makes the first admin if there was never a user. For this new admin it returns a
// sign-in link if a terminal can show one. Otherwise it writes an API key to a file that only the
// server's owner can read. For an earlier admin it returns the file of a key that still works.
func firstAccess(ctx context.Context, c *call, s *server.Server) (access, error) {
	path := filepath.Join(s.Config.DataDir, keyFile)
	u, made, err := s.Service.FirstUser(ctx, firstUser)
	if err != nil {
		return access{}, err
	}
	if !made {
		// Somebody may have removed the file or revoked its key.
		secret, err := os.ReadFile(path)
		if err == nil {
			_, err = s.Accounts.CheckKey(ctx, strings.TrimSpace(string(secret)))
		}
		if err != nil {
			path = ""
		}
		return access{file: path}, nil
	}
	if c.Terminal && !c.json {
		l, err := s.Service.CreateLoginLink(ctx, service.Operator(), service.CreateLoginLinkInput{User: service.UserRef{ID: u.ID}})
		return access{link: l.URL}, err
	}
	t, err := s.Service.CreateKey(ctx, service.Operator(), service.CreateKeyInput{Space: service.SpaceRef{User: u.Name}, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}, Name: "first key"})
	if err != nil {
		return access{}, err
	}
	if err := writeSecret(path, t.Secret); err != nil {
		return access{}, fmt.Errorf("write the first key: %w", err)
	}
	return access{file: path}, nil
}

// writeSecret makes a file that only its owner can read. It replaces an existing
// file, which may have another mode or be a link.
func writeSecret(path, secret string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, secret)
	return errors.Join(err, f.Sync(), f.Close())
}

// greet prints one block: how to sign in, what clients connect to, where the data is, and how
// to stop. The pages explain the rest.
func (c *call) greet(s *server.Server, first access) {
	if c.json {
		_ = c.answer(served{URL: s.URL(), Data: s.Config.DataDir, KeyFile: first.file}, nil)
		return
	}
	c.printf("\nSatchel is running.\n\n")
	if first.link != "" {
		c.printf("  Sign in      %s\n               (works once, within %s)\n", first.link, config.FormatDuration(service.DefaultLinkLifetime))
	} else {
		c.printf("  Pages        %s\n", s.PagesURL())
		c.printf("  Sign in      as admin: run this command, and open the link that it prints:\n               %s login-link --data %s\n", shellQuote(c.Executable), shellQuote(s.Config.DataDir))
	}
	c.printf("  MCP address  %s/mcp\n", s.PagesURL())
	if first.file != "" {
		c.printf("  API key      in %s\n", first.file)
	}
	c.printf("  Data         %s\n  Stop         Ctrl+C\n\n", s.Config.DataDir)
	if s.Exposed() {
		c.printf("Other machines can reach this server, and keys travel unencrypted. Use --domain NAME, or put TLS in front and set --public-url; in a network that you trust, --public-url http://ADDRESS:PORT.\n\n")
	}
}

// shellQuote makes s one word of a POSIX shell.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
