package transport

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/internal/egress"
	"satchel/internal/space"
)

// Options configure a Client. Zero fields take the defaults.
type Options struct {
	// Git runs git; Options' own timeouts take the place of its. A Program
	// that is empty is "git", found through PATH. Its Memory bounds what a remote
	// can make git take; a run that needs more is OverLimit.
	Git gitcmd.Runner
	// Egress reaches what users name. Without it only trusted endpoints can be
	// reached.
	Egress *egress.Proxy
	// ListTimeout bounds one List; default 30 seconds.
	ListTimeout time.Duration
	// TransferTimeout bounds one Fetch or Push; default 1 hour.
	TransferTimeout time.Duration
	// LowSpeed ends a transfer that moves fewer bytes per second than this for
	// LowSpeedTime; default 500 for 1 minute.
	LowSpeed     int
	LowSpeedTime time.Duration
	// StallTimeout ends a Fetch or Push that by what git counts on this side has
	// got no further for so long: git waits for ever where the end of an answer
	// is missing, as a gateway leaves it. What the remote says does not count.
	// Default 5 minutes, for a remote that takes its time.
	StallTimeout time.Duration
	// MaxAdvertised bounds what List reads, in bytes; default 32 MiB.
	MaxAdvertised int64
	// SizeEvery is how often a Fetch compares what came with its limit;
	// default 100 ms.
	SizeEvery time.Duration
	Logger    *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Git.Program == "" {
		o.Git.Program = "git"
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.ListTimeout, 30*time.Second)
	def(&o.TransferTimeout, time.Hour)
	def(&o.LowSpeedTime, time.Minute)
	def(&o.StallTimeout, 5*time.Minute)
	def(&o.SizeEvery, 100*time.Millisecond)
	if o.LowSpeed == 0 {
		o.LowSpeed = 500
	}
	if o.MaxAdvertised == 0 {
		o.MaxAdvertised = 32 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Endpoint is one remote repository and how to reach it.
type Endpoint struct {
	// URL has no credential in it.
	URL string
	// Credential is sent to URL's host as HTTP Basic authorization; the zero
	// Credential sends none. An empty Username is "x-access-token".
	Credential space.Credential
	// Trusted says that the operator vouches for the URL: http, private hosts
	// and directories of this machine (an absolute path) are allowed, and the
	// egress rules do not count.
	Trusted bool
	// CAFile has further certificate authorities in PEM form, read when it is
	// first used; empty for the machine's own. Whether git goes on to accept
	// the machine's own beside them is its build's.
	CAFile string
	// SSH allows ssh:// URLs; nil refuses them.
	SSH *SSH
}

// defaultUser is what GitHub and GitLab take for a token's user.
const defaultUser = "x-access-token"

// SSH is how an ssh:// URL is reached. The machine's ssh configuration, its
// agent and its known hosts are not used.
type SSH struct {
	// Program is the OpenSSH client; empty is "ssh", found through PATH.
	Program string
	// KeyFile holds the private key. KnownHosts holds the hosts' keys: others
	// are refused.
	KeyFile, KnownHosts string
}

// Refs is what a remote has.
type Refs struct {
	// Heads are the branches' tips by their names, without refs/heads/.
	// Branches whose names git refuses are left out.
	Heads map[string]space.CommitID
	// Default is the branch that HEAD names, even where it has no commit yet;
	// empty if the remote does not tell.
	Default string
	// Shallow says that the remote is itself a shallow clone, which cannot be
	// fetched from whole. It is known of http(s) remotes and directories.
	Shallow bool
	// Empty says that the remote has no branch.
	Empty bool
	// URL is where the remote answered: the Endpoint's, or where it redirected
	// to on the same host.
	URL string
}

// Client talks to remotes. Its methods may be called concurrently.
type Client struct {
	o Options

	mu      sync.Mutex
	clients map[clientKey]*http.Client
}

type clientKey struct {
	trusted bool
	caFile  string
}

// New returns a Client; Close ends it.
func New(o Options) *Client {
	return &Client{o: o.withDefaults(), clients: map[clientKey]*http.Client{}}
}

// Close closes idle connections. Calls that run are not ended: their contexts
// do that.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.clients {
		h.CloseIdleConnections()
	}
	return nil
}
