// Package upstream fetches the files of synced sources: from git repositories, web sites, feeds and
// other places outside of the server.
//
// A kind of upstream is a type of this package and an entry in Kinds. Open decodes the
// settings of a source and returns its Upstream. The caller asks Check whether the upstream
// has changed, and Fetch streams the files into a Sink.
//
// The content of an upstream comes from strangers. This package limits its size, and never
// executes it or follows instructions in it. Documents that need a parser outside of this
// process go through Env.Convert, which runs in a sandbox.
package upstream

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// Upstream is a place outside of the server that has files. Its exported fields are the
// settings of a source. Their JSON names are the keys of the configuration.
type Upstream interface {
	// Validate checks the settings and fills in their defaults. The error is a
	// fault.Invalid that names the setting (fault.FieldOf).
	Validate() error
	// Check returns the current state of the upstream if that is easy to find out, such as the
	// commit of a branch. An empty state means that only Fetch can find out.
	Check(ctx context.Context, env *Env) (State, error)
	// Fetch gives every file to the sink, and returns the state that it fetched. It stops
	// at the first error of the sink. The error's code says what the sync does. After
	// Unavailable and Limited (with RetryAfter), it tries again. After NotFound, Forbidden,
	// Unauthenticated and Invalid, it waits for a person.
	Fetch(ctx context.Context, env *Env, sink Sink) (State, error)
}

// State identifies a version of an upstream, such as a commit. Equal states have equal files.
type State string

// Kind is a kind of upstream.
type Kind struct {
	// Name is the value of the setting kind.
	Name string
	// Title names the kind for people, such as "Web site".
	Title string
	// New returns an Upstream without settings.
	New func() Upstream
	// Recognize returns the settings for a URL that a person pasted, or nil if the URL is
	// of another kind. It makes no requests. If Recognize is nil, the kind recognizes no URL.
	Recognize func(u *url.URL) Upstream
}

// File describes a file of an upstream.
type File struct {
	// Path is where the source keeps the file. It must be valid for space.ParsePath.
	Path space.Path `json:"path"`
	// Title is the title that the upstream states. It is empty if only the content has a title.
	Title string `json:"title,omitempty"`
	// URL is where people read the original of the file. It identifies the file between syncs.
	URL string `json:"url,omitempty"`
	// Tag shows the next sync whether the content has changed, such as an ETag or a blob's hash.
	Tag string `json:"tag,omitempty"`
	// Changed is the time of the last change in the upstream, if it is known.
	Changed time.Time `json:"changed,omitzero"`
}

// Sink receives the files of a sync. The sync removes the files of the source that the sink does
// not receive.
type Sink interface {
	// Expect sets the number of files that will follow, for progress. It may be called again.
	Expect(files int)
	// Progress sets how many of the expected files are fetched. Kinds that give their files to the
	// sink only at the end call it.
	Progress(files int)
	// Known returns the file that the last complete sync got from a URL.
	Known(url string) (File, bool)
	// Files returns all files of the last complete sync, also those that Known does not
	// return because the sync fetches every file again.
	Files() iter.Seq[File]
	// Keep keeps the content of a file of the last complete sync.
	Keep(ctx context.Context, f File) error
	// Put takes a new or changed file. The error is a fault.TooLarge for a file or a source
	// over its limit, and a fault.Conflict for a second file with the path.
	Put(ctx context.Context, f File, content []byte) error
	// Skip reports a file that the upstream has but that could not be fetched. A file that the last
	// complete sync got from the URL stays as it is.
	Skip(ctx context.Context, url string, r Reason) error
}

// Reason says why a file was skipped.
type Reason string

// The reasons to skip a file.
const (
	NoCaptions  Reason = "no_captions"  // the video has no captions
	Blocked     Reason = "blocked"      // the upstream refuses this server
	RateLimited Reason = "rate_limited" // the upstream asked to try later
	TooLarge    Reason = "too_large"    // over the size limit of a file
	Unreadable  Reason = "unreadable"   // not in a format that can be read
	Missing     Reason = "missing"      // a link leads to a file that does not exist
	Disallowed  Reason = "disallowed"   // the upstream's robots.txt disallows it
	Failed      Reason = "failed"       // the upstream answered with an error
	TooMany     Reason = "too_many"     // over the limit of files in the settings
	LFS         Reason = "lfs"          // the content is in Git LFS, outside of the repository
	BadName     Reason = "bad_name"     // the name of the file cannot be used
	Duplicate   Reason = "duplicate"    // another file has the name
	TooSlow     Reason = "too_slow"     // the conversion takes too long or too much memory
	// There is also a reason for each program that is not installed but that a document needs. It
	// is needs_ with the Debian package of the program, such as needs_pandoc.
	NeedsSandbox Reason = "needs_sandbox" // a document needs a sandbox, and none can start
)

// Env is what upstreams use of the server.
type Env struct {
	// HTTP reaches only addresses that the server's egress rules allow.
	HTTP *http.Client
	// Remotes fetches git repositories, and Git reads the fetched repositories.
	Remotes *transport.Client
	Git     gitcmd.Runner
	// First means that the sink knows no files, so that every file is new.
	First bool
	// Scratch is a directory for this run's temporary files. The caller removes it.
	Scratch string
	// GitHub is the origin of the configured GitHub server, such as https://github.example.com.
	// The operator trusts this server.
	GitHub string
	// Token returns the access token for a repository of a GitHub server, or "" for none. If Token
	// is nil, no repository has a token.
	Token func(ctx context.Context, host, repository string) (string, error)
	// Convert returns the Markdown of a document, such as a PDF. The name's extension is
	// its format. The error is a *Refusal if the document cannot be converted. Convert is nil
	// where no sandbox can run.
	Convert func(ctx context.Context, name string, content []byte) ([]byte, error)
	// YtDlp is the program yt-dlp, or "" where it is not installed.
	YtDlp string
	// Trusted reports whether the operator trusts an address. Only trusted addresses may be on
	// this machine or its network, use http or be a directory. If Trusted is nil, no address is
	// trusted.
	Trusted func(address string) bool
	// DataDir is the server's own directory, which must not be a source.
	DataDir string
	// MaxFileBytes limits a file, and MaxBytes what one sync may fetch.
	MaxFileBytes, MaxBytes int64
	Now                    func() time.Time
	Logger                 *slog.Logger
}
