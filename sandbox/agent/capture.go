package agent

import (
	"sync"

	"satchel/sandbox/protocol"
)

// capture keeps one stream of a command: its beginning and its end in memory for the result, more
// of it in a spool, and the newest part for live output. Between writes, it keeps at most 2*half +
// livePart bytes in memory.
type capture struct {
	half      int           // how many bytes to keep of the beginning, and of the end
	openSpool func() *spool // called at most once, before any output is dropped

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring, once its length has reached the field half
	next  int    // next position in the ring
	total int64
	spool *spool
	live  []byte // the newest output that was not sent yet
}

// livePart is how many bytes of unsent live output are kept. If output comes faster, the live
// stream misses the oldest bytes, but the result may still have them.
const livePart = 16 << 10

func (c *capture) write(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spool == nil && c.total+int64(len(p)) > int64(2*c.half) && c.openSpool != nil {
		open := c.openSpool
		c.openSpool = nil // a later spool would lack the dropped output
		c.attachLocked(open())
	}
	if c.spool != nil {
		c.spool.write(p)
	}
	c.total += int64(len(p))
	if c.live = append(c.live, p...); len(c.live) > livePart {
		c.live = append(c.live[:0], c.live[len(c.live)-livePart:]...)
	}
	if room := c.half - len(c.head); room > 0 {
		n := min(room, len(p))
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	if room := c.half - len(c.tail); room > 0 {
		n := min(room, len(p))
		c.tail = append(c.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.tail[c.next:], p)
		c.next = (c.next + n) % len(c.tail)
		p = p[n:]
	}
}

// attach returns the spool, and opens it if there is none.
func (c *capture) attach(open func() *spool) *spool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spool == nil {
		c.attachLocked(open())
	}
	return c.spool
}

// attachLocked writes all output so far to the spool. No output was dropped before, unless an
// earlier spool could not be created.
func (c *capture) attachLocked(s *spool) {
	if c.spool = s; s != nil {
		s.write(c.head)
		s.write(c.tail[c.next:])
		s.write(c.tail[:c.next])
	}
}

// output returns the beginning and the end of the stream.
func (c *capture) output() protocol.Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := protocol.Output{Head: append([]byte(nil), c.head...)}
	o.Tail = append(append(o.Tail, c.tail[c.next:]...), c.tail[:c.next]...)
	o.Dropped = c.total - int64(len(o.Head)+len(o.Tail))
	return o
}

// takeLive returns and forgets the newest output that was not sent yet.
func (c *capture) takeLive() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.live
	c.live = nil
	return p
}

// written returns the number of bytes so far.
func (c *capture) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// finish closes the spool; nothing may be written any more.
func (c *capture) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spool != nil {
		c.spool.finish()
	}
}
