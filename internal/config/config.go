package config

import (
	"path/filepath"
	"time"
)

// Config is what the server and the commands work with. Every field has the
// unit that its comment names; keys.go documents them for people.
type Config struct {
	// File is the file that was read; empty where there was none.
	File string

	DataDir  string
	Server   Server
	Database Database
	Log      Log
	Auth     Auth
	Web      Web
	API      API
	GitHub   GitHub
	Library  Library
	Tools    Tools
	Sandbox  Sandbox
	Space    Space
	Remotes  Remotes
	Held     Held
	Search   Search
}

// Server is the section server.
type Server struct {
	Listen         string
	PublicURL      string // without a trailing slash; empty: none
	Metrics        string // empty: off
	AllowedHosts   []string
	AllowedOrigins []string
	MaxBody        int64   // bytes
	Rate           float64 // requests per second and user
	Burst          int
	MaxConcurrent  int // per user
	ShutdownGrace  time.Duration
	BodyTimeout    time.Duration

	Domain         string // empty: no TLS of our own
	HTTPSListen    string
	HTTPListen     string // empty: none
	ACMEURL        string
	ACMEEmail      string
	ACMECAFile     string   // absolute
	TrustedProxies []string // prefixes
}

// Database is the section database.
type Database struct {
	URL string // empty: SQLite in the data directory; see Config.DatabaseURL
}

// Log is the section log.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Tools is the section tools.
type Tools struct {
	Prefix  string
	ChatGPT string // auto, always or never
}

// Sandbox is the section sandbox.
type Sandbox struct {
	Runtime     string // gvisor or none
	Rootfs      string // absolute; empty: the host's /usr
	Platform    string // systrap, kvm or ptrace
	Max         int
	TotalMemory int64 // bytes, of all sandboxes
	// FreeMemory is what the machine keeps when a sandbox starts, in bytes.
	FreeMemory int64
	// ProcessMemory bounds the address space of one process, in bytes; 0: not.
	ProcessMemory int64
	ReapEvery     time.Duration
	AnswerTime    time.Duration
	Memory        int64 // bytes
	Processes     int
	CPUs          float64
	Disk          int64 // bytes
	Inodes        int64
	Tmp           int64 // bytes
	OpenFiles     int
	FileSize      int64 // bytes
	IdleStop      time.Duration
	WallTime      time.Duration
	DetachAfter   time.Duration
	Grace         time.Duration
	OutputChars   int
}

// Space is the section space.
type Space struct {
	MaxFile   int64 // bytes
	MaxChange int64 // bytes
	MaxSize   int64 // bytes
	MaxFiles  int
	// MaxHistory bounds a repository, in bytes.
	MaxHistory int64
	TidyAfter  time.Duration
	RevertTime time.Duration
	// ScreenSecrets refuses to commit what looks like a key, in spaces with a
	// remote.
	ScreenSecrets bool
}

// Remotes is the section remotes.
type Remotes struct {
	Workers       int
	CheckEvery    time.Duration
	PollEvery     time.Duration
	RetryMin      time.Duration
	RetryMax      time.Duration
	RetryRefused  time.Duration
	Timeout       time.Duration
	StallTimeout  time.Duration
	LongAfter     time.Duration
	GitMemory     int64    // bytes
	AllowNetworks []string // prefixes
	AllowPorts    []string
	CAFile        string // absolute; empty: the system's alone
	SSHKey        string // absolute; empty: ssh is refused
	SSHKnownHosts string // absolute
}

// Held is the section held.
type Held struct {
	MaxSize  int64 // bytes, per person
	MaxFiles int
	MaxFile  int64 // bytes
}

// Search is the section search.
type Search struct {
	MaxTokens int
	Limit     int
	Wait      time.Duration
	MaxTime   time.Duration
	CacheSize int64 // bytes, in memory
	// MaxConcurrent is how many searches of one user run at a time, MaxWaiting
	// how many more wait for them.
	MaxConcurrent int
	MaxWaiting    int
	// ModelsWait bounds what one search waits for all of its models.
	ModelsWait time.Duration

	Embeddings Embeddings
	Rerank     Rerank
	Expand     Expand
}

// Embeddings is the section search.embeddings.
type Embeddings struct {
	URL     string // empty: none, or the model in a directory
	Model   string // a name at the URL, or an absolute directory
	Key     string
	KeyFile string // absolute

	Dimensions     int // 0: the model's own
	QueryPrefix    string
	DocumentPrefix string
	Encoding       string // float or base64
	MaxChars       int    // of a passage

	Batch             int // passages
	BatchTokens       int
	Parallel          int
	RequestsPerMinute int // 0: no limit
	TokensPerMinute   int // 0: no limit
	Timeout           time.Duration
	QueryWait         time.Duration
	Weight            float64
	CacheSize         int64 // bytes
}

// Rerank is the section search.rerank.
type Rerank struct {
	URL      string // empty: none
	Model    string
	Key      string
	KeyFile  string // absolute
	Count    int
	MaxChars int
	Wait     time.Duration
	Weight   float64
}

// Expand is the section search.expand.
type Expand struct {
	URL     string // empty: none
	Model   string
	Key     string
	KeyFile string // absolute
	Wait    time.Duration
}

// DatabaseURL returns database.url, or SQLite in the data directory where it is
// not set.
func (c *Config) DatabaseURL() string {
	if c.Database.URL != "" {
		return c.Database.URL
	}
	return "sqlite:" + filepath.Join(c.DataDir, "satchel.db")
}
