package sandbox

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"satchel/internal/procmem"
	"satchel/internal/space"
	"satchel/sandbox/pending"
	"satchel/sandbox/protocol"
)

// Agent is the host's side of the agent in one sandbox. *protocol.Client implements it.
type Agent interface {
	Exec(ctx context.Context, r protocol.ExecRequest, onOutput func(protocol.Stream, []byte)) (protocol.ExecResult, error)
	Collect(ctx context.Context, l protocol.CollectLimits) (protocol.Batch, error)
	Ack(ctx context.Context, batch uint64, except []string) error
	Apply(ctx context.Context, entries []protocol.ApplyEntry) ([]protocol.ApplyResult, error)
	Jobs(ctx context.Context) ([]protocol.Job, error)
	Kill(ctx context.Context, jobID string, sig string) error
	Shutdown(ctx context.Context, grace time.Duration) error
	OnJobEnd(func(protocol.JobEnd))
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Pending keeps files that could not be committed, beyond the end of a sandbox.
// *pending.Store implements it.
type Pending interface {
	Load(ctx context.Context, u space.UserID, id space.SpaceID) ([]pending.File, error)
	Save(ctx context.Context, u space.UserID, id space.SpaceID, put []pending.File, drop []string) ([]pending.NotStored, error)
	Drop(ctx context.Context, u space.UserID, id space.SpaceID, path string) (int, error)
}

// Options configure a Pool. Runtime, Checkouts and Committer are required; every
// other zero field takes the default that its comment names.
type Options struct {
	Runtime   space.Runtime
	Checkouts space.Checkouts
	Committer space.Committer
	// Library returns the directory that a user's sandboxes mount as /library, and a
	// function to call when a sandbox is gone; nil means the library of Checkouts.
	Library func(ctx context.Context, user space.UserID) (dir string, release func(), err error)
	// Pending stores files that cannot be committed, for the next sandbox; without it they
	// are lost with their sandbox.
	Pending Pending
	// Connect connects to the agent of a sandbox that was just started; default
	// protocol.Connect.
	Connect func(ctx context.Context, conn io.ReadWriteCloser, b protocol.Boot) (Agent, error)
	// Env is added to the environment of every command; default DefaultEnv.
	Env []string

	// Limits bound each sandbox; default DefaultLimits. If Limits is set, a zero field
	// means no limit.
	Limits space.Limits

	MaxSandboxes int   // sandboxes that exist or start at the same time; default 32
	MaxMemory    int64 // bytes that all sandboxes together may use before idle ones are stopped; default 4 GiB
	// FreeMemory is how many bytes of memory must stay available, in the machine or the
	// server's cgroup, when a sandbox starts. Idle sandboxes are stopped to free memory. Default
	// 64 MiB; negative means no check.
	FreeMemory  int64
	StartMemory int64 // bytes that a sandbox counts as until it was measured; default 32 MiB
	MaxCommands int   // commands that run at once in one sandbox; others wait; default 32
	MaxQueue    int   // starts of sandboxes that wait for room; default 256

	QueueTime   time.Duration // how long a command may wait for a sandbox; default 40 s
	StartTime   time.Duration // how long a start may take, with its checkout; default 2 min
	IdleStop    time.Duration // how long a sandbox stays without a command or job; default 10 min
	DetachAfter time.Duration // when a running command becomes a job; default 45 s, negative never
	WallTime    time.Duration // limit of a command or job; default Limits.WallTime, else 10 min
	Grace       time.Duration // time between SIGTERM and SIGKILL; default 5 s
	CollectTime time.Duration // how long collecting and committing may take; default 2 min
	// ViewTime is how long a command waits until git inside the sandbox shows the newest
	// commit; the command then starts anyway. Default 2 s.
	ViewTime   time.Duration
	SweepEvery time.Duration // time between checks for idle sandboxes and of memory; default 2 s
	// AnswerTime is how long the agent of a used sandbox may take to answer a heartbeat
	// before the sandbox is ended as hung; default 20 s.
	AnswerTime time.Duration
	AgentRest  time.Duration // how long after its last request an agent frees memory; default 2 s
	ReapEvery  time.Duration // time between searches for orphans; default 1 min, negative never

	OutputChars int   // characters of a command's output that the caller gets; default 30,000
	SavedOutput int64 // bytes of each stream that stay in the sandbox; default 16 MiB

	MaxFile        int64 // bytes of one changed file; default 10 MiB
	MaxChange      int64 // bytes of one change set; a larger change becomes several; default 100 MiB
	MaxChangeFiles int   // entries of one change set; default 50,000
	// MaxApplyFiles and MaxApplyBytes limit the update of a running sandbox to head. If more
	// changed, a new sandbox replaces it, or the update waits until no other command or job uses
	// the sandbox. Default 2,000 files and 64 MiB.
	MaxApplyFiles int
	MaxApplyBytes int64
	// MaxPendingFile is the largest pending file, in bytes. Default 32 MiB, but at most a sixteenth
	// of a sandbox's memory. It is never more than MaxChange or less than MaxFile.
	MaxPendingFile int64

	// Available reports how much memory the machine can still give, in bytes; default
	// procmem.Available. An error means that the amount is unknown.
	Available func() (int64, error)

	Logger  *slog.Logger // default slog.Default()
	Metrics Metrics
}

// Metrics are called when something happens; each may be nil. They are called from
// many goroutines, some under the pool's lock: they must not block or call the pool.
type Metrics struct {
	// Started is called after each start of a sandbox.
	Started func(took time.Duration, err error)
	// Stopped is called after each end of a sandbox.
	Stopped func(StopReason)
	// Waited is called with the time that a start waited for room.
	Waited func(time.Duration)
	// Command is called after each command.
	Command func(took time.Duration, end protocol.End)
	// Collected is called after each collection that found changes.
	Collected func(took time.Duration, files int, err error)
	// Reaped is called after each Reap with the number of removed orphans.
	Reaped func(sandboxes int, err error)
	// Pending is called when pending files are stored or dropped.
	Pending func(took time.Duration, files int, err error)
}

// StopReason is why a sandbox ended.
type StopReason string

// The reasons.
const (
	StopIdle    StopReason = "idle"    // no command for IdleStop
	StopEvicted StopReason = "evicted" // others needed the room or the memory
	StopAsked   StopReason = "asked"   // StopUser, StopMember, EndSpace, or an overdue job
	StopHistory StopReason = "history" // StopSpace: a person changes the space's history
	StopClosed  StopReason = "closed"  // the server ends
	StopRefresh StopReason = "refresh" // too much changed in the space to update the sandbox
	StopMemory  StopReason = "memory"  // out of memory
	StopFull    StopReason = "full"    // its committed changes filled it
	StopHung    StopReason = "hung"    // it did not answer heartbeats
	StopDied    StopReason = "died"    // it ended unexpectedly
)

// DefaultLimits returns the default limits of a sandbox.
func DefaultLimits() space.Limits {
	return WithDisk(space.Limits{
		Memory:    512 << 20,
		Processes: 256,
		CPUs:      2,
		OpenFiles: 1024,
		WallTime:  10 * time.Minute,
	}, 256<<20)
}

// WithDisk returns l with room for disk bytes of changed files. One file may have half of disk.
// /tmp has a quarter of disk in addition. For each 256 MiB of disk, there may be 100,000 files.
func WithDisk(l space.Limits, disk int64) space.Limits {
	l.Disk, l.FileSize, l.Tmp = disk, disk/2, disk/4
	l.Inodes = disk / (1 << 20) * 100_000 / 256
	return l
}

// DefaultEnv returns the default additions to the environment that the agent gives to every
// command (PATH, HOME, LANG, TERM and the user). It contains nothing from the server's
// environment.
func DefaultEnv() []string {
	return []string{
		"PAGER=cat",
		"GIT_PAGER=cat",
	}
}

func (o Options) withDefaults() (Options, error) {
	if o.Runtime == nil || o.Checkouts == nil || o.Committer == nil {
		return o, errors.New("sandbox: Options needs a Runtime, Checkouts and a Committer")
	}
	if o.Connect == nil {
		o.Connect = connect
	}
	if o.Limits == (space.Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Available == nil {
		o.Available = procmem.Available
	}
	if o.Env == nil {
		o.Env = DefaultEnv()
	}
	o.Env = slices.Clone(o.Env)
	def(&o.MaxSandboxes, 32)
	def(&o.MaxMemory, 4<<30)
	def(&o.FreeMemory, 64<<20)
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
	def(&o.ViewTime, 2*time.Second)
	def(&o.SweepEvery, 2*time.Second)
	def(&o.AnswerTime, 20*time.Second)
	def(&o.AgentRest, 2*time.Second)
	def(&o.ReapEvery, time.Minute)
	def(&o.OutputChars, 30_000)
	def(&o.SavedOutput, 16<<20)
	def(&o.MaxFile, 10<<20)
	def(&o.MaxChange, 100<<20)
	def(&o.MaxChangeFiles, 50_000)
	def(&o.MaxApplyFiles, 2000)
	def(&o.MaxApplyBytes, 64<<20)
	if o.MaxPendingFile == 0 {
		o.MaxPendingFile = 32 << 20
		if m := o.Limits.Memory / 16; m > 0 {
			o.MaxPendingFile = min(o.MaxPendingFile, m)
		}
	}
	o.MaxPendingFile = max(min(o.MaxPendingFile, o.MaxChange), o.MaxFile)
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

func (o *Options) boot() protocol.Boot {
	return protocol.Boot{
		Disk: o.Limits.Disk, Inodes: o.Limits.Inodes, Tmp: o.Limits.Tmp,
		Output: o.SavedOutput, Processes: o.Limits.Processes, OpenFiles: o.Limits.OpenFiles,
		FileSize: o.Limits.FileSize, Env: o.Env, RestAfter: o.AgentRest,
	}
}

func (m Metrics) started(d time.Duration, err error) {
	if m.Started != nil {
		m.Started(d, err)
	}
}

func (m Metrics) stopped(why StopReason) {
	if m.Stopped != nil {
		m.Stopped(why)
	}
}

func (m Metrics) waited(d time.Duration) {
	if m.Waited != nil {
		m.Waited(d)
	}
}

func (m Metrics) command(d time.Duration, end protocol.End) {
	if m.Command != nil {
		m.Command(d, end)
	}
}

func (m Metrics) collected(d time.Duration, files int, err error) {
	if m.Collected != nil {
		m.Collected(d, files, err)
	}
}

func (m Metrics) reaped(n int, err error) {
	if m.Reaped != nil {
		m.Reaped(n, err)
	}
}

func (m Metrics) pending(d time.Duration, files int, err error) {
	if m.Pending != nil {
		m.Pending(d, files, err)
	}
}

func connect(ctx context.Context, conn io.ReadWriteCloser, b protocol.Boot) (Agent, error) {
	c, err := protocol.Connect(ctx, conn, b)
	if err != nil {
		return nil, err
	}
	return c, nil
}
