package server

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// guessesEvery is the least time between two log lines about invalid tokens, because anyone
// can send them.
const guessesEvery = time.Minute

// guessLog logs requests with invalid tokens: the first one at once, and the number of the
// others after a minute or when the server ends.
type guessLog struct {
	log *slog.Logger

	mu    sync.Mutex
	n     int         // requests since the last line
	from  netip.Addr  // the address of the latest request
	next  *time.Timer // runs for a minute after each line
	ended bool
}

func (g *guessLog) note(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	g.from = from
	if g.next == nil && !g.ended {
		g.write()
		g.next = time.AfterFunc(guessesEvery, g.due)
	}
}

func (g *guessLog) due() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n == 0 || g.ended {
		g.next = nil
		return
	}
	g.write()
	g.next.Reset(guessesEvery)
}

// write logs the requests after the last line. The caller holds the lock. The line contains
// no part of a token.
func (g *guessLog) write() {
	g.log.Warn("requests came with a token that is not valid", "since the last such line", g.n, "latest from", g.from)
	g.n = 0
}

// end writes the last line.
func (g *guessLog) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	if g.next != nil {
		g.next.Stop()
	}
	if g.n > 0 {
		g.write()
	}
}
