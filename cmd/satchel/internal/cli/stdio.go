package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/auth"
	"satchel/cmd/satchel/internal/stdio"
	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/server"
	"satchel/internal/service"
	"satchel/internal/space"
)

// stdioKeyLife is the lifetime of the key that a run of `satchel stdio` makes for
// itself. It is short because a run that is killed cannot revoke its key. A run
// that lasts longer makes another key.
const stdioKeyLife = 24 * time.Hour

func (c *call) stdioCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "stdio", Args: cobra.NoArgs, Short: "speak MCP over standard input and output, for clients that start a command", Long: `
The command connects to the server that runs on the data directory, or serves the
data itself if no server runs. If $SATCHEL_TOKEN is not set, it makes an API key
that is revoked when the command ends; only the owner of the data directory can do
that. With --url it connects to another server, which needs $SATCHEL_TOKEN.`}, func(fs *pflag.FlagSet) runner {
		url := fs.String("url", "", "the MCP `URL` of a server (default: the one on the data directory)")
		user := fs.String("user", "", "act as the person `NAME` (default: the first admin)")
		return func(ctx context.Context, _ []string) error {
			go returnMemory(ctx)
			token := lookupEnv(c.Environ, "SATCHEL_TOKEN")
			if *url != "" {
				if token == "" {
					return usage("--url needs an API key in $SATCHEL_TOKEN")
				}
				return stdio.Run(ctx, c.carries(stdio.Target{URL: *url, Token: token}, nil))
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			h := &home{c: c, cfg: cfg, log: commandLog(c.Stderr, slog.LevelWarn), token: token, user: *user}
			return h.run(ctx)
		}
	})
}

func (c *call) carries(to stdio.Target, again func(context.Context, stdio.Target, bool) (stdio.Target, error)) stdio.Options {
	return stdio.Options{Target: to, Reconnect: again, In: c.Stdin, Out: c.Stdout, Log: commandLog(c.Stderr, slog.LevelWarn)}
}

// home is the server of the data directory for one run of `satchel stdio`: the
// server that already runs there, or this process if none does. Several runs on
// one directory share the server of the first. When the first run ends, another
// becomes the server.
type home struct {
	c     *call
	cfg   *config.Config
	log   *slog.Logger
	token string // the caller's key; if empty, this run makes its own
	user  string // the owner of the key that this run makes

	service admin.Service
	info    admin.Info
	close   func(context.Context) error // ends the connection or the server that attach made

	key service.NewKey // the last key that this run made
}

func (h *home) run(ctx context.Context) (err error) {
	defer func() {
		// The client has gone, and ctx may have ended. The key must still be revoked.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, h.revoke(end), h.detach(end))
	}()
	if err := h.attach(ctx); err != nil {
		return err
	}
	to, err := h.target(ctx, true)
	if err != nil {
		return err
	}
	return stdio.Run(ctx, h.c.carries(to, h.again))
}

// again returns the target to continue with after the connection failed or the server refused
// the key. If `satchel serve` started the server, again returns an error until that server runs
// again. If this process opened the data directory instead, that server could not start.
func (h *home) again(ctx context.Context, _ stdio.Target, keyRefused bool) (stdio.Target, error) {
	if !keyRefused {
		remote, err := admin.Dial(ctx, server.SocketPath(h.cfg.DataDir))
		if err == nil {
			err = remote.Close()
		}
		if err != nil && !h.info.Passing {
			return stdio.Target{}, err
		}
		if err := errors.Join(h.detach(ctx), h.attach(ctx)); err != nil {
			return stdio.Target{}, err
		}
	}
	return h.target(ctx, keyRefused)
}

// target returns the server's URL and the key to use there. If newKey is true, target makes a new
// key, unless the caller gave one.
func (h *home) target(ctx context.Context, newKey bool) (stdio.Target, error) {
	if h.token != "" {
		return stdio.Target{URL: h.info.URL, Token: h.token}, nil
	}
	if newKey {
		host, err := os.Hostname()
		if err != nil {
			host = "this machine"
		}
		h.key, err = admin.Do(ctx, h.service, (*service.Service).CreateKey, service.CreateKeyInput{
			Space: service.SpaceRef{User: h.user}, Name: fmt.Sprintf("%s%.100s", auth.StdioKey, host), Lifetime: stdioKeyLife,
			Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite},
		})
		if err != nil {
			return stdio.Target{}, err
		}
	}
	return stdio.Target{URL: h.info.URL, Token: h.key.Secret}, nil
}

// attach connects to the running server. If none runs, it starts a server in this process.
func (h *home) attach(ctx context.Context) error {
	// A server in this process listens on a free port, which only the admin socket reports.
	cfg := *h.cfg
	cfg.Server.Listen, cfg.Server.Metrics, cfg.Server.PublicURL = "127.0.0.1:0", "", ""
	var remote *admin.Remote
	s, err := take(ctx, h.c, &cfg, &remote, func() (*server.Server, error) {
		return server.OpenServer(ctx, &cfg, h.c.Version.Version, h.log)
	})
	switch {
	case err != nil:
		return err
	case remote != nil:
		h.service, h.close = remote, func(context.Context) error { return remote.Close() }
		h.info, err = remote.Info(ctx)
		return err
	}
	return h.serve(ctx, s)
}

// serve starts s and waits until s is ready. s then serves until h.close is called,
// even if ctx ends before, so that the client's requests can finish.
func (h *home) serve(ctx context.Context, s *server.Server) error {
	s.Admin.Running.Passing = true
	if _, _, err := s.Service.FirstUser(ctx, firstUser); err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Serve(serving, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		stop()
		return err
	}
	h.service, h.info = s.Admin, s.Admin.Running
	h.close = func(context.Context) error {
		stop()
		return <-ended
	}
	return nil
}

func (h *home) detach(ctx context.Context) error {
	if h.close == nil {
		return nil
	}
	end := h.close
	h.close = nil
	return end(ctx)
}

// revoke ends the last key that this run made.
func (h *home) revoke(ctx context.Context) error {
	if h.key.ID == "" {
		return nil
	}
	_, err := admin.Do(ctx, h.service, (*service.Service).RevokeKey, service.RevokeKeyInput{ID: h.key.ID})
	if fault.CodeOf(err) == fault.Unavailable {
		return nil // the server ended first; the key expires on its own
	}
	return err
}

func lookupEnv(environ []string, name string) string {
	for _, kv := range environ {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}
