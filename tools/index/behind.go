package index

import (
	"context"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/parse"
)

// gap is the number of pages that differ between two commits.
type gap struct {
	from, to space.CommitID
	pages    int
}

// Await waits until the collections of a query are indexed up to their heads. It does not
// wait for an index that has been behind for MaxWait or longer, so that a rebuild or a
// failing store does not delay later searches. It returns an error only if ctx ends or an
// index cannot be opened.
func (x *Index) Await(ctx context.Context, cols []Collection, q Query) error {
	if q.MaxWait <= 0 {
		return nil
	}
	parsed := x.parse(q)
	for _, c := range chooseCollections(cols, parsed.Filters.Source) {
		e, err := x.entry(c.ID)
		if err == nil {
			err = x.awaitHead(ctx, e, q.MaxWait)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) awaitHead(ctx context.Context, e *entry, limit time.Duration) error {
	var over <-chan time.Time
	for {
		e.mu.Lock()
		news := e.news // read first, so that no update is missed
		e.mu.Unlock()
		if there, err := x.upToDate(ctx, e); there || err != nil {
			return err
		}
		if over == nil {
			left := limit - e.fell(x.opts.Now())
			if left <= 0 {
				return nil
			}
			t := time.NewTimer(left)
			defer t.Stop()
			over = t.C
		} else if e.failure() != nil {
			return nil // the follower retries later
		}
		select {
		case <-news:
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// upToDate reports whether an index has all pages of the head and is not known to be damaged. It
// returns true if the head cannot be determined.
func (x *Index) upToDate(ctx context.Context, e *entry) (bool, error) {
	d, err := x.open(ctx, e)
	if err != nil || d == nil {
		return false, err
	}
	at := d.State().Commit
	d.Release()
	if damaged, _ := e.health(); damaged {
		return false, nil
	}
	head, err := e.newest(ctx)
	if err != nil {
		return true, ctx.Err() // the search reports the error
	}
	if head == at || head == "" {
		return true, nil
	}
	pages, known := x.pagesBetween(ctx, e, at, head)
	return known && pages == 0, ctx.Err()
}

// leastAge distinguishes an index that fell behind just now from one that is not behind.
const leastAge = time.Nanosecond

// lag returns how long an index has been behind the head of its collection, and how many
// pages it lacks, or 0 pages if that is unknown. exists reports whether the index has a
// database, and at is the commit of the database.
func (x *Index) lag(ctx context.Context, e *entry, at space.CommitID, exists bool) (age time.Duration, pages int, err error) {
	head, err := e.newest(ctx)
	if ctx.Err() != nil {
		return 0, 0, ctx.Err()
	}
	if err != nil {
		if fault.CodeOf(err) == fault.NotFound && exists {
			return 0, 0, nil // the collection was deleted and does not change any more
		}
		return leastAge + e.fell(x.opts.Now()), 0, nil
	}
	same := head == at || head == ""
	if !same || !exists {
		var known bool
		pages, known = x.pagesBetween(ctx, e, at, head)
		same = known && pages == 0
	}
	if ctx.Err() != nil {
		return 0, 0, ctx.Err()
	}
	if same && exists {
		e.reached(head)
		return 0, 0, nil
	}
	return leastAge + e.fell(x.opts.Now()), pages, nil
}

// pagesBetween counts the pages that differ between two commits of a collection. known is false if
// the commits cannot be compared.
func (x *Index) pagesBetween(ctx context.Context, e *entry, from, to space.CommitID) (pages int, known bool) {
	e.mu.Lock()
	last, f := e.gap, e.follower
	e.mu.Unlock()
	if last.to == to && last.from == from && to != "" {
		return last.pages, true
	}
	if f == nil || to == "" {
		return 0, false
	}
	changes, err := f.src.Diff(ctx, e.id, from, to)
	if err != nil {
		return 0, false
	}
	for _, c := range changes {
		if parse.Indexed(c) {
			pages++
		}
	}
	e.mu.Lock()
	e.gap = gap{from, to, pages}
	e.mu.Unlock()
	return pages, true
}

// newest returns the collection's current head. Without a follower it returns the newest
// known head, or "".
func (e *entry) newest(ctx context.Context) (space.CommitID, error) {
	e.mu.Lock()
	f, head := e.follower, e.head
	e.mu.Unlock()
	if f == nil {
		return head, nil
	}
	if d, ok := f.src.(Derived); ok {
		return d.Newest(ctx, e.id)
	}
	return f.src.Head(ctx, e.id)
}

// fell records that the index is behind, and returns how long it has been behind.
func (e *entry) fell(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		e.since = now
	}
	return now.Sub(e.since)
}

// reached records that the index contains all pages of a head.
func (e *entry) reached(head space.CommitID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.damaged && (e.head == head || e.head == "") {
		e.since = time.Time{}
	}
}

// failure returns the error of the last update.
func (e *entry) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
