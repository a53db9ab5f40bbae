package reviews

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Bounds of what is done at once.
const (
	partSteps  = 200 // commits that are looked into between two savings, and before others read
	partPassed = 500 // commits that are passed before that alone is saved
)

// content is what a path has; a zero blob is that it has nothing.
type content struct {
	blob space.BlobID
	mode space.Mode
}

// errRaced tells that another process read the history meanwhile.
var errRaced = errors.New("the history was read by another process")

// bring reads the history up to head. The caller has the space's turn.
func (r *Reviews) bring(ctx context.Context, id space.SpaceID, st *state) (err error) {
	head, err := r.o.Git.Head(ctx, id)
	if err != nil || st.rows != nil && st.cursor == head && st.known() == head {
		return err
	}
	defer func() {
		if err != nil {
			st.rows = nil // what of it was saved is read again
		}
	}()
	first := st.rows == nil
	if first {
		if err := r.load(ctx, id, st); err != nil {
			return err
		}
	}
	touched := true
	if st.cursor != head {
		if touched, err = r.walk(ctx, id, st, head); err != nil {
			return err
		}
	}
	if first || touched {
		list, err := r.compare(ctx, id, st, head)
		if err != nil {
			return err
		}
		st.publish(head, list)
		return nil
	}
	st.publish(head, nil)
	return nil
}

// walk moves the baselines along the history from the cursor to head. It has not
// touched what is looked at where that is at head as it was at the cursor.
func (r *Reviews) walk(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) (touched bool, err error) {
	steps, passed, ok, err := r.o.Git.Way(ctx, id, st.cursor, head, roots())
	if err != nil {
		return false, err
	}
	if !ok {
		return true, r.again(ctx, id, st, head)
	}
	w := r.stepper(id, st, head)
	defer func() { r.pasts.keep(w.past) }()
	if len(steps) > 0 {
		if err := w.trust(ctx, st.cursor == ""); err != nil {
			return false, err
		}
	}
	w.steps = steps
	done := 0
	for i, s := range steps {
		w.at = i
		if err := w.step(ctx, s); err != nil {
			return false, err
		}
		if done++; done >= partSteps && s.Whole && s.ID != head {
			if err := r.save(ctx, id, st, s.ID, nil); err != nil {
				return false, err
			}
			done = 0
		}
	}
	if len(st.dirty) > 0 || passed >= partPassed || st.saved == "" {
		return true, r.save(ctx, id, st, head, nil)
	}
	st.cursor = head
	return len(steps) > 0, nil
}

// again reads a history from its beginning, where an import or a purge made
// another.
func (r *Reviews) again(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) error {
	steps, _, _, err := r.o.Git.Way(ctx, id, "", head, roots())
	if err != nil {
		return err
	}
	old := st.rows
	st.makers.again = true
	r.pasts.take(id)
	w := r.stepper(id, st, head)
	w.rows, w.dirty, w.whole = map[space.Path]*row{}, map[space.Path]bool{}, true
	defer func() { r.pasts.keep(w.past) }()
	if err := w.trust(ctx, true); err != nil {
		return err
	}
	filled := w.adopted == st.cursor
	at := map[space.Path]space.CommitID{} // that last has what a person knew
	w.steps = steps
	for i, s := range steps {
		w.at = i
		clear(w.dirty)
		if err := w.step(ctx, s); err != nil {
			return err
		}
		for p := range w.dirty {
			x, o := w.rows[p], old[p]
			if x == nil || o == nil || o.Blob == "" || x.now != o.baseline() {
				continue
			}
			at[p] = s.ID
			if filled {
				x.know(x.now, s.ID)
				st.unseen.note(x)
			}
		}
	}
	if !filled {
		if err := r.keepKnown(ctx, id, st, w.rows, at, head); err != nil {
			return err
		}
	}
	st.rows = w.rows
	for p, x := range st.rows {
		if x.Blob == "" && x.now.blob == "" {
			delete(st.rows, p)
		}
	}
	for p := range old {
		st.dirty[p] = true
	}
	for p := range st.rows {
		st.dirty[p] = true
	}
	return r.save(ctx, id, st, head, nil)
}

// keepKnown has people know after a purge what they knew before it and nothing
// else: what a page wrote or a person kept cannot be told from the new history, and
// an older version must not come back by it.
func (r *Reviews) keepKnown(ctx context.Context, id space.SpaceID, st *state, rows map[space.Path]*row, at map[space.Path]space.CommitID, head space.CommitID) error {
	st.mu.Lock()
	last := st.last
	if st.lastAt != head {
		// The purge's own event is still to come, and another's tells what others wrote.
		last = nil
	}
	st.mu.Unlock()
	became := map[space.Path]space.FileChange{}
	for _, f := range last {
		became[f.Path] = f
	}
	for p, x := range rows {
		var known content
		o := st.rows[p]
		if o != nil {
			known = o.baseline()
			// The same commit, or the same content, of which more was known.
			if o.Changed == x.Changed || o.seen && o.now == x.now {
				x.Tool, x.Client = o.Tool, o.Client
			}
		}
		if known.blob != "" && at[p] == "" {
			_, err := r.o.Git.ReadBlob(ctx, id, known.blob)
			switch f := became[p]; {
			case fault.CodeOf(err) != fault.NotFound:
				if err != nil {
					return err
				}
			case known == (content{f.Old, f.OldMode}) && x.now == (content{f.New, f.NewMode}):
				// The purge itself wrote what head has in place of what was known.
				known, at[p] = x.now, head
			default:
				known = content{}
			}
		}
		x.know(known, at[p])
		st.unseen.known(known)
	}
	return nil
}

// compare lists what a head has otherwise than a person knows.
func (r *Reviews) compare(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) ([]Review, error) {
	now := map[space.Path]content{}
	for _, under := range roots() {
		list, err := r.o.Git.Files(ctx, id, head, under)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			now[f.Path] = content{f.Blob, f.Mode}
		}
	}
	out := []Review{}
	for p, k := range now {
		x := st.rows[p]
		if x == nil {
			x = &row{Path: string(p)}
		}
		if x.baseline() != k {
			out = append(out, x.review(k, head))
		}
	}
	dirs := map[space.Path]bool{}
	for p := range now {
		for d := parent(p); d != "" && !dirs[d]; d = parent(d) {
			dirs[d] = true
		}
	}
	for p, x := range st.rows {
		if _, ok := now[p]; !ok && x.Blob != "" {
			w := x.review(content{}, head)
			w.Taken = dirs[p]
			for d := parent(p); d != "" && !w.Taken; d = parent(d) {
				_, w.Taken = now[d]
			}
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b Review) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// roots are the directories of which every file is looked at: those whose files
// every client is told of.
func roots() []space.Path { return []space.Path{"resources", "skills"} }

// Covers tells whether a person confirms what AIs write at a path.
func Covers(p space.Path) bool {
	for _, u := range roots() {
		if p == u || strings.HasPrefix(string(p), string(u)+"/") {
			return true
		}
	}
	return false
}

// parent is the directory that a path is in; "" is the root.
func parent(p space.Path) space.Path {
	return p[:max(0, strings.LastIndexByte(string(p), '/'))]
}
