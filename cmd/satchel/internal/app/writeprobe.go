package app

import (
	"context"
	"sync"
	"time"

	"satchel/internal/fault"
)

const (
	// probeEvery is the least time between two tries of /readyz to write.
	probeEvery = 3 * time.Second
	// probeTime limits a try in the database.
	probeTime = 5 * time.Second
)

// writeProbe checks whether anything can be saved, and caches the answer.
type writeProbe struct {
	mu   sync.Mutex
	at   time.Time
	last string
}

// why returns a short public reason why nothing can be saved; empty if it can be.
func (p *writeProbe) why(ctx context.Context, c *Core) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < probeEvery {
		return p.last
	}
	why, err := tryToWrite(context.WithoutCancel(ctx), c) // other requests get the answer too
	if why != p.last && err != nil {
		c.Log.ErrorContext(ctx, "nothing can be saved", "why", why, "err", err)
	} else if why != p.last {
		c.Log.InfoContext(ctx, "everything can be saved again")
	}
	p.at, p.last = time.Now(), why
	return why
}

func tryToWrite(ctx context.Context, c *Core) (why string, err error) {
	switch err := c.Git.CheckWrite(); {
	case fault.CodeOf(err) == fault.Unavailable:
		return "the disk is full", err
	case err != nil:
		return "the data directory cannot be written", err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if err := c.DB.CheckWrite(ctx); err != nil {
		return "the database cannot be written", err
	}
	return "", nil
}
