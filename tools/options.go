package tools

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"

	"satchel/internal/service"
	"satchel/internal/space"
)

// Options configures a Registry.
type Options struct {
	Workspace Workspace // required
	// Library holds the sources that others share with users. It may be nil.
	Library Library
	// Service performs the operations. It is required.
	Service *service.Service
	// Trouble returns full sentences about the problems of a space with its remote, for the
	// instructions tool, or "" if there are none. It must be fast. It may be nil.
	Trouble func(id space.SpaceID) string
	// Prefix is the prefix of every tool name: at most 32 characters of [a-zA-Z0-9_-].
	Prefix string
	// PublicURL returns the server's public base URL, without a path.
	PublicURL func() string // required
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Limits limit the answers. A zero field means its default.
	Limits Limits
	// Logger gets the errors that callers do not see. If it is nil, nothing is logged.
	Logger *slog.Logger
}

// Limits limit calls and their answers. present.EstimateTokens counts the tokens.
type Limits struct {
	ArgumentBytes     int   // of one call's arguments; default 1 MiB
	CommandBytes      int   // of a bash command; default 100,000
	Paths             int   // of one read; default 50
	ReadTokens        int   // of a read that names no max_tokens; default 10,000
	MaxReadTokens     int   // the most that a read or a fetch gives; default 20,000
	InstructionTokens int   // of the whole answer of instructions; default 5,000
	FileBytes         int64 // of a file that is read; a larger one is refused; default 32 MiB
	HeadingBytes      int   // at the start of a file, searched for headings; default 1 MiB
	BytesAtOnce       int64 // of files that all calls read at a time; further calls wait; default 64 MiB
	ImageBytes        int64 // of all images in one answer; default 3.5 MiB (5 MB in base64)
	ListEntries       int   // of one directory or glob; default 500
	Documents         int   // in the list of resources, and in that of skills; default 500
	SkillFiles        int   // of one skill; default 512 (SEP-2640)
	SkillBytes        int64 // of one skill; default 16 MiB (SEP-2640)
	CacheEntries      int   // parsed front matters kept in memory; default 8,192
}

func (l *Limits) setDefaults() {
	def(&l.ArgumentBytes, 1<<20)
	def(&l.CommandBytes, 100_000)
	def(&l.Paths, 50)
	def(&l.ReadTokens, 10_000)
	def(&l.MaxReadTokens, 20_000)
	def(&l.InstructionTokens, 5_000)
	def(&l.FileBytes, 32<<20)
	def(&l.HeadingBytes, 1<<20)
	def(&l.BytesAtOnce, 64<<20)
	def(&l.ImageBytes, 7<<19)
	def(&l.ListEntries, 500)
	def(&l.Documents, 500)
	def(&l.SkillFiles, 512)
	def(&l.SkillBytes, 16<<20)
	def(&l.CacheEntries, 8_192)
	// A default above the maximum would apply to calls without max_tokens.
	l.ReadTokens = min(l.ReadTokens, l.MaxReadTokens)
}

func def[T int | int64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Registry holds the tools of one server. It is safe for concurrent use.
type Registry struct {
	o     Options
	tools []tool // in the order in which they are listed
	// cache keeps front matter by blob. A blob never changes, so an entry is never stale. The
	// cache needs no check of access: a caller that knows a blob's id may read the blob.
	cache *lru.Cache[space.BlobID, docHead]
	bytes *semaphore.Weighted // limits the file bytes that calls read at a time; see BytesAtOnce
}

// plainName reports whether s has at most max characters, all of which every client accepts
// in the name of a tool or a prompt.
func plainName(s string, max int) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return len(s) <= max && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(allowed, r) })
}

const maxPrefix = 32

// New returns a Registry. The error says which option is invalid.
func New(o Options) (*Registry, error) {
	switch {
	case o.Service == nil || o.Workspace == nil || o.PublicURL == nil:
		return nil, errors.New("tools: Service, Workspace and PublicURL are required")
	case !plainName(o.Prefix, maxPrefix):
		// A client that does not accept one name drops the whole list, so refuse the prefix
		// before any client sees it.
		return nil, fmt.Errorf("tools.prefix %q: at most 32 letters, digits, _ and - are allowed", o.Prefix)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits.setDefaults()
	cache, _ := lru.New[space.BlobID, docHead](o.Limits.CacheEntries)
	s := &Registry{
		o: o, cache: cache, bytes: semaphore.NewWeighted(o.Limits.BytesAtOnce),
	}
	s.tools = s.all()
	return s, nil
}
