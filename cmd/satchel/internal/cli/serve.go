package cli

import (
	"context"
	"encoding/json"
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

// keyFile, in the data directory, holds the first admin's key where nobody
// reads the terminal.
const keyFile = "admin-key"

func (c *call) serveCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "serve", Args: cobra.NoArgs, Short: "run the server", Long: `
Without a configuration the server keeps everything in the data directory, creates
a first admin with a space and an API key, and serves MCP on 127.0.0.1:8080. It
shuts down cleanly on SIGTERM and SIGINT. It reads the sources of the configuration
file again when the file changes, and on SIGHUP unless it runs in a terminal.`}, func(fs *pflag.FlagSet) runner {
		config.AddServerFlags(fs)
		return c.serve
	})
}

// served is what `serve --json` prints once the server answers.
type served struct {
	URL     string `json:"url"`
	Data    string `json:"data"`
	KeyFile string `json:"key_file,omitempty"`
}

func (c *call) serve(ctx context.Context, _ []string) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(telemetry.LogOptions{Writer: c.Stderr, Level: cfg.Log.Level, Format: cfg.Log.Format})
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
	key, err := firstKey(ctx, c, s)
	if err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	if !c.Terminal { // the end of a terminal ends the server
		defer reloadOnHangup(s)()
	}
	return s.Serve(ctx, func() {
		c.greet(s, key)
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

// returnMemory returns memory whenever this process becomes idle, until ctx ends.
func returnMemory(ctx context.Context) {
	// A check of the health and a read of the metrics are no work. Some seconds pass between
	// the calls of one client, which would have to load the program's pages again each time.
	const idleBytes, checks = 1 << 20, 30
	// Without it, only the heap is returned.
	reclaimer, _ := procmem.NewReclaimer()
	reclaimer.Watch(ctx, procmem.Idle{Bytes: idleBytes, Start: 1, Checks: checks})
}

// inUse is the error of a server that finds another on its data directory.
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

// clientKey is the API key that the greeting speaks of.
type clientKey struct {
	secret string // shown this once; empty if the key is in file
	file   string // holds it; empty if there is none
	link   string // signs the first admin in, once; empty if no terminal shows it
}

// inShell is how a shell command says the key.
func (k clientKey) inShell() string {
	switch {
	case k.secret != "":
		return k.secret
	case k.file != "":
		return "$(cat " + shellQuote(k.file) + ")"
	}
	return "YOUR_KEY"
}

// inJSON is how a configuration file says the key.
func (k clientKey) inJSON() string {
	if k.secret != "" {
		return k.secret
	}
	return "YOUR_KEY"
}

// firstKey makes the first admin and their key where nobody was ever a user
// here. The secret goes to a terminal, or else to a file that only the server's
// owner can read.
func firstKey(ctx context.Context, c *call, s *server.Server) (clientKey, error) {
	path := filepath.Join(s.Config.DataDir, keyFile)
	u, made, err := s.Service.FirstUser(ctx, firstUser)
	if err != nil {
		return clientKey{}, err
	}
	if !made {
		// The file may be gone, and its key too.
		secret, err := os.ReadFile(path)
		if err == nil {
			_, err = s.Accounts.CheckKey(ctx, strings.TrimSpace(string(secret)))
		}
		if err != nil {
			path = ""
		}
		return clientKey{file: path}, nil
	}
	t, err := s.Service.CreateKey(ctx, service.Operator(), service.CreateKeyInput{Space: service.SpaceRef{User: u.Name}, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}, Name: "first key"})
	if err != nil {
		return clientKey{}, err
	}
	if c.Terminal && !c.json {
		l, err := s.Service.CreateLoginLink(ctx, service.Operator(), service.CreateLoginLinkInput{User: service.UserRef{ID: u.ID}})
		return clientKey{secret: t.Secret, link: l.URL}, err
	}
	if err := writeSecret(path, t.Secret); err != nil {
		return clientKey{}, fmt.Errorf("write the first key: %w", err)
	}
	return clientKey{file: path}, nil
}

// writeSecret makes a file that only its owner can read; what is there already
// has another mode, or is a link.
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

// greet prints how to connect each kind of client.
func (c *call) greet(s *server.Server, key clientKey) {
	if c.json {
		_ = c.answer(served{URL: s.URL(), Data: s.Config.DataDir, KeyFile: key.file}, nil)
		return
	}
	desktop := clientConfig(struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{c.Executable, []string{"stdio", "--data", s.Config.DataDir}})
	other := clientConfig(struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}{"http", s.URL(), map[string]string{"Authorization": "Bearer " + key.inJSON()}})
	c.printf("\nSatchel serves MCP at %s\n", s.URL())
	if s.Exposed() {
		c.printf("Other machines can reach it, and keys travel unencrypted. Use --domain NAME, or put TLS in front and set --public-url; in a network that you trust, --public-url http://ADDRESS:PORT.\n")
	}
	if key.link != "" {
		c.printf("\nTo sign in as its admin, open this once, within %s:\n  %s\n", config.FormatDuration(service.DefaultLinkLifetime), key.link)
	} else {
		c.printf("\nTo sign in as its admin, open the link of:\n  %s login-link --data %s\n", shellQuote(c.Executable), shellQuote(s.Config.DataDir))
	}
	c.printf("\nClaude Code, which asks you to sign in:\n  claude mcp add --transport http --scope user satchel %s\n", s.URL())
	if s.Local() {
		c.printf("Other clients on this machine that sign in, such as Cursor and VS Code, take the URL\n  %s\n", s.URL())
		c.printf("Claude on the web and ChatGPT reach only what the internet reaches: docs/https.md\n")
	} else {
		c.printf("Other clients that sign in (Claude, ChatGPT, Cursor, VS Code) take the URL\n  %s\n", s.URL())
	}
	switch {
	case key.secret != "":
		c.printf("\nAn API key for what cannot sign in, shown this once:\n  %s\n", key.secret)
	case key.file != "":
		c.printf("\nAn API key for what cannot sign in is in the file:\n  %s\n", key.file)
	default:
		c.printf("\nTo make an API key for what cannot sign in:\n  %s token create --data %s\n", shellQuote(c.Executable), shellQuote(s.Config.DataDir))
	}
	c.printf("\nClaude Code with the key:\n  claude mcp add --transport http --scope user satchel %s --header \"Authorization: Bearer %s\"\n", s.URL(), key.inShell())
	c.printf("\nClaude Desktop, in claude_desktop_config.json:\n%s\n", indented(desktop))
	c.printf("\nOther clients with the key:\n%s\n\n", indented(other))
}

// clientConfig is the form in which most clients configure a server.
func clientConfig(server any) map[string]any {
	return map[string]any{"mcpServers": map[string]any{"satchel": server}}
}

func indented(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("  ", "  ")
	_ = enc.Encode(v) // texts alone
	return "  " + strings.TrimSpace(b.String())
}

// shellQuote makes s one word of a POSIX shell.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
