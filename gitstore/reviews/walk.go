package reviews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/space"
)

// Limits for one part of a read.
const (
	partSteps  = 200 // commits that are read before a save, and before others have a turn
	partPassed = 500 // commits that are skipped before the position is saved
)

// content is the content of a path. A zero blob means that nothing is there.
type content struct {
	blob space.BlobID
	mode space.Mode
}

// errRaced reports that another process read the history meanwhile.
var errRaced = errors.New("the history was read by another process")

// bring reads the history up to head. The caller has the space's turn.
func (r *Reviews) bring(ctx context.Context, id space.SpaceID, st *state) (err error) {
	head, err := r.o.Git.Head(ctx, id)
	if err != nil || st.rows != nil && st.cursor == head && st.known() == head {
		return err
	}
	defer func() {
		if err != nil {
			st.rows = nil // load the saved rows again
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

// walk moves the baselines along the history from the cursor to head. touched is false if
// the reviewed files are the same at both.
func (r *Reviews) walk(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) (touched bool, err error) {
	steps, passed, ok, err := r.o.Git.CommitsBetween(ctx, id, st.cursor, head, roots())
	if err != nil {
		return false, err
	}
	if !ok {
		return true, r.again(ctx, id, st, head)
	}
	w := r.stepper(id, st)
	done := 0
	for _, s := range steps {
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

// again reads a history from its beginning after an import or a purge replaced it. Content
// that people knew last counts as known in the new history too.
func (r *Reviews) again(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) error {
	steps, _, _, err := r.o.Git.CommitsBetween(ctx, id, "", head, roots())
	if err != nil {
		return err
	}
	old := st.rows
	st.rows, st.waited = map[space.Path]*row{}, waited{again: true}
	w := r.stepper(id, st)
	for p := range old {
		st.dirty[p] = true
	}
	for _, s := range steps {
		w.dirty = map[space.Path]bool{}
		if err := w.step(ctx, s); err != nil {
			return err
		}
		for p := range w.dirty {
			st.dirty[p] = true
			x, o := w.rows[p], old[p]
			if x != nil && o != nil && o.Blob != "" && x.now == o.baseline() {
				w.confirm(x)
			}
		}
	}
	if err := r.keepDeletions(ctx, id, st, old); err != nil {
		return err
	}
	return r.save(ctx, id, st, head, nil)
}

// keepDeletions keeps confirmed deletions across a purge. It reads them from the decisions,
// because no commit records that a person confirmed a deletion.
func (r *Reviews) keepDeletions(ctx context.Context, id space.SpaceID, st *state, old map[space.Path]*row) error {
	var rows []decisionRow
	err := r.o.DB.Read(ctx).Where("space_id = ? AND decision = ? AND blob = ''", string(id), kept).Find(&rows).Error
	if err != nil {
		return fmt.Errorf("find what deletions were kept: %w", err)
	}
	for _, d := range rows {
		p := space.Path(d.Path)
		x := st.rows[p]
		if o := old[p]; x == nil || o != nil && o.Blob != "" {
			continue
		}
		x.know(content{}, "")
		if x.now.blob == "" {
			delete(st.rows, p)
		}
	}
	return nil
}

// compare lists the paths whose content at head differs from the baseline.
func (r *Reviews) compare(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) ([]space.Review, error) {
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
	out := []space.Review{}
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
	slices.SortFunc(out, func(a, b space.Review) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// roots returns the directories in which every file is checked, because every client gets
// these files.
func roots() []space.Path { return []space.Path{"resources", "skills"} }

// Covers reports whether a person confirms what AIs write at a path.
func Covers(p space.Path) bool {
	for _, u := range roots() {
		if p == u || strings.HasPrefix(string(p), string(u)+"/") {
			return true
		}
	}
	return false
}

// parent returns the directory that a path is in; "" is the root.
func parent(p space.Path) space.Path {
	return p[:max(0, strings.LastIndexByte(string(p), '/'))]
}
