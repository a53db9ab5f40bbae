package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"satchel/internal/fault"
)

const (
	// The shortest and longest wait between attempts while the issuer is unreachable.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// maxWaiting is the maximum number of callers that wait for an attempt at a time. Others
	// get an error at once.
	maxWaiting = 256
)

var (
	errUnknownKey = errors.New("no key of the issuer verifies it")
	errSignature  = errors.New("another signature than the issuer's")
	errTooOften   = errors.New("the issuer was asked too often for keys that it does not have")
	errClosed     = errors.New("closed")
	errGone       = errors.New("the caller went away")
)

// keySet holds the issuer's keys at one time. It does not change.
type keySet struct {
	keys    []key
	expires time.Time
}

// verify verifies a token's signature. The error is errUnknownKey if a newer set might have
// the key.
func (s *keySet) verify(t token) error {
	named := false
	for _, k := range s.keys {
		if t.kid != "" && k.id != t.kid {
			continue
		}
		named = named || t.kid != ""
		if t.verify(k) {
			return nil
		}
	}
	if named {
		return errSignature
	}
	return errUnknownKey
}

// keyring keeps the issuer's keys current. One goroutine fetches them. Callers read the
// current set. They wait for a fetch only if that set does not suffice.
type keyring struct {
	source  *source
	limiter *rate.Limiter // for fetches that callers cause
	maxAge  time.Duration
	grace   time.Duration
	wait    time.Duration
	every   time.Duration
	now     func() time.Time

	current atomic.Pointer[keySet]
	wake    chan struct{}
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	next    *attempt // requested or running; nil if there is none
	waiting int
	failed  error // the error of the last attempt
}

// attempt is a fetch that all waiting callers share.
type attempt struct {
	done chan struct{}
	err  error // set before done is closed
}

func newKeyring(o Options) *keyring {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keyring{
		source:  newSource(o),
		limiter: rate.NewLimiter(rate.Every(o.RefetchEvery), o.RefetchBurst),
		maxAge:  o.KeysMaxAge, grace: o.OutageGrace, wait: o.RequestTimeout, every: o.RefetchEvery, now: o.Now,
		wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}),
	}
	k.next = &attempt{done: make(chan struct{})} // the first callers wait for the first fetch
	k.wake <- struct{}{}
	go k.run(ctx)
	return k
}

func (k *keyring) close() {
	k.cancel()
	<-k.done
}

// run fetches on request, when the keys are too old, and in growing intervals while the
// issuer is unreachable.
func (k *keyring) run(ctx context.Context) {
	defer close(k.done)
	timer := time.NewTimer(k.maxAge)
	defer timer.Stop()
	retry := firstRetry
	for {
		select {
		case <-ctx.Done():
			k.finish(errClosed)
			return
		case <-k.wake:
		case <-timer.C:
		}
		k.begin()
		err := k.fetch(ctx)
		if ctx.Err() != nil {
			continue
		}
		wait := k.maxAge
		if err != nil {
			wait = min(k.maxAge, retry)
			retry = min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		timer.Reset(wait)
		k.finish(err)
	}
}

func (k *keyring) fetch(ctx context.Context) error {
	asked := k.now()
	keys, err := k.source.fetch(ctx)
	if err != nil {
		if ctx.Err() == nil {
			k.source.log.WarnContext(ctx, "issuer's keys", "issuer", k.source.issuer, "error", err)
		}
		return err
	}
	k.current.Store(&keySet{keys: keys, expires: asked.Add(k.maxAge + k.grace)})
	return nil
}

// begin starts the requested attempt, or a new one. Callers may join it.
func (k *keyring) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next == nil {
		k.next = &attempt{done: make(chan struct{})}
	}
	select {
	case <-k.wake: // this attempt is the requested one
	default:
	}
}

func (k *keyring) finish(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next != nil {
		k.next.err = err
		close(k.next.done)
	}
	k.next, k.failed = nil, err
	if errors.Is(err, errClosed) {
		k.next = &attempt{done: make(chan struct{}), err: err}
		close(k.next.done) // so that no later caller waits
	}
}

// verify verifies a token's signature with the keys of the issuer. For an unknown key, it
// waits until the keys are fetched again.
func (k *keyring) verify(ctx context.Context, t token) error {
	set, err := k.good(ctx)
	if err != nil {
		return err
	}
	err = set.verify(t)
	// Try twice, because a running fetch may have begun before the key was published.
	for try := 0; errors.Is(err, errUnknownKey) && try < 2; try++ {
		began, ferr := k.refetch(ctx)
		if errors.Is(ferr, errTooOften) && k.reachable() {
			break // most likely the key does not exist
		}
		if ferr != nil {
			return unavailable(ferr, k.every)
		}
		if set, err = k.good(ctx); err != nil {
			return err
		}
		if err = set.verify(t); began {
			break
		}
	}
	if err != nil {
		return notValid(err)
	}
	return nil
}

// good returns a usable key set. It fetches one if there is none.
func (k *keyring) good(ctx context.Context) (*keySet, error) {
	if s := k.usable(); s != nil {
		return s, nil
	}
	if _, err := k.refetch(ctx); err != nil {
		return nil, unavailable(err, k.every)
	}
	if s := k.usable(); s != nil {
		return s, nil
	}
	return nil, unavailable(errors.New("the keys had expired when they arrived"), k.every)
}

func (k *keyring) usable() *keySet {
	if s := k.current.Load(); s != nil && k.now().Before(s.expires) {
		return s
	}
	return nil
}

// reachable reports whether the last attempt to fetch the keys succeeded.
func (k *keyring) reachable() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed == nil
}

// refetch waits for the running attempt, or begins a new one.
func (k *keyring) refetch(ctx context.Context) (began bool, err error) {
	k.mu.Lock()
	if k.waiting >= maxWaiting {
		k.mu.Unlock()
		return false, fmt.Errorf("%d callers wait for the issuer already", maxWaiting)
	}
	if k.next == nil {
		if !k.limiter.AllowN(k.now(), 1) {
			err := errTooOften
			if k.failed != nil {
				err = fmt.Errorf("%w: %w", err, k.failed)
			}
			k.mu.Unlock()
			return false, err
		}
		k.next = &attempt{done: make(chan struct{})}
		began = true
		k.wake <- struct{}{} // never blocks: every sender sets next first, and begin empties the channel
	}
	a := k.next
	k.waiting++
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.waiting--
		k.mu.Unlock()
	}()

	late := time.NewTimer(k.wait)
	defer late.Stop()
	select {
	case <-a.done:
		return began, a.err
	case <-ctx.Done():
		return began, fmt.Errorf("%w: %w", errGone, ctx.Err())
	case <-late.C:
		return began, errors.New("no answer in time")
	}
}

func unavailable(err error, again time.Duration) error {
	if errors.Is(err, errGone) {
		return fault.Wrap(err, fault.Canceled, "The request ended before the token was checked.")
	}
	f := fault.Wrap(err, fault.Unavailable, "The token cannot be checked now: its issuer does not answer with its keys. Try again.")
	f.RetryAfter = again
	return f
}
