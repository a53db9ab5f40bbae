package sandbox

import (
	"context"
	"errors"
	"time"
)

// errHung is why the pool ended a sandbox that gave no sign of life.
var errHung = errors.New("the agent does not answer")

// heartbeat pings the agent, so that the pool soon notices a sandbox that hangs, and ends it with
// everything that waits for it. A sandbox hangs if its kernel (the gVisor sentry) is stopped or
// starved, or if the agent does not read. The caller holds Pool.mu.
func (b *instance) heartbeat(now time.Time) {
	if b.asked || !b.busy() && b.state == live || now.Sub(b.answered) < b.pool.o.AnswerTime/4 {
		return
	}
	b.asked = true
	b.pool.wg.Go(b.ask)
}

func (b *instance) ask() {
	p := b.pool
	ctx, cancel := context.WithTimeout(p.hard, p.o.AnswerTime)
	defer cancel()
	_, err := b.agent.Jobs(ctx)
	p.mu.Lock()
	b.asked, b.answered = false, time.Now()
	live := b.state == live
	p.mu.Unlock()
	switch {
	case !errors.Is(err, context.DeadlineExceeded) || p.hard.Err() != nil:
	case live:
		b.die(errHung)
	default:
		// The stop waits for the agent. The end of the sandbox ends that wait.
		p.o.Logger.Warn("a sandbox that is being stopped does not answer", "space", b.key.space, "generation", b.gen)
		p.destroy(b.sandbox)
	}
}
