package protocol

import (
	"fmt"
	"math"
	"time"

	"satchel/internal/space"
)

// Limits of one message, checked by the reader.
const (
	maxCommand    = 1 << 20  // bytes of a command's text
	maxRequest    = 96 << 20 // bytes of a message to the agent: one applied file and its frame
	maxWirePath   = 8 << 10  // bytes of a path
	maxShort      = 4 << 10  // bytes of an id, a signal, a problem
	entryFields   = 64       // bytes of an entry besides its path, problem and content
	maxEntries    = 1 << 20  // entries of a Batch, an AckRequest or an ApplyRequest
	maxJobs       = 4096     // jobs of a list
	maxJobCommand = 4 << 10  // bytes of a command in a list of jobs
	maxEnv        = 1024     // environment variables
	maxHeadTail   = 16 << 20 // bytes of a stream's beginning, and of its end, in a result
)

// MaxNames limits the bytes of the paths and problems of a batch, without those of its last
// entry.
const MaxNames = 8 << 20

// Request is a message of the host: a *Boot, *ExecRequest, *CancelRequest, *CollectLimits,
// *AckRequest, *ApplyRequest, *JobsRequest, *KillRequest or *ShutdownRequest.
type Request interface {
	encode(*encoder)
	decode(*decoder)
}

// newRequest returns an empty request of a kind, or nil for an unknown kind.
func newRequest(k kind) Request {
	switch k {
	case kindBoot:
		return new(Boot)
	case kindExec:
		return new(ExecRequest)
	case kindCancel:
		return new(CancelRequest)
	case kindCollect:
		return new(CollectLimits)
	case kindAck:
		return new(AckRequest)
	case kindApply:
		return new(ApplyRequest)
	case kindJobs:
		return new(JobsRequest)
	case kindKill:
		return new(KillRequest)
	case kindShutdown:
		return new(ShutdownRequest)
	}
	return nil
}

func (b *Boot) encode(e *encoder) {
	for _, v := range []int64{b.Disk, b.Inodes, b.Tmp, b.Output, int64(b.Processes), int64(b.OpenFiles), b.FileSize} {
		e.int(v)
	}
	e.duration(b.RestAfter)
	e.uint(uint64(len(b.Env)))
	for _, v := range b.Env {
		e.string(v)
	}
}

func (b *Boot) decode(d *decoder) {
	b.Disk, b.Inodes, b.Tmp, b.Output = d.int(), d.int(), d.int(), d.int()
	b.Processes, b.OpenFiles = int(d.int()), int(d.int())
	b.FileSize = d.int()
	b.RestAfter = d.duration()
	for range d.list(maxEnv) {
		b.Env = append(b.Env, d.string(maxCommand))
	}
}

func (r *ExecRequest) encode(e *encoder) {
	e.string(r.Command)
	e.bool(r.ReadOnly)
	e.bool(r.Background)
	e.duration(r.DetachAfter)
	e.duration(r.WallTime)
	e.duration(r.Grace)
	e.uint(uint64(max(r.HeadTail, 0)))
}

func (r *ExecRequest) decode(d *decoder) {
	r.Command = d.string(maxCommand)
	r.ReadOnly, r.Background = d.bool(), d.bool()
	r.DetachAfter, r.WallTime, r.Grace = d.duration(), d.duration(), d.duration()
	r.HeadTail = d.small(maxHeadTail)
}

func (o *Output) encode(e *encoder) {
	e.bytes(o.Head)
	e.bytes(o.Tail)
	e.uint(uint64(o.Dropped))
	e.string(o.Saved)
}

func (o *Output) decode(d *decoder, headTail int) {
	o.Head, o.Tail = d.bytes(headTail), d.bytes(headTail)
	o.Dropped, o.Saved = d.size(), d.string(maxShort)
}

func (r *ExecResult) encode(e *encoder) {
	e.byte(byte(r.End))
	e.uint(uint64(r.ExitCode))
	e.string(r.Signal)
	e.string(r.JobID)
	e.string(r.JobDir)
	r.Stdout.encode(e)
	r.Stderr.encode(e)
	e.duration(r.Duration)
	e.uint(uint64(r.Leftover))
}

func (r *ExecResult) decode(d *decoder, headTail int) {
	r.End = End(d.small(int(Shutdown)))
	r.ExitCode = d.small(255)
	r.Signal, r.JobID, r.JobDir = d.string(maxShort), d.string(maxShort), d.string(maxShort)
	r.Stdout.decode(d, headTail)
	r.Stderr.decode(d, headTail)
	r.Duration = d.duration()
	r.Leftover = d.small(math.MaxInt32)
}

func (j *JobEnd) encode(e *encoder) {
	e.string(j.ID)
	e.uint(uint64(j.ExitCode))
	e.string(j.Signal)
	e.duration(j.Duration)
	e.bool(j.TimedOut)
}

func (j *JobEnd) decode(d *decoder) {
	j.ID, j.ExitCode, j.Signal = d.string(maxShort), d.small(255), d.string(maxShort)
	j.Duration, j.TimedOut = d.duration(), d.bool()
}

func (j *Job) encode(e *encoder) {
	e.string(j.ID)
	e.string(j.Command)
	e.bool(j.Running)
	e.bool(j.ReadOnly)
	e.uint(uint64(j.ExitCode))
	e.time(j.Started)
}

func (j *Job) decode(d *decoder) {
	j.ID, j.Command = d.string(maxShort), d.string(maxJobCommand)
	j.Running, j.ReadOnly = d.bool(), d.bool()
	j.ExitCode, j.Started = d.small(255), d.time()
}

// The flags of an Entry.
const (
	entryDeleted = 1 << iota
	entryOpaque
	entryDir
	entryBusy
	entryFlags = 1<<iota - 1
)

// On the wire, a batch is a list of entries, each after a byte 1. A byte 0, the batch's
// id and its field More follow, so the agent can send a batch while it collects.
const (
	batchEnd   = 0
	batchEntry = 1
)

func (n *Entry) encode(e *encoder) {
	var flags byte
	for i, v := range []bool{n.Deleted, n.Opaque, n.Dir, n.Busy} {
		if v {
			flags |= 1 << i
		}
	}
	e.byte(batchEntry)
	e.byte(flags)
	e.byte(byte(n.Mode))
	e.string(n.Path)
	e.uint(uint64(n.Size))
	e.string(n.Problem)
	e.bytes(n.Content)
}

func (n *Entry) decode(d *decoder, fileSize int) {
	flags := d.byte()
	if flags&^entryFlags != 0 {
		d.fail("entry: unknown flags")
	}
	n.Deleted, n.Opaque = flags&entryDeleted != 0, flags&entryOpaque != 0
	n.Dir, n.Busy = flags&entryDir != 0, flags&entryBusy != 0
	n.Mode = space.Mode(d.small(int(space.Symlink)))
	n.Path = d.string(maxWirePath)
	n.Size = d.size()
	n.Problem = d.string(maxShort)
	n.Content = d.bytes(fileSize)
}

func (b *Batch) decode(d *decoder, l CollectLimits) {
	var total int64
	for d.err == nil {
		switch tag := d.byte(); tag {
		case batchEnd:
			b.ID, b.More = d.uint(), d.bool()
			return
		case batchEntry:
			var n Entry
			n.decode(d, int(max(l.FileSize, maxWirePath)))
			total += int64(len(n.Content))
			if len(b.Entries) == l.Entries || total > l.Total {
				d.fail("batch: over its limits")
				return
			}
			b.Entries = append(b.Entries, n)
		default:
			d.fail(fmt.Sprintf("batch: entry %d of kind %#x", len(b.Entries), tag))
		}
	}
}

func (l *CollectLimits) encode(e *encoder) {
	e.uint(uint64(l.Entries))
	e.int(l.FileSize)
	e.int(l.Total)
	e.uint(l.After)
}

func (l *CollectLimits) decode(d *decoder) {
	l.Entries, l.FileSize, l.Total = d.small(maxEntries), d.int(), d.int()
	l.After = d.uint()
}

// CancelRequest ends the command of the ExecRequest with the same id.
type CancelRequest struct{}

func (*CancelRequest) encode(*encoder) {}
func (*CancelRequest) decode(*decoder) {}

// AckRequest acknowledges a batch, except for its entries with the paths in Except.
type AckRequest struct {
	Batch  uint64
	Except []string
}

func (a *AckRequest) encode(e *encoder) {
	e.uint(a.Batch)
	e.uint(uint64(len(a.Except)))
	for _, p := range a.Except {
		e.string(p)
	}
}

func (a *AckRequest) decode(d *decoder) {
	a.Batch = d.uint()
	for range d.list(maxEntries) {
		a.Except = append(a.Except, d.string(maxWirePath))
	}
}

// ApplyRequest writes the entries into the space, in their order.
type ApplyRequest struct{ Entries []ApplyEntry }

func (a *ApplyRequest) encode(e *encoder) {
	e.uint(uint64(len(a.Entries)))
	for i := range a.Entries {
		n := &a.Entries[i]
		e.string(n.Path)
		e.bool(n.Delete)
		e.byte(byte(n.Mode))
		e.bool(n.Force)
		e.bool(n.Own)
		e.bytes(n.Content)
	}
}

func (a *ApplyRequest) decode(d *decoder) {
	for range d.list(maxEntries) {
		var n ApplyEntry
		n.Path, n.Delete = d.string(maxWirePath), d.bool()
		n.Mode, n.Force, n.Own = space.Mode(d.small(int(space.Symlink))), d.bool(), d.bool()
		n.Content = d.bytes(maxRequest)
		a.Entries = append(a.Entries, n)
	}
}

func encodeApplied(e *encoder, results []ApplyResult) {
	e.uint(uint64(len(results)))
	for _, r := range results {
		e.string(r.Path)
		e.bool(r.Dirty)
		e.string(r.Problem)
	}
}

func decodeApplied(d *decoder) []ApplyResult {
	var results []ApplyResult
	for range d.list(maxEntries) {
		results = append(results, ApplyResult{Path: d.string(maxWirePath), Dirty: d.bool(), Problem: d.string(maxShort)})
	}
	return results
}

// JobsRequest lists the jobs.
type JobsRequest struct{}

func (*JobsRequest) encode(*encoder) {}
func (*JobsRequest) decode(*decoder) {}

// KillRequest sends a signal to every process of a job.
type KillRequest struct{ JobID, Signal string }

func (k *KillRequest) encode(e *encoder) { e.string(k.JobID); e.string(k.Signal) }
func (k *KillRequest) decode(d *decoder) { k.JobID, k.Signal = d.string(maxShort), d.string(maxShort) }

// ShutdownRequest ends every command and job: SIGTERM, then SIGKILL after Grace.
type ShutdownRequest struct{ Grace time.Duration }

func (s *ShutdownRequest) encode(e *encoder) { e.duration(s.Grace) }
func (s *ShutdownRequest) decode(d *decoder) { s.Grace = d.duration() }

// failure is the reason why a request failed.
type failure uint8

const (
	failed       failure = iota // the text says why, for logs
	failedNoJob                 // no such job
	failedSignal                // no such signal
	failedBusy                  // the agent is being shut down
	failures
)
