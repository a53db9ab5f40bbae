package protocol

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// Conn is the agent's end of a connection; the host's end is a Client. One goroutine
// calls Next; the other methods may be called from several goroutines. They report no
// error, because Next notices if the host is gone. If the host does not read, replies wait
// and live output is dropped.
type Conn struct {
	requests *requestReader

	mu  sync.Mutex
	out io.Writer
}

// NewConn returns the agent's end of a connection.
func NewConn(in io.Reader, out io.Writer) *Conn {
	return &Conn{requests: newRequestReader(in), out: out}
}

// Next returns the host's next request and the id of its call, which the answer needs. It
// returns io.EOF if the host has closed the connection, and an error that wraps ErrProtocol
// for a malformed request.
func (c *Conn) Next() (id uint32, r Request, err error) {
	k, id, body, err := c.requests.next()
	if err != nil {
		return 0, nil, err
	}
	if r = newRequest(k); r == nil {
		return 0, nil, fmt.Errorf("%w: a request of kind %d", ErrProtocol, k)
	}
	d := &decoder{b: body}
	r.decode(d)
	return id, r, d.done()
}

// Reply reports the success of a Boot, AckRequest, KillRequest or ShutdownRequest.
func (c *Conn) Reply(id uint32) { c.message(kindReply, id, nil) }

// ReplyExec answers an ExecRequest.
func (c *Conn) ReplyExec(id uint32, r ExecResult) {
	var e encoder
	r.encode(&e)
	c.message(kindReply, id, e.b)
}

// ReplyApply answers an ApplyRequest with one result for each of its entries.
func (c *Conn) ReplyApply(id uint32, results []ApplyResult) {
	var e encoder
	encodeApplied(&e, results)
	c.message(kindReply, id, e.b)
}

// ReplyJobs answers a JobsRequest. It shortens long commands.
func (c *Conn) ReplyJobs(id uint32, jobs []Job) {
	var e encoder
	e.uint(uint64(len(jobs)))
	for _, j := range jobs {
		j.Command = j.Command[:min(len(j.Command), maxJobCommand)]
		j.encode(&e)
	}
	c.message(kindReply, id, e.b)
}

// The failures that the host distinguishes from others.
var (
	ErrNoJob    = errors.New("no such job")
	ErrNoSignal = errors.New("no such signal")
	ErrStopping = errors.New("the sandbox is being stopped")
)

// Fail answers any request with an error.
func (c *Conn) Fail(id uint32, err error) {
	code := failed
	switch {
	case errors.Is(err, ErrNoJob):
		code = failedNoJob
	case errors.Is(err, ErrNoSignal):
		code = failedSignal
	case errors.Is(err, ErrStopping):
		code = failedBusy
	}
	text := err.Error()
	var e encoder
	e.byte(byte(code))
	e.string(text[:min(len(text), maxShort)])
	c.message(kindFailure, id, e.b)
}

// Output sends live output of a running ExecRequest. It calls take for the output when it
// can send. If wait is false and another message is being sent, it gives up. It reports
// whether it could send.
func (c *Conn) Output(id uint32, from Stream, wait bool, take func() []byte) bool {
	if wait {
		c.mu.Lock()
	} else if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	if p := take(); len(p) > 0 {
		_, _ = c.out.Write(appendFrame(nil, frame{kind: kindOutput, id: id, payload: append([]byte{byte(from)}, p...)}))
	}
	return true
}

// JobEnded reports the end of a job. The host must already know the job.
func (c *Conn) JobEnded(end JobEnd) {
	var e encoder
	end.encode(&e)
	c.message(kindJobEnd, 0, e.b)
}

func (c *Conn) message(k kind, id uint32, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.out.Write(appendMessage(nil, k, id, body))
}

// part sends one frame of a longer message. Frames of other messages may come in between.
func (c *Conn) part(k kind, id uint32, body []byte, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.out.Write(appendFrame(nil, frame{kind: k, id: id, more: more, payload: body}))
}

// BatchWriter answers CollectLimits with a batch. It sends entries while the agent still
// collects others.
type BatchWriter struct {
	conn *Conn
	id   uint32
	enc  encoder
}

// ReplyBatch begins the answer to CollectLimits.
func (c *Conn) ReplyBatch(id uint32) *BatchWriter { return &BatchWriter{conn: c, id: id} }

// Add adds an entry. Until the first Add, Conn.Fail may answer instead.
func (w *BatchWriter) Add(n Entry) {
	n.encode(&w.enc)
	w.send()
}

// End completes the answer with the ID and More of the batch.
func (w *BatchWriter) End(batch uint64, more bool) {
	w.enc.byte(batchEnd)
	w.enc.uint(batch)
	w.enc.bool(more)
	w.send()
	w.conn.part(kindReply, w.id, w.enc.b, false)
}

// send sends all but the last frame of the entries so far.
func (w *BatchWriter) send() {
	for len(w.enc.b) > maxPayload {
		w.conn.part(kindReply, w.id, w.enc.b[:maxPayload], true)
		w.enc.b = append(w.enc.b[:0], w.enc.b[maxPayload:]...)
	}
}
