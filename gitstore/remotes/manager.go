package remotes

import (
	"context"
	"errors"
	"sync"
	"time"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Manager keeps spaces in step with their remotes. Its methods are safe for
// concurrent use.
type Manager struct {
	o Options

	// ctx ends to stop running transfers; work counts running goroutines.
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	setMu   sync.Mutex // held while a remote is set or removed
	mu      sync.Mutex
	entries map[space.SpaceID]*entry
	notices map[space.SpaceID]*notices // also of spaces that no longer have a remote
	paused  map[space.SpaceID]int
	queue   queue
	closed  bool
}

var _ space.Events = (*Manager)(nil)

// New returns a Manager. Call Load or Start before anything else, and Close at the end.
func New(o Options) *Manager {
	m := &Manager{o: o.withDefaults(), entries: map[space.SpaceID]*entry{}, notices: map[space.SpaceID]*notices{}, paused: map[space.SpaceID]int{}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// Load reads the remotes from the database. It starts nothing. This is enough for commands
// that set a remote or ask for a Status while no server runs.
func (m *Manager) Load(ctx context.Context) error {
	rows, noticesOf, err := m.loadRows(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rows {
		if m.entries[r.remote.Space] == nil {
			m.entries[r.remote.Space] = r
		}
	}
	for id, n := range noticesOf {
		if m.notices[id] == nil {
			m.notices[id] = n
		}
	}
	return nil
}

// Start loads the remotes and, in the background, pushes every space whose remote may lack the
// space's newest commit. Call it once.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.dropOldNotices(ctx); err != nil {
		return err
	}
	if err := m.Load(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		m.ask(e, wantPush)
	}
	return nil
}

// Close starts no more syncs and waits for running ones. If ctx ends first, Close interrupts the
// running syncs. Nothing is lost, because the next Start continues. When Close returns, no
// goroutine of the Manager runs.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		for _, e := range m.entries {
			e.disarm()
			if e.phase != running {
				e.release(errClosing())
			}
		}
		m.queue.sound, m.queue.troubled = nil, nil
	}
	m.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		m.work.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = fault.Wrap(ctx.Err(), fault.Canceled, "Transfers were interrupted; they continue after the next start.")
		m.stop()
		<-ended
	}
	m.stop()
	return err
}

func errClosing() error { return fault.New(fault.Unavailable, "The server is shutting down.") }

func errNoRemote() error {
	return fault.New(fault.NotFound, "This space has no remote. It is stored only on this server.")
}

// Has reports whether the space has a remote. It only reads memory.
func (m *Manager) Has(id space.SpaceID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[id] != nil
}

// Publish requests the push of a new head. It never blocks.
func (m *Manager) Publish(ev space.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[ev.Space]
	if e == nil || ev.Commit.ID == "" {
		return
	}
	e.published = ev.Commit.ID
	if ev.Commit.ID == e.synced {
		return // a late event of our own merge or fast-forward
	}
	if e.behindSince.IsZero() {
		e.behindSince = time.Now()
	}
	m.ask(e, wantPush)
}

// Used reports that a client uses the space. Its remote is checked if the last check is
// older than Options.CheckEvery, and then periodically while the use is recent. Used never
// blocks.
func (m *Manager) Used(id space.SpaceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil || m.closed {
		return
	}
	now := time.Now()
	e.used = now
	switch {
	case e.phase != idle || e.failing():
	case now.Sub(e.checked) >= m.o.CheckEvery:
		m.ask(e, wantCheck)
	case e.timer == nil:
		m.arm(e)
	}
}

// Notify reports that something happened at the remote. The remote is then checked at
// once, unless it asked us to wait. Notify never blocks. The caller has verified that the
// notice comes from the remote.
func (m *Manager) Notify(id space.SpaceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil || m.closed {
		return
	}
	if !e.waitAsked { // a Retry-After holds for notices too
		e.forgive()
	}
	m.ask(e, wantCheck|wantPush)
}

// Sync syncs a space with its remote now, however the last sync ended, and returns when the sync
// is done. It calls progress, which may be nil, with short lines until it returns. A failed sync
// is not an error: the Status reports the failure. The error is a fault.NotFound if the space
// has no remote, and a fault.Canceled if ctx ended. The sync then continues.
func (m *Manager) Sync(ctx context.Context, id space.SpaceID, progress func(string)) (space.RemoteStatus, error) {
	w := newWaiter(progress)
	m.mu.Lock()
	e := m.entries[id]
	switch {
	case m.closed:
		m.mu.Unlock()
		return space.RemoteStatus{}, errClosing()
	case e == nil:
		m.mu.Unlock()
		return space.RemoteStatus{}, errNoRemote()
	}
	e.forgive()
	e.waiters = append(e.waiters, w)
	m.ask(e, wantCheck|wantPush)
	m.mu.Unlock()
	return m.wait(ctx, id, w)
}

// Reach calls do with a space's remote and the branch that the space follows. The
// caller must call Pause first. Reach calls do again if the remote refuses a
// credential and there is another one. The error is a fault.NotFound if the space
// has no remote, or if the remote's branch is not known yet.
func (m *Manager) Reach(ctx context.Context, id space.SpaceID, do func(e transport.Endpoint, branch string) error) error {
	m.mu.Lock()
	e := m.entries[id]
	if e == nil || e.remote.Branch == "" {
		m.mu.Unlock()
		return errNoRemote()
	}
	s := &syncing{m: m, remote: e.remote, sealed: e.sealed}
	m.mu.Unlock()
	err := s.step(ctx, "fetch", func(at transport.Endpoint) error { return do(at, s.remote.Branch) })
	var remote *transport.Error
	var own *ownError
	if ctx.Err() == nil && (asRemote(err, &remote) || errors.As(err, &own)) {
		t := explain(s.remote, err)
		return fault.Wrap(err, fault.Unavailable, "%s %s", t.detail, t.remedy)
	}
	return err
}

// wait waits until w's sync has ended, and returns the remote's status.
func (m *Manager) wait(ctx context.Context, id space.SpaceID, w *waiter) (space.RemoteStatus, error) {
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	if err := w.leave(); err != nil {
		return space.RemoteStatus{}, err
	}
	if err := ctx.Err(); err != nil {
		return space.RemoteStatus{}, fault.Wrap(err, fault.Canceled, "The request ended; the sync continues in the background.")
	}
	return m.Status(ctx, id)
}

// Pause ends a running sync of a space. No other sync starts until resume is called. Only the
// first call of resume has an effect. Pause is for changes of the space's history.
func (m *Manager) Pause(ctx context.Context, id space.SpaceID) (resume func(), err error) {
	m.mu.Lock()
	m.paused[id]++
	var ended chan struct{}
	if e := m.entries[id]; e != nil && e.phase == running {
		e.cancel()
		ended = e.ended
	}
	m.mu.Unlock()
	resume = sync.OnceFunc(func() { m.resume(id) })
	if ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
			resume()
			return nil, fault.Wrap(ctx.Err(), fault.Canceled, "The request ended while a transfer was being stopped.")
		}
	}
	return resume, nil
}

func (m *Manager) resume(id space.SpaceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paused[id]--; m.paused[id] > 0 {
		return
	}
	delete(m.paused, id)
	if e := m.entries[id]; e != nil {
		if !e.waitAsked {
			e.forgive() // the work meanwhile may have solved the problem
		}
		m.ask(e, wantPush)
	}
}
