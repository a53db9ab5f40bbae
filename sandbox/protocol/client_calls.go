package protocol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/internal/fault"
)

// Exec runs a command until it ends or becomes a job. onOutput, which may be nil, is called with
// new output: in order, on one goroutine, and not after Exec has returned. If it is too slow, it
// misses the oldest output, which the result may still have. When ctx ends, the command is ended
// with its process tree, the result says Canceled, and the error is nil. If the agent does not
// answer even then, the connection is closed.
func (c *Client) Exec(ctx context.Context, r ExecRequest, onOutput func(Stream, []byte)) (ExecResult, error) {
	if len(r.Command) > maxCommand {
		return ExecResult{}, fault.New(fault.TooLarge, "The command has %d bytes, and %d are allowed.", len(r.Command), maxCommand)
	}
	if strings.ContainsRune(r.Command, 0) {
		return ExecResult{}, fault.New(fault.Invalid, "The command contains a NUL byte, which bash does not accept.")
	}
	r.HeadTail = min(max(r.HeadTail, 0), maxHeadTail)
	live := newLiveQueue()
	id, cl, err := c.start(ctx, kindExec, &r, 4*r.HeadTail+8*maxShort, live)
	if err != nil {
		return ExecResult{}, err
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		live.drain(onOutput)
	}()
	a := c.awaitExec(ctx, id, cl, r)
	live.close()
	<-drained
	body, err := c.settle(a)
	if err != nil {
		return ExecResult{}, err
	}
	var res ExecResult
	err = c.decode(body, func(d *decoder) { res.decode(d, r.HeadTail) })
	return res, err
}

// awaitExec waits for the reply, and cancels the command when ctx ends. It closes the connection if
// the agent has not answered well after the command's time limit or the cancellation, because the
// agent is then stuck or hostile.
func (c *Client) awaitExec(ctx context.Context, id uint32, cl *call, r ExecRequest) answer {
	var overdue <-chan time.Time
	if r.WallTime > 0 {
		t := time.NewTimer(r.WallTime + r.Grace + answerMargin)
		defer t.Stop()
		overdue = t.C
	}
	select {
	case a := <-cl.answer:
		return a
	case <-overdue:
		c.end(fmt.Errorf("%w: a command was not answered in its time", ErrProtocol))
		return <-cl.answer
	case <-ctx.Done():
	}
	limit, stop := context.WithTimeout(context.WithoutCancel(ctx), r.Grace+answerMargin)
	defer stop()
	if err := c.send(limit, appendFrame(nil, frame{kind: kindCancel, id: id})); err == nil {
		select {
		case a := <-cl.answer:
			return a
		case <-limit.Done():
		}
	}
	c.end(fmt.Errorf("%w: a cancelled command was not answered", ErrProtocol))
	return <-cl.answer
}

// Collect returns the changes in the space that were not acknowledged yet, sorted by path.
// A zero limit means the default.
func (c *Client) Collect(ctx context.Context, l CollectLimits) (Batch, error) {
	l = l.withDefaults()
	limit := l.Total + int64(l.Entries)*entryFields + MaxNames + 2*maxWirePath
	body, err := c.roundTrip(ctx, kindCollect, &l, int(min(limit, 1<<31-1)))
	if err != nil {
		return Batch{}, err
	}
	var b Batch
	if err := c.decode(body, func(d *decoder) { b.decode(d, l) }); err != nil {
		return Batch{}, err
	}
	slices.SortFunc(b.Entries, func(x, y Entry) int { return cmp.Compare(x.Path, y.Path) })
	return b, nil
}

// The defaults of CollectLimits.
const (
	DefaultEntries  = 20_000
	DefaultFileSize = 10 << 20
	DefaultTotal    = 100 << 20
)

func (l CollectLimits) withDefaults() CollectLimits {
	if l.Entries <= 0 {
		l.Entries = DefaultEntries
	}
	if l.FileSize <= 0 {
		l.FileSize = DefaultFileSize
	}
	if l.Total <= 0 {
		l.Total = DefaultTotal
	}
	l.Entries = min(l.Entries, maxEntries)
	l.FileSize = min(l.FileSize, l.Total)
	return l
}

// Ack acknowledges a batch after its commit, so that its entries are not reported again
// until they change, except those with a path in except.
func (c *Client) Ack(ctx context.Context, batch uint64, except []string) error {
	_, err := c.roundTrip(ctx, kindAck, &AckRequest{batch, except}, 0)
	return err
}

// applyPart is the maximum number of bytes of content in one message of Apply, unless a single
// file is larger.
const applyPart = 8 << 20

// Apply writes files of a newer head into the space, in the given order, and returns the result of
// each entry. If a directory replaces a file, the entry that deletes the file must come before the
// entries in the directory. After an error, some files may have been written.
func (c *Client) Apply(ctx context.Context, entries []ApplyEntry) ([]ApplyResult, error) {
	var results []ApplyResult
	for len(entries) > 0 {
		n, size := 0, 0
		for n < len(entries) && n < 10_000 && (n == 0 || size+len(entries[n].Content) <= applyPart) {
			size += len(entries[n].Content)
			n++
		}
		part := entries[:n]
		entries = entries[n:]
		limit := 0
		for _, e := range part {
			limit += len(e.Path) + 512
		}
		body, err := c.roundTrip(ctx, kindApply, &ApplyRequest{part}, limit)
		if err != nil {
			return results, err
		}
		var rs []ApplyResult
		err = c.decode(body, func(d *decoder) {
			rs = decodeApplied(d)
			if !slices.EqualFunc(rs, part, func(r ApplyResult, n ApplyEntry) bool { return r.Path == n.Path }) {
				d.fail("answer: not one result per entry")
			}
		})
		if err != nil {
			return results, err
		}
		results = append(results, rs...)
	}
	return results, nil
}

// Jobs lists the running jobs and those that ended recently, oldest first.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	body, err := c.roundTrip(ctx, kindJobs, &JobsRequest{}, 8<<20)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	err = c.decode(body, func(d *decoder) {
		for range d.list(maxJobs) {
			var j Job
			j.decode(d)
			jobs = append(jobs, j)
		}
	})
	return jobs, err
}

// Kill sends a signal ("SIGTERM", "TERM" or "15") to every process of a job.
// It returns fault.NotFound for a job that does not run, fault.Invalid for an
// unknown signal.
func (c *Client) Kill(ctx context.Context, jobID string, sig string) error {
	_, err := c.roundTrip(ctx, kindKill, &KillRequest{jobID, sig}, 0)
	return err
}

// Shutdown ends every command and job: SIGTERM, then SIGKILL after grace. Exec
// fails from then on; Collect and Ack still work.
func (c *Client) Shutdown(ctx context.Context, grace time.Duration) error {
	_, err := c.roundTrip(ctx, kindShutdown, &ShutdownRequest{grace}, 0)
	return err
}

type liveOutput struct {
	stream Stream
	bytes  []byte
}

// liveQueue holds the output that onOutput has not taken yet. If it is full, it drops the oldest
// output, so that it never blocks the reader.
type liveQueue struct {
	mu     sync.Mutex
	queue  []liveOutput
	closed bool
	wake   chan struct{} // buffers one value
}

func newLiveQueue() *liveQueue { return &liveQueue{wake: make(chan struct{}, 1)} }

func (q *liveQueue) push(o liveOutput) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.queue) == maxLive {
		q.queue = slices.Delete(q.queue, 0, 1)
	}
	q.queue = append(q.queue, o)
	q.signal()
}

// close lets drain end once it has delivered everything. q may be nil.
func (q *liveQueue) close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *liveQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *liveQueue) drain(f func(Stream, []byte)) {
	for {
		q.mu.Lock()
		queue, closed := q.queue, q.closed
		q.queue = nil
		q.mu.Unlock()
		for _, o := range queue {
			if f != nil && len(o.bytes) > 0 {
				f(o.stream, o.bytes)
			}
		}
		if closed {
			return
		}
		<-q.wake
	}
}
