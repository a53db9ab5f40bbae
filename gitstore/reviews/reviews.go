package reviews

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"satchel/gitstore"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Git is the part of the store that this package needs; see *gitstore.Store.
type Git interface {
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error)
	Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error)
	CommitsBetween(ctx context.Context, id space.SpaceID, from, to space.CommitID, under []space.Path) ([]gitstore.CommitBetween, int, bool, error)
	Show(ctx context.Context, id space.SpaceID, at space.CommitID) (space.Commit, error)
	Blob(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (b space.BlobID, m space.Mode, ok bool, err error)
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
	Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error)
}

// Options configures a Reviews. DB and Git are required.
type Options struct {
	DB  *database.DB
	Git Git
	// Patience is how long Waiting waits for the history to be read, and Act is how long a
	// decision waits. 0 means 15 ms and 10 s.
	Patience, Act time.Duration
	// Walkers bounds how many histories are read at once; 0 means 2.
	Walkers int
	Logger  *slog.Logger // nil: none
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// confirms reports whether a person who writes a file with the tool sees the file's former content.
// That is not so for the tools that restore former content (restore, web-restore, web-undo,
// web-revert), because nobody was shown all of the restored content.
func confirms(tool string) bool {
	return tool == space.ToolWeb || tool == space.ToolImport || tool == space.ToolStart
}

// Reviews finds the files that wait for review and stores decisions. It is safe for
// concurrent use, reads histories in the background, and must be closed. The caller checks
// permissions.
type Reviews struct {
	o    Options
	ctx  context.Context //nolint:containedctx // of the background goroutines
	stop context.CancelFunc
	free chan struct{} // has room for one element for each walker
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	at     map[space.SpaceID]*state
}

// state is the state of a space.
type state struct {
	turn chan struct{} // has capacity 1; its holder may read the history

	// The fields below belong to the holder of the turn. rows are nil if they must be
	// loaded.
	rows          map[space.Path]*row
	dirty         map[space.Path]bool // rows that are not saved
	waited        waited              // changes of the waitedRows that are not saved
	cursor, saved space.CommitID      // the last commit in rows, and in the saved rows
	walker        *walker             // the slot of a read in the background; otherwise nil

	mu      sync.Mutex // guards the rest; never held for long
	head    space.CommitID
	waiting []space.Review // the reviews at head; the list is never modified
	running bool
	done    chan struct{} // closed when the running read has ended
}

func (st *state) known() space.CommitID {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.head
}

// list returns the known reviews.
func (st *state) list() []space.Review {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.waiting
}

// publish stores the reviews that wait at a head. A nil list keeps the previous reviews.
func (st *state) publish(head space.CommitID, list []space.Review) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.head = head
	if list != nil {
		st.waiting = list
	}
}

// New returns a Reviews.
func New(o Options) (*Reviews, error) {
	if o.DB == nil || o.Git == nil {
		return nil, errors.New("reviews need a database and the store of spaces")
	}
	if o.Patience == 0 {
		o.Patience = 15 * time.Millisecond
	}
	if o.Act == 0 {
		o.Act = 10 * time.Second
	}
	if o.Walkers <= 0 {
		o.Walkers = 2
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Reviews{o: o, at: map[space.SpaceID]*state{}, free: make(chan struct{}, o.Walkers)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Close stops the background goroutines and waits for them.
func (r *Reviews) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.work.Wait()
}

// Publish implements space.Events. It starts to read the commit's changes at once.
func (r *Reviews) Publish(e space.Event) {
	r.look(e.Space, r.state(e.Space))
}

// maxSpaces is how many spaces' reviews are kept in memory.
const maxSpaces = 1000

func (r *Reviews) state(id space.SpaceID) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.at[id]
	if st == nil {
		if len(r.at) >= maxSpaces {
			clear(r.at)
		}
		st = &state{turn: make(chan struct{}, 1)}
		r.at[id] = st
	}
	return st
}

// look starts to read a space's history in the background, unless a read is already running. The
// returned channel is closed when the read has ended.
func (r *Reviews) look(id space.SpaceID, st *state) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.running {
		return st.done
	}
	st.done = make(chan struct{})
	if r.closed {
		close(st.done)
		return st.done
	}
	st.running = true
	done := st.done
	r.work.Go(func() { r.run(id, st, done) })
	return done
}

// run reads a space's history to its head, even if the head moves meanwhile.
func (r *Reviews) run(id space.SpaceID, st *state, done chan struct{}) {
	defer close(done)
	for tries := 0; ; {
		err := r.settle(r.ctx, id, st, true)
		var head space.CommitID
		if err == nil {
			head, err = r.o.Git.Head(r.ctx, id)
		}
		if errors.Is(err, errRaced) && tries < 3 {
			tries++
			continue
		}
		st.mu.Lock()
		if err != nil || st.head == head {
			st.running = false
			st.mu.Unlock()
			if err != nil && r.ctx.Err() == nil && fault.CodeOf(err) != fault.NotFound {
				r.o.Logger.Error("look for what waits to be confirmed", "space", id, "err", err)
			}
			return
		}
		st.mu.Unlock()
	}
}

// settle takes the turn and reads a space's history to its head. If background is true, the read
// counts against the limit of walkers.
func (r *Reviews) settle(ctx context.Context, id space.SpaceID, st *state, background bool) error {
	var own *walker
	if background {
		own = &walker{free: r.free}
		if err := own.begin(ctx); err != nil {
			return err
		}
		defer own.end()
	}
	release, err := st.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	st.walker = own
	defer func() { st.walker = nil }()
	return r.bring(ctx, id, st)
}

// walker is a slot for reading a history in the background.
type walker struct {
	free chan struct{}
	held bool
}

func (w *walker) begin(ctx context.Context) error {
	select {
	case w.free <- struct{}{}:
		w.held = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *walker) end() {
	if w.held {
		<-w.free
		w.held = false
	}
}

// pause lets waiting readers go first, in the order in which they began to wait.
func (w *walker) pause(ctx context.Context) error {
	w.end()
	return w.begin(ctx)
}

// take waits for the turn.
func (st *state) take(ctx context.Context) (release func(), err error) {
	select {
	case st.turn <- struct{}{}:
		return func() { <-st.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Waiting returns the known reviews that wait in a space, sorted by path. If the history is not
// read to the head within Options.Patience, or before ctx ends, behind is true, and reading
// continues in the background. The list must not be modified.
func (r *Reviews) Waiting(ctx context.Context, id space.SpaceID) (list []space.Review, behind bool, err error) {
	st := r.state(id)
	if ctx.Err() != nil {
		if st.known() == "" {
			r.look(id, st)
		}
		return st.list(), true, nil
	}
	head, err := r.o.Git.Head(ctx, id)
	if err != nil && ctx.Err() != nil {
		return st.list(), true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reviews: %w", err)
	}
	if st.known() != head {
		done := r.look(id, st)
		t := time.NewTimer(r.o.Patience)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
		case <-ctx.Done():
			return st.list(), true, nil
		}
		head, err = r.o.Git.Head(ctx, id)
		if err != nil && ctx.Err() != nil {
			return st.list(), true, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("reviews: %w", err)
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.waiting, st.head != head, nil
}
