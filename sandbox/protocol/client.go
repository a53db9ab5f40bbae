package protocol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"satchel/internal/fault"
)

// Limits of what an agent can make its client keep in memory.
const (
	maxCalls     = 4096             // calls without an answer at any time
	maxJobEnds   = 4096             // reported ends of jobs that onJobEnd has not taken
	maxLive      = 64               // frames of output that onOutput has not taken; older ones are dropped
	liveBurst    = 8 << 20          // bytes of output frames of one command at any time
	liveRate     = 4 << 20          // additional bytes of output frames per second
	liveFrame    = 4 << 10          // bytes that each frame counts in addition to its payload
	answerMargin = 20 * time.Second // how long an answer may take after a command's time and grace
)

// Client is the host's side of the protocol. Its methods may be called from several goroutines;
// unless a call's error wraps ErrProtocol, the connection stays usable until Close.
type Client struct {
	conn io.ReadWriteCloser
	out  chan []byte
	ends chan JobEnd
	done chan struct{} // closed when the connection has ended

	mu       sync.Mutex
	calls    map[uint32]*call
	lastID   uint32
	err      error
	onJobEnd func(JobEnd)
}

// call is a request that waits for its reply.
type call struct {
	limit   int // the maximum number of bytes of the reply
	body    []byte
	kind    kind        // the kind of the frames in body
	answer  chan answer // buffers one answer
	live    *liveQueue  // the live output of an Exec; nil for another request
	started time.Time
	output  int64 // bytes of output frames so far
}

type answer struct {
	kind kind
	body []byte
	err  error
}

// Connect sends b and waits until the agent is ready. It takes ownership of conn, and closes conn
// if it fails.
func Connect(ctx context.Context, conn io.ReadWriteCloser, b Boot) (*Client, error) {
	c := &Client{
		conn:  conn,
		out:   make(chan []byte),
		ends:  make(chan JobEnd, maxJobEnds),
		done:  make(chan struct{}),
		calls: make(map[uint32]*call),
	}
	go c.read()
	go c.write()
	go c.reportJobEnds()
	if _, err := c.roundTrip(ctx, kindBoot, &b, 1); err != nil {
		c.Close()
		return nil, fmt.Errorf("agent: boot: %w", err)
	}
	return c, nil
}

// OnJobEnd sets the function that is called when a job ends. Set it before the first Exec.
// f runs on a goroutine of the Client, one call at a time.
func (c *Client) OnJobEnd(f func(JobEnd)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onJobEnd = f
}

// Done returns a channel that is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended, once Done is closed. It returns nil if Close was
// called.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.err, errClosed) {
		return nil
	}
	return c.err
}

var errClosed = errors.New("agent: the connection was closed")

// Close ends the connection and every call on it. It does not end the sandbox.
func (c *Client) Close() error {
	c.end(errClosed)
	return nil
}

// end closes the connection once, for the given reason.
func (c *Client) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls := c.calls
	c.calls = nil
	close(c.done)
	c.mu.Unlock()
	c.conn.Close()
	for _, k := range calls {
		k.answer <- answer{err: err}
		k.live.close()
	}
}

// write is the only goroutine that writes to conn. So a call whose context ends does not
// wait for an agent that does not read.
func (c *Client) write() {
	for {
		select {
		case b := <-c.out:
			if _, err := c.conn.Write(b); err != nil {
				c.end(fmt.Errorf("%w: writing: %w", ErrProtocol, err))
				return
			}
		case <-c.done:
			return
		}
	}
}

func (c *Client) reportJobEnds() {
	for {
		select {
		case e := <-c.ends:
			c.mu.Lock()
			f := c.onJobEnd
			c.mu.Unlock()
			if f != nil {
				f(e)
			}
		case <-c.done:
			return
		}
	}
}

func (c *Client) read() {
	fr := &frameReader{r: c.conn}
	for {
		f, err := fr.next()
		if err == nil {
			err = c.handle(f)
		}
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				err = fmt.Errorf("%w: the connection ended: %w", ErrProtocol, err)
			}
			c.end(err)
			return
		}
	}
}

// handle processes one frame; its error ends the connection.
func (c *Client) handle(f frame) error {
	if f.kind == kindJobEnd {
		return c.handleJobEnd(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[f.id]
	if k == nil {
		if c.err != nil {
			return c.err
		}
		return fmt.Errorf("%w: a frame for call %d, which is not open", ErrProtocol, f.id)
	}
	switch f.kind {
	case kindOutput:
		return k.takeOutput(f)
	case kindReply, kindFailure:
	default:
		return fmt.Errorf("%w: a frame of kind %d", ErrProtocol, f.kind)
	}
	switch {
	case k.kind != 0 && k.kind != f.kind:
		return fmt.Errorf("%w: a reply of two kinds", ErrProtocol)
	case f.more && len(f.payload) == 0:
		return fmt.Errorf("%w: an empty part of a reply", ErrProtocol)
	case len(k.body)+len(f.payload) > k.limit:
		return fmt.Errorf("%w: a reply of more than %d bytes", ErrProtocol, k.limit)
	}
	k.kind = f.kind
	k.body = append(k.body, f.payload...)
	if f.more {
		return nil
	}
	delete(c.calls, f.id)
	k.answer <- answer{kind: f.kind, body: k.body}
	k.live.close()
	return nil
}

func (c *Client) handleJobEnd(f frame) error {
	var e JobEnd
	d := &decoder{b: f.payload}
	e.decode(d)
	if err := d.done(); err != nil {
		return err
	}
	if f.more || f.id != 0 {
		return fmt.Errorf("%w: a misplaced end of a job", ErrProtocol)
	}
	select {
	case c.ends <- e:
		return nil
	default:
		return fmt.Errorf("%w: more ends of jobs than are taken", ErrProtocol)
	}
}

func (k *call) takeOutput(f frame) error {
	if k.live == nil || f.more || len(f.payload) < 1 || k.kind != 0 {
		return fmt.Errorf("%w: misplaced output", ErrProtocol)
	}
	s := Stream(f.payload[0])
	if s != Stdout && s != Stderr {
		return fmt.Errorf("%w: output of stream %d", ErrProtocol, s)
	}
	// Small frames count too, because they also keep this goroutine busy.
	k.output += int64(len(f.payload)) + liveFrame
	if k.output > liveBurst+int64(time.Since(k.started).Seconds()*liveRate) {
		return fmt.Errorf("%w: endless output", ErrProtocol)
	}
	k.live.push(liveOutput{s, bytes.Clone(f.payload[1:])})
	return nil
}

// start sends a request. The reply may have at most limit bytes, or maxShort if that is more.
func (c *Client) start(ctx context.Context, k kind, r Request, limit int, live *liveQueue) (uint32, *call, error) {
	var e encoder
	r.encode(&e)
	if len(e.b) > maxRequest {
		return 0, nil, fault.New(fault.TooLarge, "The request has %d bytes, and %d are allowed.", len(e.b), maxRequest)
	}
	cl := &call{limit: max(limit, maxShort), answer: make(chan answer, 1), live: live, started: time.Now()}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return 0, nil, err
	}
	if len(c.calls) >= maxCalls {
		c.mu.Unlock()
		return 0, nil, fault.New(fault.Limited, "The sandbox has too many requests open.")
	}
	for {
		c.lastID++
		if c.lastID != 0 && c.calls[c.lastID] == nil {
			break
		}
	}
	id := c.lastID
	c.calls[id] = cl
	c.mu.Unlock()
	if err := c.send(ctx, appendMessage(nil, k, id, e.b)); err != nil {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		return 0, nil, err
	}
	return id, cl, nil
}

func (c *Client) send(ctx context.Context, b []byte) error {
	select {
	case c.out <- b:
		return nil
	case <-c.done:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// roundTrip sends a request and returns the reply's body. If ctx ends first, the reader
// discards the reply when it arrives.
func (c *Client) roundTrip(ctx context.Context, k kind, r Request, limit int) ([]byte, error) {
	_, cl, err := c.start(ctx, k, r, limit, nil)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-cl.answer:
		return c.settle(a)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// settle turns an answer into a reply's body or an error.
func (c *Client) settle(a answer) ([]byte, error) {
	if a.err != nil || a.kind == kindReply {
		return a.body, a.err
	}
	d := &decoder{b: a.body}
	code, text := failure(d.small(int(failures)-1)), d.string(maxShort)
	if err := d.done(); err != nil {
		c.end(err)
		return nil, err
	}
	switch code {
	case failedNoJob:
		return nil, fault.New(fault.NotFound, "There is no such job.")
	case failedSignal:
		return nil, fault.New(fault.Invalid, "There is no such signal.")
	case failedBusy:
		return nil, fault.New(fault.Unavailable, "The sandbox is being stopped.")
	}
	return nil, fmt.Errorf("agent: refused: %q", text)
}

// decode reads a reply. A malformed reply ends the connection.
func (c *Client) decode(body []byte, read func(*decoder)) error {
	d := &decoder{b: body}
	read(d)
	err := d.done()
	if err != nil {
		c.end(err)
	}
	return err
}
