package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotes"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/transport"
	"satchel/internal/config"
	"satchel/internal/egress"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/sandbox/pending"
)

// keyFile holds the server's key, which encrypts the tokens of remotes and held files.
const keyFile = "server.key"

// links are the parts of spaces beyond their repositories: remotes, the secret scanner, and
// pending files.
type links struct {
	box       *seal.Box
	egress    *egress.Proxy
	transport *transport.Client
	remotes   *remotes.Manager
	secrets   *secretscan.Scanner
	held      *pending.Store
	// github gives remotes the tokens of the GitHub App, once the server has the App.
	github githubTokens
}

// openTransport opens the transport to remotes, which the store of spaces needs.
func (l *links) openTransport(ctx context.Context, c *Core) (err error) {
	cfg := c.Config.Remotes
	o := egress.Options{Logger: c.Log.With("part", "egress")}
	for _, n := range cfg.AllowNetworks {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			return fmt.Errorf("remotes.allow_networks: %w", err) // the configuration has checked it
		}
		o.Allow = append(o.Allow, p)
	}
	for _, p := range cfg.AllowPorts {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return fmt.Errorf("remotes.allow_ports: %w", err)
		}
		o.Ports = append(o.Ports, uint16(n))
	}
	// The proxy lives as long as the core, not only during this call.
	if l.egress, err = egress.NewProxy(context.WithoutCancel(ctx), o); err != nil {
		return err
	}
	l.transport = transport.New(transport.Options{
		Git:    gitcmd.Runner{Memory: cfg.GitMemory},
		Egress: l.egress,
		Logger: c.Log.With("part", "transport"),
	})
	return nil
}

// openRemotes opens everything except the transport, with the core's database and store.
func (l *links) openRemotes(ctx context.Context, c *Core, m remotes.Metrics) error {
	box, err := seal.Load(filepath.Join(c.Config.DataDir, keyFile))
	if err != nil {
		return err
	}
	l.box = box
	if l.secrets, err = secretscan.New(secretscan.Options{DB: c.DB}); err != nil {
		return err
	}
	cfg := c.Config
	l.held, err = pending.Open(pending.Options{
		Dir: filepath.Join(cfg.DataDir, "held"), Seal: box,
		Logger: c.Log.With("part", "held"),
	})
	if err != nil {
		return err
	}
	l.remotes = remotes.New(remotes.Options{
		DB: c.DB, Git: c.Git, Transport: l.transport, Seal: box,
		Credentials: &l.github,
		SSH:         sshOf(cfg.Remotes), CAFile: cfg.Remotes.CAFile,
		Backoff:    backoff(cfg.Remotes.RetryMax),
		CheckEvery: cfg.Remotes.PollEvery / checksPerPoll, PollEvery: cfg.Remotes.PollEvery,
		Metrics: m,
		Logger:  c.Log.With("part", "remotes"),
	})
	return l.remotes.Load(ctx)
}

// checksPerPoll is how many times more often a remote is checked while its space is in use:
// every 5 seconds if the other remotes are checked every 5 minutes.
const checksPerPoll = 60

// backoff returns the delays after errors: at most longest after an error that may be temporary.
// The delays are longer after other errors, such as revoked access, which a person must fix.
func backoff(longest time.Duration) remotes.Backoff {
	return remotes.Backoff{Min: min(remotes.DefaultBackoffMin, longest/2), Max: longest, Slow: 4 * longest}
}

func sshOf(cfg config.Remotes) *transport.SSH {
	if cfg.SSHKey == "" {
		return nil
	}
	return &transport.SSH{KeyFile: cfg.SSHKey, KnownHosts: cfg.SSHKnownHosts}
}

// screen looks for secrets in new content. In a space without a remote it only warns. Nothing
// leaves the server then, but a remote may be set later, and members can read the history.
func (l *links) screen(ctx context.Context, id space.SpaceID, p space.Path, content []byte, before func() ([]byte, error)) error {
	err := l.secrets.Screen(ctx, id, p, content, before)
	var refusal *secretscan.Refusal
	if !errors.As(err, &refusal) || l.remotes.Has(id) {
		return err
	}
	if warning := refusal.Warning(); warning != "" {
		return gitstore.Warned{Why: warning}
	}
	return nil
}

// transferGrace is how long transfers may still run when the server stops. The next start
// repeats interrupted transfers.
const transferGrace = 5 * time.Second

// closeRemotes ends transfers. Afterwards the store may be closed.
func (l *links) closeRemotes() error {
	if l.remotes == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), transferGrace)
	defer cancel()
	if err := l.remotes.Close(ctx); fault.CodeOf(err) != fault.Canceled {
		return err
	}
	return nil
}

// closeTransport closes the transport. Call it after the store is closed.
func (l *links) closeTransport() error {
	var errs []error
	if l.transport != nil {
		errs = append(errs, l.transport.Close())
	}
	if l.egress != nil {
		errs = append(errs, l.egress.Close())
	}
	return errors.Join(errs...)
}
