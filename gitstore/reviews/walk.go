package reviews

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"satchel/gitstore"
	"satchel/internal/database"
	"satchel/internal/space"
)

// Bounds of what is done at once.
const (
	partSteps  = 200 // commits that are looked into between two savings
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

// walk moves the baselines along the history from the cursor to head.
func (r *Reviews) walk(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) (touched bool, err error) {
	steps, passed, ok, err := r.o.Git.Way(ctx, id, st.cursor, head, roots())
	if err != nil {
		return false, err
	}
	if !ok {
		return true, r.again(ctx, id, st, head)
	}
	var made map[space.CommitID]bool
	if len(steps) > 0 {
		if made, err = r.o.Git.Made(ctx, id); err != nil {
			return false, err
		}
	}
	done := 0
	for _, s := range steps {
		if err := r.step(ctx, id, st.rows, st.dirty, made, s); err != nil {
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

// again reads a history from its beginning, where a purge or an import made another.
// What a person knew they know where it comes in that history too.
func (r *Reviews) again(ctx context.Context, id space.SpaceID, st *state, head space.CommitID) error {
	steps, _, _, err := r.o.Git.Way(ctx, id, "", head, roots())
	if err != nil {
		return err
	}
	made, err := r.o.Git.Made(ctx, id)
	if err != nil {
		return err
	}
	old := st.rows
	st.rows = map[space.Path]*row{}
	changed := map[space.Path]bool{}
	for _, s := range steps {
		clear(changed)
		if err := r.step(ctx, id, st.rows, changed, made, s); err != nil {
			return err
		}
		for p := range changed {
			if x, o := st.rows[p], old[p]; x != nil && o != nil && o.Blob != "" && x.now == o.baseline() {
				x.know(x.now, s.ID)
			}
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

// step takes in what one commit changed.
func (r *Reviews) step(ctx context.Context, id space.SpaceID, rows map[space.Path]*row, dirty map[space.Path]bool, made map[space.CommitID]bool, s gitstore.Step) error {
	c, err := r.o.Git.Show(ctx, id, s.ID)
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(c.Files, func(f space.FileChange) bool { return !Covers(f.Path) })
	for _, p := range s.Parents[min(1, len(s.Parents)):] {
		// A merge made what none of its parents has.
		list, err := r.o.Git.Diff(ctx, id, p, s.ID)
		if err != nil {
			return err
		}
		made := map[space.Path]bool{}
		for _, f := range list {
			made[f.Path] = true
		}
		files = slices.DeleteFunc(files, func(f space.FileChange) bool { return !made[f.Path] })
	}
	// A merge of another's confirms nothing: git alone may have put it together.
	confirms := slices.Contains(r.o.Confirming, c.Tool) && (len(s.Parents) < 2 || c.Tool != "")
	ours := c.Tool == ""
	if !ours {
		ours = made[c.ID]
	}
	confirms = confirms && ours
	if !ours {
		// What it says of itself need not be so, unless it says that an AI made it.
		if slices.Contains(r.o.Confirming, c.Tool) || strings.HasPrefix(c.Tool, "web-") {
			c.Tool, c.Client = Elsewhere, ""
		}
	}
	var carried map[space.Path]content
	if ours && slices.Contains(r.o.Moving, c.Tool) {
		carried = carry(files, rows)
	}
	for _, f := range files {
		x := rows[f.Path]
		if x == nil {
			x = &row{Path: string(f.Path)}
			rows[f.Path] = x
		}
		x.now = content{f.New, f.NewMode}
		x.CommitID, x.Tool, x.Client, x.Changed = string(c.ID), c.Tool, c.Client, database.Millis(c.Time)
		k, moved := carried[f.Path]
		if confirms {
			x.know(x.now, c.ID)
		} else if moved {
			x.know(k, c.ID)
		}
		dirty[f.Path] = true
		if x.Blob == "" && f.New == "" {
			delete(rows, f.Path) // nobody knew it, and it is gone
		}
	}
	return nil
}

// carry finds what a person knows of what they moved: the baselines that were at
// the former places, and that nothing is there any more.
func carry(files []space.FileChange, rows map[space.Path]*row) map[space.Path]content {
	out := map[space.Path]content{}
	var gone []space.FileChange
	for _, f := range files {
		if f.New == "" {
			gone = append(gone, f)
			out[f.Path] = content{}
		}
	}
	for _, f := range files {
		if f.New == "" {
			continue
		}
		// Of places that had the same content, the one that is most alike.
		best, most := -1, -1
		for i, g := range gone {
			if g.Old != f.New || g.OldMode != f.NewMode {
				continue
			}
			if n := sameEnd(string(g.Path), string(f.Path)); n > most {
				best, most = i, n
			}
		}
		if best < 0 {
			continue
		}
		if x := rows[gone[best].Path]; x != nil && x.baseline() == (content{f.New, f.NewMode}) {
			out[f.Path] = x.baseline()
		}
		gone = slices.Delete(gone, best, best+1)
	}
	return out
}

// sameEnd counts the bytes in which two paths end alike.
func sameEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
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
			now[f.Path] = content{f.New, f.NewMode}
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
	for p, x := range st.rows {
		if _, ok := now[p]; !ok && x.Blob != "" {
			out = append(out, x.review(content{}, head))
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
