package reviews

import (
	"context"
	"slices"

	"satchel/gitstore"
	"satchel/internal/database"
	"satchel/internal/space"
)

// stepper takes in commits one after the other, each after its parents.
type stepper struct {
	*Reviews
	id    space.SpaceID
	to    space.CommitID // the last of them
	rows  map[space.Path]*row
	dirty map[space.Path]bool // what the commits touched
	whole bool                // also what nobody knows and is gone stays in rows
	// made are the commits whose trailers can be believed: this server made them, or
	// they are of the history that the space was filled with in place of adopted.
	made    map[space.CommitID]bool
	adopted space.CommitID
	// plain are those of the history that the space was filled with in which no AI of
	// a Satchel had a part so far.
	plain    map[space.CommitID]bool
	unseen   unseen
	makers   *makers
	steps    []gitstore.Step
	at       int                  // which of steps is taken in
	beside   map[space.BlobID]int // see lookBeside; nil where it was not looked for
	besideAt map[space.Path][]beside
	texts    map[space.BlobID]lineSet // some that were compared, which stay as they are
	tree     *contents                // nil where none was looked at
	past     *past                    // nil where none was looked through
	turn     *walker                  // nil where it is none of those that read in the background
	since    int                      // commits since another had a turn
}

func (r *Reviews) stepper(id space.SpaceID, st *state, to space.CommitID) *stepper {
	return &stepper{Reviews: r, id: id, to: to, rows: st.rows, dirty: st.dirty, unseen: st.unseen, makers: st.makers, turn: st.walker}
}

// breathe is called at each commit, and lets others read their histories now and then.
func (w *stepper) breathe(ctx context.Context) error {
	if w.since++; w.since < partSteps || w.turn == nil {
		return ctx.Err()
	}
	w.since = 0
	return w.turn.pause(ctx)
}

// trust finds out whose trailers can be believed. A person who fills a space
// believes the history that they fill it with, which could as well have none. From
// later on that history is not read any more.
func (w *stepper) trust(ctx context.Context, begin bool) (err error) {
	if w.made, err = w.o.Git.Made(ctx, w.id); err != nil || !begin {
		return err
	}
	first, tip, ok, err := w.o.Git.Adopted(ctx, w.id)
	if err != nil || !ok {
		return err
	}
	steps, _, _, err := w.o.Git.Way(ctx, w.id, "", tip, roots())
	if err != nil {
		return err
	}
	w.adopted = first
	if w.made == nil {
		w.made = make(map[space.CommitID]bool, len(steps))
	}
	w.plain = map[space.CommitID]bool{}
	for _, s := range steps {
		w.made[s.ID] = true
		if !s.Named {
			w.plain[s.ID] = true
		}
	}
	return nil
}

// change is a file that a commit changed.
type change struct {
	path     space.Path
	old, now content
}

// changes lists what a commit made. sides are what it took from one of several
// parents.
func (w *stepper) changes(ctx context.Context, c space.Commit, s gitstore.Step) (files, sides []change, err error) {
	count := map[space.Path]int{}
	var all []change
	take := func(list []space.FileChange) {
		for _, f := range list {
			if !Covers(f.Path) {
				continue
			}
			if count[f.Path]++; count[f.Path] == 1 {
				all = append(all, change{f.Path, content{f.Old, f.OldMode}, content{f.New, f.NewMode}})
			}
		}
	}
	take(c.Files)
	for _, p := range s.Parents[min(1, len(s.Parents)):] {
		list, err := w.o.Git.Diff(ctx, w.id, p, s.ID)
		if err != nil {
			return nil, nil, err
		}
		take(list)
	}
	for _, f := range all {
		if count[f.path] == max(1, len(s.Parents)) {
			files = append(files, f)
		} else {
			sides = append(sides, f)
		}
	}
	return files, sides, nil
}

// step takes in what one commit changed.
func (w *stepper) step(ctx context.Context, s gitstore.Step) error {
	if err := w.breathe(ctx); err != nil {
		return err
	}
	c, err := w.o.Git.Show(ctx, w.id, s.ID)
	if err != nil {
		return err
	}
	files, sides, err := w.changes(ctx, c, s)
	if err != nil {
		return err
	}
	ours := c.Tool != "" && w.made[c.ID]
	// A merge confirms nothing: git alone may have put it together. Nor does what an
	// AI made and a person's git applied again.
	person := len(s.Parents) < 2 && slices.Contains(w.o.Confirming, c.Tool) && (ours || c.Tool == "" && !s.Traced)
	moving := ours && slices.Contains(w.o.Moving, c.Tool)
	if c.Tool != "" && !ours && (slices.Contains(w.o.Confirming, c.Tool) || space.MadeHere(c.Tool)) {
		// What it says of itself need not be so, unless it says that an AI made it.
		c.Tool, c.Client = space.Elsewhere, ""
	}
	by := maker{string(c.ID), c.Tool, c.Client, database.Millis(c.Time)}
	for _, f := range sides {
		// Where the other side was looked at last, the merge brought this one back.
		if x := w.rows[f.path]; x == nil || x.seen && x.now != f.now {
			w.unseen.note(w.touch(f, by))
		}
	}
	var carried map[space.Path]carry
	var brought map[space.Path]bool
	if moving || person {
		carried = carries(files, c.Files, w.rows, by, person)
	}
	if person && c.Tool == "" {
		if brought, err = w.brought(ctx, c, s, files, carried); err != nil {
			return err
		}
	}
	for _, f := range files {
		x := w.touch(f, by)
		k, moved := carried[f.path]
		switch {
		case moved:
			x.madeBy(k.by)
			x.Blob, x.Mode, x.Base = string(k.known.blob), int(k.known.mode), ""
			if k.known == f.now {
				x.know(f.now, c.ID)
			}
		case moving && f.now.blob == "":
			x.know(content{}, "")
		case person && (f.now.blob == "" || f.old == x.baseline() && !brought[f.path] || f.now == x.baseline()):
			// They had before them what they knew, or left nothing that they did not:
			// what they wrote into an AI's version is no word on the rest of it.
			x.know(f.now, c.ID)
		case ours && space.MadeHere(c.Tool):
			if err := w.broughtBack(ctx, x); err != nil {
				return err
			}
		}
		w.makers.note(x)
		w.unseen.note(x)
		if !w.whole && x.Blob == "" && f.now.blob == "" {
			delete(w.rows, f.path) // nobody knew it, and it is gone
		}
	}
	return nil
}

// touch notes what a path has, and who made it.
func (w *stepper) touch(f change, by maker) *row {
	x := w.rows[f.path]
	if x == nil {
		x = &row{Path: string(f.path)}
		w.rows[f.path] = x
	}
	x.now, x.seen = f.now, true
	x.madeBy(by)
	w.dirty[f.path] = true
	return x
}
