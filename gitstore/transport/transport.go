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
	// Git runs git, with the timeouts of Options instead of its own. An empty Program is
	// "git" in the PATH. Its Memory limits git; a run that needs more fails with OverLimit.
	Git gitcmd.Runner
	// Egress connects to users' hosts. Without it, only trusted endpoints can be reached.
	Egress *egress.Proxy
	// ListTimeout bounds one List; default 30 seconds.
	ListTimeout time.Duration
	// TransferTimeout bounds one Fetch or Push; default 1 hour.
	TransferTimeout time.Duration
	// A transfer ends if it moves fewer than LowSpeed bytes per second for LowSpeedTime; default
	// 500 for 1 minute.
	LowSpeed     int
	LowSpeedTime time.Duration
	// StallTimeout ends a Fetch or Push without progress in git's own counts on this side:
	// git waits for ever if a gateway cuts off the end of an answer. Messages of the remote
	// do not count. Default 5 minutes, for slow remotes.
	StallTimeout time.Duration
	// MaxAdvertised is how many bytes List reads at most; default 32 MiB.
	MaxAdvertised int64
	// SizeEvery is how often a Fetch compares the size of the new objects with its limit;
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
	// URL does not contain a credential.
	URL string
	// Credential is sent to URL's host as HTTP Basic authorization; the zero
	// Credential sends none. An empty Username is "x-access-token".
	Credential space.Credential
	// Trusted means that the operator trusts the URL: http, private hosts and directories
	// of this machine (an absolute path) are allowed, and the egress rules do not apply.
	Trusted bool
	// CAFile is a file with further certificate authorities in PEM form, which is read when it is
	// first used. If CAFile is empty, only the machine's own authorities are accepted. Whether git
	// also accepts these if there is a CAFile depends on git's build.
	CAFile string
	// SSH enables ssh:// URLs; nil disables them.
	SSH *SSH
}

// defaultUser is the user name that GitHub and GitLab accept for a token.
const defaultUser = "x-access-token"

// SSH configures access to ssh:// URLs. The machine's ssh configuration, its agent and its
// known hosts are not used.
type SSH struct {
	// Program is the OpenSSH client; empty is "ssh", found through PATH.
	Program string
	// KeyFile holds the private key. KnownHosts holds the keys of the allowed hosts.
	KeyFile, KnownHosts string
}

// Refs are the refs of a remote.
type Refs struct {
	// Heads maps branch names, without refs/heads/, to the branches' tips. It leaves out
	// branches whose names git refuses.
	Heads map[string]space.CommitID
	// Default is the branch that HEAD names, even if it has no commit yet. Default is empty if
	// the branch is unknown.
	Default string
	// Shallow means that the remote is a shallow clone, which cannot be fetched
	// completely. Shallow is only known for http(s) remotes and directories.
	Shallow bool
	// Empty means that the remote has no branch.
	Empty bool
	// URL is the address that answered: the Endpoint's URL, or the target of a redirect on the
	// same host.
	URL string
}

// Client communicates with remotes. Its methods may be called concurrently.
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

// Close closes idle connections. It does not end running calls: their contexts do that.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.clients {
		h.CloseIdleConnections()
	}
	return nil
}
