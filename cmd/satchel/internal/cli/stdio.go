package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"satchel/cmd/satchel/internal/admin"
	"satchel/cmd/satchel/internal/app"
	"satchel/cmd/satchel/internal/stdio"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// stdioKeyLife bounds the key that a run of `satchel stdio` makes for itself,
// in case it cannot revoke it at its end.
const stdioKeyLife = 30 * 24 * time.Hour

func stdioCommand() *command {
	return &command{name: "stdio", short: "MCP over standard input and output, for clients that start a command",
		long: `
It speaks to the server that runs on the data directory, and serves by itself
where none does. Where $SATCHEL_TOKEN is not set it makes an API key of its own
that ends with it, which only who owns the data directory can do. --url names a
server elsewhere and needs $SATCHEL_TOKEN.`,
		setup: func(fs *pflag.FlagSet) runner {
			url := fs.String("url", "", "the MCP `URL` of a server (default: the one on the data directory)")
			user := fs.String("user", "", "as whom (default: the first admin)")
			return func(ctx context.Context, c *call, _ []string) error {
				token := lookupEnv(c.Environ, "SATCHEL_TOKEN")
				if *url != "" {
					if token == "" {
						return usage("--url needs an API key in $SATCHEL_TOKEN")
					}
					return c.carry(ctx, *url, token)
				}
				return c.stdioHere(ctx, token, *user)
			}
		}}
}

// stdioHere carries messages to the server of the data directory.
func (c *call) stdioHere(ctx context.Context, token, user string) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	log := commandLog(c.Stderr)
	remote, err := admin.Dial(ctx, app.SocketPath(cfg.DataDir))
	if err == nil {
		info, err := remote.Info(ctx)
		if err != nil {
			return err
		}
		return c.withKey(ctx, remote, token, user, func(key string) error { return c.carry(ctx, info.URL, key) })
	}

	// None runs: serve on an address that only this process knows.
	cfg.Server.Listen, cfg.Server.Metrics, cfg.Server.PublicURL = "127.0.0.1:0", "", ""
	s, err := app.OpenServer(ctx, cfg, c.Version.Version, log)
	if err != nil {
		return err
	}
	if _, _, err := s.Admin.FirstUser(ctx, firstUser); err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Serve(serving, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		return err
	}
	err = c.withKey(ctx, s.Admin, token, user, func(key string) error { return c.carry(ctx, s.Admin.Running.URL, key) })
	stop()
	return errors.Join(err, <-ended)
}

// withKey calls do with the token, or with a key that lives as long as do.
func (c *call) withKey(ctx context.Context, s admin.Service, token, user string, do func(key string) error) error {
	if token != "" {
		return do(token)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	t, err := s.CreateToken(ctx, admin.TokenRequest{
		User: user, Name: fmt.Sprintf("satchel stdio on %s", host), Expires: stdioKeyLife,
		Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite},
	})
	if err != nil {
		return err
	}
	err = do(t.Secret)
	// The client has gone, and perhaps ctx with it; the key must go as well.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	rerr := s.RevokeToken(end, t.ID)
	if fault.CodeOf(rerr) == fault.Unavailable {
		rerr = nil // the server ended first; the key ends by itself
	}
	return errors.Join(err, rerr)
}

func (c *call) carry(ctx context.Context, url, token string) error {
	return stdio.Run(ctx, stdio.Options{URL: url, Token: token, In: c.Stdin, Out: c.Stdout, Log: commandLog(c.Stderr)})
}

func lookupEnv(environ []string, name string) string {
	for _, kv := range environ {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}
