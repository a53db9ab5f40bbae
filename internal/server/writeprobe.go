package server

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"satchel/internal/fault"
)

const (
	// probeEvery is the minimal time between two test writes of /readyz.
	probeEvery = 3 * time.Second
	// probeTime limits a test write in the database.
	probeTime = 5 * time.Second
)

// writeProbe checks whether anything can be saved, and caches the answer.
type writeProbe struct {
	try  singleflight.Group
	last atomic.Pointer[probed]
}

type probed struct {
	at  time.Time
	why string
}

// why returns a short public reason why nothing can be saved, or "". It waits for an
// unresponsive disk only until ctx ends.
func (p *writeProbe) why(ctx context.Context, c *Core) string {
	if last := p.last.Load(); last != nil && time.Since(last.at) < probeEvery {
		return last.why
	}
	tried := p.try.DoChan("", func() (any, error) {
		ctx := context.WithoutCancel(ctx) // other requests get the answer too
		why, err := tryToWrite(ctx, c)
		before := p.last.Swap(&probed{time.Now(), why})
		switch {
		case err != nil && (before == nil || before.why != why):
			c.Log.ErrorContext(ctx, "nothing can be saved", "why", why, "err", err)
		case err == nil && before != nil && before.why != "":
			c.Log.InfoContext(ctx, "everything can be saved again")
		}
		return why, nil
	})
	select {
	case r := <-tried:
		return r.Val.(string)
	case <-ctx.Done():
		return "the disk does not answer"
	}
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
