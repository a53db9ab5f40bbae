package index

import (
	"context"
	"fmt"
	"strings"
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

// Await waits until the collections that a query searches are indexed up to their
// heads. It does not wait for an index that fell behind MaxWait ago or earlier, so
// that a rebuild or a failing store delays no later search. It returns an error only
// if ctx ends or the machine fails.
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
		if there, err := x.whole(ctx, e); there || err != nil {
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

// whole reports whether an index is neither known to be behind nor known to be damaged.
func (x *Index) whole(ctx context.Context, e *entry) (bool, error) {
	d, err := x.open(ctx, e)
	if err != nil || d == nil {
		return false, err
	}
	at := d.current().commit
	d.release()
	if rotten, _ := e.health(); rotten {
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

// leastAge distinguishes an index that fell behind just now from one that is not
// behind.
const leastAge = time.Nanosecond

// lag returns for how long an index has been behind the head of its collection, and
// by how many pages; 0 pages if that is not known. at is the commit of its database;
// there says whether it has one.
func (x *Index) lag(ctx context.Context, e *entry, at space.CommitID, there bool) (age time.Duration, pages int, err error) {
	head, err := e.newest(ctx)
	switch {
	case ctx.Err() != nil:
		return 0, 0, ctx.Err()
	case fault.CodeOf(err) == fault.NotFound && there:
		return 0, 0, nil // the collection was deleted and does not change any more
	case err != nil:
		return leastAge + e.fell(x.opts.Now()), 0, nil
	case there && (head == at || head == ""):
		e.reached(at)
		return 0, 0, nil
	}
	pages, known := x.pagesBetween(ctx, e, at, head)
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	if known && pages == 0 && there {
		return 0, 0, nil // no page differs
	}
	return leastAge + e.fell(x.opts.Now()), pages, nil
}

// pagesBetween counts the pages that differ between two commits of a collection.
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

// newest returns the collection's current head. Without a follower it returns the
// newest head that the index knows, or "".
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

// fell records that the index is behind, and returns for how long it has been.
func (e *entry) fell(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		e.since = now
	}
	return now.Sub(e.since)
}

// reached records that the index is at its head.
func (e *entry) reached(head space.CommitID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.rotten && (e.head == head || e.head == "") {
		e.since = time.Time{}
	}
}

// failure returns why the last update failed.
func (e *entry) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// lagNotes returns notes that say which indexes are behind, and by how much.
func lagNotes(all []IndexState) (notes []string) {
	var late, none []IndexState
	for _, s := range all {
		switch {
		case s.Behind == 0:
		case s.Commit == "":
			none = append(none, s)
		default:
			late = append(late, s)
		}
	}
	if n := len(late); n > 0 {
		by := "behind"
		if p := pagesOf(late); p != "" {
			by = p + " behind"
		}
		index, is := "index", "is"
		if n > 1 {
			index, is = "indexes", "are"
		}
		notes = append(notes, fmt.Sprintf("The %s of %s %s %s, so this answer may lack what was written last. Search again in a moment.", index, labelsOf(late), is, by))
	}
	if n := len(none); n > 0 {
		is, them := "is", "it"
		if n > 1 {
			is, them = "are", "them"
		}
		pages := ""
		if p := pagesOf(none); p != "" {
			pages = " (" + p + ")"
		}
		notes = append(notes, fmt.Sprintf("%s %s not indexed yet%s, so nothing in %s was searched. Search again in a moment.", labelsOf(none), is, pages, them))
	}
	return notes
}

// pagesOf says how many pages collections lack; "" if that is not known for all.
func pagesOf(all []IndexState) string {
	sum := 0
	for _, s := range all {
		if s.Pages == 0 {
			return ""
		}
		sum += s.Pages
	}
	if sum == 1 {
		return "1 page"
	}
	return fmt.Sprintf("%d pages", sum)
}

// maxLabels limits how many collections a sentence names.
const maxLabels = 5

// labelsOf names collections in a sentence.
func labelsOf(all []IndexState) string {
	var labels []string
	for _, s := range all[:min(len(all), maxLabels)] {
		labels = append(labels, s.Collection.Label)
	}
	if more := len(all) - len(labels); more > 0 {
		labels = append(labels, fmt.Sprintf("%d more", more))
	}
	if n := len(labels) - 1; n > 0 {
		labels = append(labels[:n-1], labels[n-1]+" and "+labels[n])
	}
	return strings.Join(labels, ", ")
}
