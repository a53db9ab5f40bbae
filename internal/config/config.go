package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"satchel/internal/fault"
)

// Config is the configuration of the server and the commands. keys.go documents the fields
// for people, with their defaults and limits.
type Config struct {
	// File is the file that was read. It is empty if there was none.
	File string

	DataDir  string
	Server   Server
	Database Database
	Log      Log
	Auth     Auth
	Tools    Tools
	Sandbox  Sandbox
	Space    Space
	Remotes  Remotes
	Library  Library
	Snapshot Snapshot
	Search   Search

	// Sources are the sources of the file. The server reads them again when the file changes; see
	// LoadSources.
	Sources []SyncedSource
}

// Server is the section server.
type Server struct {
	Listen         string
	PublicURL      string // without a trailing slash; empty for none
	Metrics        string // empty turns metrics off
	AllowedHosts   []string
	AllowedOrigins []string
	BodyTimeout    time.Duration
	Rate           float64 // requests per second for each user
	ShutdownGrace  time.Duration

	Domain         string // empty: the server does not terminate TLS
	HTTPSListen    string
	HTTPListen     string // empty for none
	ACMEURL        string
	ACMEEmail      string
	ACMECAFile     string   // an absolute path
	TrustedProxies []string // network prefixes
}

// Database is the section database.
type Database struct {
	URL string // empty means SQLite in the data directory; see Config.DatabaseURL
}

// Log is the section log.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Auth is the section auth.
type Auth struct {
	AllowEmails      []string
	AllowDomains     []string
	AllowGitHubUsers []string
	AllowGitHubOrgs  []string
	MembersInvite    bool

	AccessLifetime  time.Duration
	RefreshLifetime time.Duration // the longest time without a use
	SessionLifetime time.Duration
	Registration    bool
	ClientDocuments bool
	Rate            float64 // requests without a key, per minute for each address

	Issuer Issuer
	OIDC   SignInOIDC
	GitHub SignInGitHub
	Mail   Mail
}

// Issuer is the section auth.issuer.
type Issuer struct {
	URL           string // empty means the built-in authorization server
	Audience      []string
	ClientClaims  []string
	ReadScopes    []string
	WriteScopes   []string
	AskScopes     []string // empty means ReadScopes and WriteScopes
	DefaultScopes []string
	RequireClaims []string // in the form NAME=VALUE
	EmailClaim    string
	VerifiedClaim string // empty if all addresses of the issuer are verified
	NameClaim     string
}

// SignInOIDC is the section auth.oidc.
type SignInOIDC struct {
	URL          string // empty for none
	ClientID     string
	ClientSecret Secret
	Label        string
}

// SignInGitHub is the section auth.github.
type SignInGitHub struct {
	ClientID     string // empty for none
	ClientSecret Secret
	URL          string
}

// Mail is the section auth.mail.
type Mail struct {
	URL      string // empty for no mail
	From     string
	Password Secret
	CAFile   string // an absolute path
}

// Tools is the section tools.
type Tools struct {
	Prefix string
}

// Sandbox is the section sandbox. Sizes are in bytes.
type Sandbox struct {
	Runtime     string // gvisor or none
	Rootfs      string // an absolute path; empty means the host's /usr
	Platform    string // systrap, kvm or ptrace
	Max         int
	Spare       int
	TotalMemory int64
	Memory      int64
	Processes   int
	CPUs        float64
	Disk        int64
	IdleStop    time.Duration
	WallTime    time.Duration
	DetachAfter time.Duration
}

// Space is the section space. Sizes are in bytes.
type Space struct {
	MaxFile int64
	MaxSize int64
	// ScreenSecrets refuses files with texts that look like keys, in spaces with a remote. In
	// other spaces it only warns.
	ScreenSecrets bool
}

// MaxChange returns the maximum size of a change in one commit. A change is in memory during
// the commit, so the limit does not grow with the space. But the largest file must fit.
func (s Space) MaxChange() int64 { return min(max(s.MaxFile, 100*mib), s.MaxSize) }

// MaxHistory returns the maximum size of a space with its whole history, packed. It
// suffices to write every file of a full space four times.
func (s Space) MaxHistory() int64 { return max(4*s.MaxSize, 4*gib) }

// Remotes is the section remotes.
type Remotes struct {
	PollEvery     time.Duration
	RetryMax      time.Duration
	GitMemory     int64    // bytes
	AllowNetworks []string // network prefixes
	AllowPorts    []string
	CAFile        string // an absolute path; empty means only the system's authorities
	SSHKey        string // an absolute path; empty: ssh is refused
	SSHKnownHosts string // an absolute path
}

// Library is the section library.
type Library struct {
	// AllowSources lists hosts, and repositories as host/path, from which everyone can add sources.
	AllowSources []string
}

// Snapshot is the section snapshot.
type Snapshot struct {
	Repo       string // owner/name at auth.github.url, or a URL; empty for none
	Branch     string
	Token      Secret
	Restricted bool // sources with named readers are pushed to Repo too
}

// Search is the section search.
type Search struct {
	Wait time.Duration
	// ModelsWait is the maximum time that one search waits for all of its models.
	ModelsWait time.Duration

	Embeddings Embeddings
	Rerank     Model
	Expand     Model
}

// Model is a model at a URL: the sections search.rerank and search.expand.
type Model struct {
	URL  string // empty for none
	Name string
	Key  Secret
}

// Embeddings is the section search.embeddings. Without a URL, Name is the absolute path of
// the directory of an ONNX model.
type Embeddings struct {
	Model
	Dimensions     int // 0 means the model's own
	QueryPrefix    string
	DocumentPrefix string
	MaxChars       int // how many characters of a passage are embedded
}

// Secret is a secret, or "file:" and the path of a file that contains it.
type Secret string

// inFile is the prefix of a Secret that names a file.
const inFile = "file:"

// maxSecret is the maximum size of a secret in a file, in bytes.
const maxSecret = 4096

// Read returns the secret. key is the secret's configuration key, for errors.
func (s Secret) Read(key string) (string, error) {
	path, ok := strings.CutPrefix(string(s), inFile)
	if !ok {
		return string(s), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "%s: %s cannot be read: %s.", key, path, reason(err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "%s: %s cannot be read: %s.", key, path, reason(err))
	}
	text := strings.TrimSpace(string(b))
	if text == "" || len(b) > maxSecret || strings.ContainsAny(text, "\r\n\x00") {
		return "", fault.New(fault.Invalid, "%s: %s does not contain a valid secret (one line of at most 4096 bytes).", key, path)
	}
	return text, nil
}

// DatabaseURL returns database.url. If that is not set, it returns the URL of a SQLite file in
// the data directory.
func (c *Config) DatabaseURL() string {
	if c.Database.URL != "" {
		return c.Database.URL
	}
	return "sqlite:" + filepath.Join(c.DataDir, "satchel.db")
}
