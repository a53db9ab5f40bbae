package sandbox

import (
	"bytes"
	"sync"
	"time"

	"satchel/sandbox/protocol"
)

// Limits of progress reports. progressEvery is as often as a person can follow. heartbeat is often
// enough that a client does not take a quiet command for a dead one.
const (
	progressEvery = 250 * time.Millisecond
	heartbeat     = 5 * time.Second
	progressLine  = 200 // characters
	lineBuffer    = 4 * progressLine
)

// reporter turns new output into calls of Request.OnProgress. The methods phase and stop do
// nothing for a nil reporter.
type reporter struct {
	began time.Time
	done  chan struct{}
	wake  chan struct{}
	wg    sync.WaitGroup

	mu     sync.Mutex
	now    Progress
	stdout []byte // the last bytes of both streams
	dirty  bool
}

func newReporter(f func(Progress)) *reporter {
	if f == nil {
		return nil
	}
	r := &reporter{began: time.Now(), done: make(chan struct{}), wake: make(chan struct{}, 1)}
	r.wg.Go(func() { r.run(f) })
	return r
}

// stop returns when there will be no more calls of OnProgress.
func (r *reporter) stop() {
	if r != nil {
		close(r.done)
		r.wg.Wait()
	}
}

func (r *reporter) phase(p Phase) {
	if r == nil {
		return
	}
	r.mu.Lock()
	changed := r.now.Phase != p
	r.now.Phase, r.dirty = p, r.dirty || changed
	r.mu.Unlock()
	r.poke()
}

func (r *reporter) output(_ protocol.Stream, b []byte) {
	r.mu.Lock()
	r.now.Bytes += int64(len(b))
	r.stdout = append(r.stdout, b[max(0, len(b)-lineBuffer):]...)
	if n := len(r.stdout) - lineBuffer; n > 0 {
		r.stdout = append(r.stdout[:0], r.stdout[n:]...)
	}
	r.dirty = true
	r.mu.Unlock()
	r.poke()
}

func (r *reporter) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reporter) run(f func(Progress)) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-beat.C:
			r.mu.Lock()
			r.dirty = r.now.Phase != ""
			r.mu.Unlock()
		case <-r.wake:
		}
		// Wait until progressEvery has passed since the last report.
		select {
		case <-r.done:
			return
		case <-pause.C:
		}
		if p, ok := r.take(); ok {
			f(p)
			pause.Reset(progressEvery)
		} else {
			pause.Reset(0)
		}
	}
}

func (r *reporter) take() (Progress, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty {
		return Progress{}, false
	}
	r.dirty = false
	p := r.now
	p.Elapsed = time.Since(r.began)
	text := bytes.TrimRight(r.stdout, "\r\n")
	if i := bytes.LastIndexAny(text, "\r\n"); i >= 0 {
		text = text[i+1:]
	}
	_, text = wholeRunes(nil, text)
	p.Line = lastChars(Clean(text), progressLine)
	return p, true
}
