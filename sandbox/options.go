package sandbox

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/agent"
)

// Agent is the host's side of the agent in one sandbox; *agent.Client is one.
type Agent interface {
	Exec(ctx context.Context, r agent.ExecRequest, onOutput func(agent.Stream, []byte)) (agent.ExecResult, error)
	Collect(ctx context.Context, l agent.CollectLimits) (agent.Batch, error)
	Ack(ctx context.Context, batch uint64, except []string) error
	Apply(ctx context.Context, entries []agent.ApplyEntry) ([]agent.ApplyResult, error)
	Jobs(ctx context.Context) ([]agent.Job, error)
	Kill(ctx context.Context, jobID string, sig string) error
	Shutdown(ctx context.Context, grace time.Duration) error
	OnJobEnd(func(agent.JobEnd))
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Options configure a Pool. Runtime, Seeder and Committer are required; every
// other zero field takes the default that its comment names.
type Options struct {
	Runtime   space.Runtime
	Seeder    space.Seeder
	Committer space.Committer
	// Connect speaks to the agent of a sandbox that was just started; default
	// agent.Connect.
	Connect func(ctx context.Context, conn io.ReadWriteCloser, b agent.Boot) (Agent, error)
	// Env is the environment of every command; default DefaultEnv.
	Env []string

	// Limits bound each sandbox; default DefaultLimits. A zero field of limits
	// that are given means no limit.
	Limits space.Limits
	// ProcessMemory bounds the address space of one process, in bytes; default
	// none, since runtimes such as Node reserve far more than they use.
	ProcessMemory int64

	MaxSandboxes int   // started at once; default 32
	MaxMemory    int64 // bytes that all sandboxes together may use before idle ones are stopped; default 4 GiB
	StartMemory  int64 // bytes that a sandbox counts as until it was measured; default 32 MiB
	MaxCommands  int   // running at once in one sandbox; more wait; default 32
	MaxQueue     int   // users and spaces waiting for a sandbox; default 256

	QueueTime   time.Duration // waiting for a sandbox, at most; default 40 s
	StartTime   time.Duration // starting one, with its checkout, at most; default 2 min
	IdleStop    time.Duration // after the last command or job; default 10 min
	DetachAfter time.Duration // when a running command becomes a job; default 45 s, negative never
	WallTime    time.Duration // of a command or job; default Limits.WallTime, else 10 min
	Grace       time.Duration // between SIGTERM and SIGKILL; default 5 s
	CollectTime time.Duration // collecting and committing, at most; default 2 min
	SweepEvery  time.Duration // between looks at idleness and memory; default 2 s

	OutputChars int   // characters of a command's output that the caller gets; default 30,000
	SavedOutput int64 // bytes of each stream that stay in the sandbox; default 16 MiB

	MaxFile        int64 // bytes of one changed file; default 10 MiB
	MaxChange      int64 // bytes of one change set; a larger change becomes several; default 100 MiB
	MaxChangeFiles int   // entries of one change set; default 50,000
	MaxApplyFiles  int   // files brought into a running sandbox at once; more restart it; default 2,000
	MaxApplyBytes  int64 // bytes brought in at once; default 64 MiB

	Logger  *slog.Logger // default slog.Default()
	Metrics Metrics
}

// Metrics are told what happens. Any of them may be nil. They are called from
// many goroutines, some of them under the pool's lock: they must not block and
// not call the pool.
type Metrics struct {
	// Started is told each start of a sandbox, how long it took and how it went.
	Started func(took time.Duration, err error)
	// Stopped is told each end of a sandbox.
	Stopped func(StopReason)
	// Waited is told how long a start waited for room.
	Waited func(time.Duration)
	// Command is told each command that ran.
	Command func(took time.Duration, end agent.End)
	// Collected is told each collection that found changes.
	Collected func(took time.Duration, files int, err error)
}

// StopReason says why a sandbox ended.
type StopReason string

// The reasons.
const (
	StopIdle    StopReason = "idle"    // no command for IdleStop
	StopEvicted StopReason = "evicted" // others needed the room
	StopAsked   StopReason = "asked"   // StopUser, StopSpace
	StopClosed  StopReason = "closed"  // the server ends
	StopRefresh StopReason = "refresh" // too much changed in the space to bring it in
	StopMemory  StopReason = "memory"  // out of memory
	StopDied    StopReason = "died"    // it ended by itself
)

// DefaultLimits returns the limits of a sandbox where none are given.
func DefaultLimits() space.Limits {
	return space.Limits{
		Memory:    512 << 20,
		Processes: 256,
		CPUs:      2,
		Disk:      256 << 20,
		Inodes:    100_000,
		Tmp:       64 << 20,
		OpenFiles: 1024,
		FileSize:  128 << 20,
		WallTime:  10 * time.Minute,
	}
}

// DefaultEnv returns the environment of commands where none is given. It holds
// nothing of the server's.
func DefaultEnv() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/tmp",
		"LANG=C.UTF-8",
		"TERM=dumb",
		"PAGER=cat",
		"GIT_PAGER=cat",
	}
}

func (o Options) withDefaults() (Options, error) {
	if o.Runtime == nil || o.Seeder == nil || o.Committer == nil {
		return o, errors.New("sandbox: Options needs a Runtime, a Seeder and a Committer")
	}
	if o.Connect == nil {
		o.Connect = connect
	}
	if o.Limits == (space.Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Env == nil {
		o.Env = DefaultEnv()
	}
	o.Env = slices.Clone(o.Env)
	def(&o.MaxSandboxes, 32)
	def(&o.MaxMemory, 4<<30)
	def(&o.StartMemory, 32<<20)
	def(&o.MaxCommands, 32)
	def(&o.MaxQueue, 256)
	def(&o.QueueTime, 40*time.Second)
	def(&o.StartTime, 2*time.Minute)
	def(&o.IdleStop, 10*time.Minute)
	def(&o.DetachAfter, 45*time.Second)
	def(&o.WallTime, o.Limits.WallTime)
	def(&o.WallTime, 10*time.Minute)
	o.Limits.WallTime = o.WallTime
	def(&o.Grace, 5*time.Second)
	def(&o.CollectTime, 2*time.Minute)
	def(&o.SweepEvery, 2*time.Second)
	def(&o.OutputChars, 30_000)
	def(&o.SavedOutput, 16<<20)
	def(&o.MaxFile, 10<<20)
	def(&o.MaxChange, 100<<20)
	def(&o.MaxChangeFiles, 50_000)
	def(&o.MaxApplyFiles, 2000)
	def(&o.MaxApplyBytes, 64<<20)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func (o *Options) boot() agent.Boot {
	return agent.Boot{
		Disk: o.Limits.Disk, Inodes: o.Limits.Inodes, Tmp: o.Limits.Tmp,
		Output: o.SavedOutput, Processes: o.Limits.Processes, OpenFiles: o.Limits.OpenFiles,
		FileSize: o.Limits.FileSize, DataSize: o.ProcessMemory, Env: o.Env,
	}
}
