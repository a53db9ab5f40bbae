package remotes

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/seal"
	"satchel/internal/space"
)

// Backoff configures when a failed sync is retried.
type Backoff struct {
	// Min and Max limit the delays after temporary problems. The n-th delay is a random duration
	// up to Min × 2ⁿ⁻¹, at most Max.
	Min, Max time.Duration
	// Slow is the delay after a problem that only a person can solve.
	Slow time.Duration
	// Longest is the longest Retry-After of a remote that is honored.
	Longest time.Duration
}

// Metrics are called when something happens. Nil functions are not called; all must be
// quick and safe for concurrent use.
type Metrics struct {
	// Step is called after each step of a sync: "check", "fetch", "merge" or "push". result is
	// "ok" or the Problem.
	Step func(step, result string, d time.Duration)
	// Synced is called when a sync has ended. result is as in Step.
	Synced func(result string, d time.Duration)
}

// Defaults of Options.
const (
	DefaultBackoffMin     = time.Second
	DefaultBackoffMax     = 10 * time.Minute
	DefaultBackoffSlow    = time.Hour
	DefaultBackoffLongest = 24 * time.Hour
	DefaultCheckEvery     = 5 * time.Second
	DefaultPollEvery      = time.Minute
	DefaultRecent         = 10 * time.Minute
	DefaultWorkers        = 4
	DefaultLongAfter      = 30 * time.Second
	DefaultRounds         = 5
	DefaultNotices        = 20
	DefaultNoticeAge      = 14 * 24 * time.Hour
	DefaultQuiet          = 2 * time.Minute
)

// Options configure a Manager. DB, Git, Transport and Seal are required; the rest has defaults.
type Options struct {
	DB        *database.DB // the database, to which Migrations were applied
	Git       Git
	Transport Transport
	Seal      *seal.Box
	// Credentials returns tokens for remotes of the kind GitHub; nil disables that kind.
	Credentials space.Credentials
	// SSH enables remotes of the kind SSH.
	SSH *transport.SSH
	// CAFile is a file with further certificate authorities, for private servers.
	CAFile string
	// Meta returns the author and tool of merge commits. The default is Satchel's own name
	// and the tool "sync".
	Meta func(space.Remote) space.Meta

	Backoff Backoff
	// CheckEvery is the shortest time between two checks that Manager.Used starts.
	CheckEvery time.Duration
	// PollEvery is the time between checks of the remote of a space that was used within
	// Recent. If it is negative, there are no such checks.
	PollEvery time.Duration
	Recent    time.Duration
	// Workers is how many syncs run at once, except long ones. At most half of them (at
	// least one) are for remotes whose last sync failed.
	Workers int
	// LongAfter is the duration from which a sync counts as long. A long sync gives its place
	// to another sync. At most Workers long syncs do so at the same time.
	LongAfter time.Duration
	// Rounds is how many times one sync fetches, merges and pushes at most. A sync repeats these
	// steps if the remote moved before the push.
	Rounds int
	// Notices and NoticeAge limit the count and the age of a space's notices.
	Notices   int
	NoticeAge time.Duration
	// Quiet is how long a temporary problem must last before Trouble reports it.
	Quiet time.Duration

	Metrics Metrics
	// Logger receives failed syncs and the decisions of merges; nil discards them.
	Logger *slog.Logger
	// Random returns a number in [0,1) that spreads delays; nil means math/rand/v2.
	Random func() float64
}

func (o Options) withDefaults() Options {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	count := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Backoff.Min, DefaultBackoffMin)
	def(&o.Backoff.Max, DefaultBackoffMax)
	def(&o.Backoff.Slow, DefaultBackoffSlow)
	def(&o.Backoff.Longest, DefaultBackoffLongest)
	def(&o.CheckEvery, DefaultCheckEvery)
	def(&o.PollEvery, DefaultPollEvery)
	def(&o.Recent, DefaultRecent)
	def(&o.NoticeAge, DefaultNoticeAge)
	def(&o.Quiet, DefaultQuiet)
	def(&o.LongAfter, DefaultLongAfter)
	count(&o.Workers, DefaultWorkers)
	count(&o.Rounds, DefaultRounds)
	count(&o.Notices, DefaultNotices)
	if o.Meta == nil {
		o.Meta = func(space.Remote) space.Meta {
			return space.Meta{Author: space.Server(), Tool: "sync"}
		}
	}
	if o.Metrics.Step == nil {
		o.Metrics.Step = func(string, string, time.Duration) {}
	}
	if o.Metrics.Synced == nil {
		o.Metrics.Synced = func(string, time.Duration) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}
