package reviews

import (
	"context"
	"errors"
	"fmt"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// errNotWaiting reports that the decision is about content that does not wait.
func errNotWaiting(p space.Path) error {
	return fault.New(fault.Conflict, "The file %s has changed since you saw it, or somebody has already decided. Look at it again.", string(p))
}

// decide finds the review that waits at a path, checks that it concerns the content that
// the person saw, and carries out the decision.
func (r *Reviews) decide(ctx context.Context, id space.SpaceID, p space.Path, saw content, do func(ctx context.Context, st *state, w space.Review) error) error {
	st := r.state(id)
	within, cancel := context.WithTimeout(ctx, r.o.Act)
	defer cancel()
	release, err := st.take(within)
	if err == nil {
		defer release()
		if err = r.bring(within, id, st); errors.Is(err, errRaced) {
			err = r.bring(within, id, st)
		}
	}
	if err != nil {
		if ctx.Err() == nil && within.Err() != nil {
			r.look(id, st)
			return fault.New(fault.Unavailable, "The history of this space is still being read. Try again in a minute.")
		}
		return fmt.Errorf("reviews: %w", err)
	}
	st.mu.Lock()
	list := st.waiting
	st.mu.Unlock()
	for _, w := range list {
		if w.Path != p || w.Blob != saw.blob || w.Mode != saw.mode && saw.blob != "" {
			continue
		}
		// Content that is no longer there cannot be confirmed.
		b, m, _, err := r.o.Git.Blob(ctx, id, "", p)
		if err != nil {
			return fmt.Errorf("reviews: %w", err)
		}
		if b == saw.blob && (m == saw.mode || b == "") {
			return do(ctx, st, w)
		}
	}
	return errNotWaiting(p)
}

// The decisions, as stored in rows.
const (
	kept   = "kept"
	undone = "undone"
)

func (r *Reviews) decision(id space.SpaceID, w space.Review, decision string, by space.UserID) *decisionRow {
	return &decisionRow{
		SpaceID: string(id), Path: string(w.Path), Blob: string(w.Blob), CommitID: string(w.Commit), Client: w.Client,
		Decision: decision, DecidedBy: string(by), DecidedAt: database.Millis(r.o.Now()),
	}
}

// Keep confirms waiting content, which becomes the baseline. The error is a fault.Conflict
// if other content, or none, waits at the path.
func (r *Reviews) Keep(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID, m space.Mode) error {
	return r.decide(ctx, id, p, content{b, m}, func(ctx context.Context, st *state, w space.Review) error {
		old := st.rows[p]
		x := &row{Path: string(p)}
		if old != nil {
			*x = *old
		}
		x.know(content{w.Blob, w.Mode}, w.Head)
		x.now = content{w.Blob, w.Mode}
		st.rows[p], st.dirty[p] = x, true
		st.waited.note(p, x.now, false)
		if w.Blob == "" {
			delete(st.rows, p)
		}
		if err := r.save(ctx, id, st, st.cursor, r.decision(id, w, kept, by)); err != nil {
			st.rows = nil
			if errors.Is(err, errRaced) {
				return errNotWaiting(p)
			}
			return err
		}
		left := make([]space.Review, 0, len(st.waiting))
		for _, o := range st.waiting {
			if o.Path != p {
				left = append(left, o)
			}
		}
		st.publish(w.Head, left)
		return nil
	})
}

// inTheWay lists the files that must be deleted before a file can be at a path: those under
// it, or a file in place of one of its directories. The error is a fault.Conflict if a
// person knows one of them.
func (r *Reviews) inTheWay(ctx context.Context, id space.SpaceID, st *state, w space.Review) ([]space.Change, error) {
	list, err := r.o.Git.Files(ctx, id, w.Head, w.Path)
	if err != nil {
		return nil, err
	}
	for d := parent(w.Path); d != ""; d = parent(d) {
		b, m, ok, err := r.o.Git.Blob(ctx, id, w.Head, d)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, space.Entry{Path: d, Blob: b, Mode: m})
		}
	}
	var out []space.Change
	for _, f := range list {
		if x := st.rows[f.Path]; x != nil && x.baseline() == (content{f.Blob, f.Mode}) {
			return nil, fault.New(fault.Conflict, "The former version of %s cannot be restored, because %s is in its way and a person has reviewed it. Move or delete %[2]s first.", string(w.Path), string(f.Path))
		}
		out = append(out, space.Change{Path: string(f.Path), Op: space.Delete, Base: f.Blob, BaseMode: f.Mode})
	}
	return out, nil
}

// Undo restores, in a commit, the baseline of a path. Waiting files in its way are deleted.
// The error is a fault.Conflict if the path does not have the content that the person saw.
func (r *Reviews) Undo(ctx context.Context, id space.SpaceID, by space.UserID, p space.Path, b space.BlobID, mode space.Mode, m space.Meta) (c space.Commit, err error) {
	err = r.decide(ctx, id, p, content{b, mode}, func(ctx context.Context, st *state, w space.Review) error {
		var changes []space.Change
		if w.Taken {
			if changes, err = r.inTheWay(ctx, id, st, w); err != nil {
				return err
			}
		}
		change := space.Change{Path: string(p), Op: space.Delete, Base: w.Blob, BaseMode: w.Mode}
		if w.Was != "" {
			change.Op, change.Mode = space.Write, w.WasMode
			if change.Content, err = r.o.Git.ReadBlob(ctx, id, w.Was); err != nil {
				return err
			}
		}
		c, err = r.o.Git.Commit(ctx, id, space.ChangeSet{Changes: append(changes, change), Policy: space.RefuseStale}, m)
		if err != nil {
			return err
		}
		if len(c.Rejected) > 0 {
			return fault.New(fault.Invalid, "The former version of %s cannot be restored: %s", string(p), c.Rejected[0].Why)
		}
		// The commit is made, even if storing the decision fails.
		if err := r.save(ctx, id, st, st.cursor, r.decision(id, w, undone, by)); err != nil {
			st.rows = nil
			if !errors.Is(err, errRaced) {
				return err
			}
		}
		return nil
	})
	return c, err
}
