package reviews

import (
	"context"
	"path"
	"slices"

	"satchel/gitstore"
	"satchel/internal/database"
	"satchel/internal/space"
)

// stepper processes commits one at a time, each after its parents.
type stepper struct {
	*Reviews
	id     space.SpaceID
	rows   map[space.Path]*row
	dirty  map[space.Path]bool // the paths that the commits changed
	waited *waited
	turn   *walker // nil if the stepper does not run in the background
	since  int     // commits since the last pause
}

func (r *Reviews) stepper(id space.SpaceID, st *state) *stepper {
	return &stepper{Reviews: r, id: id, rows: st.rows, dirty: st.dirty, waited: &st.waited, turn: st.walker}
}

// breathe is called at each commit. From time to time it lets the reads of other spaces go first.
func (w *stepper) breathe(ctx context.Context) error {
	if w.since++; w.since < partSteps || w.turn == nil {
		return ctx.Err()
	}
	w.since = 0
	return w.turn.pause(ctx)
}

// change is a file that a commit changed.
type change struct {
	path space.Path
	was  []content // the contents in the parents that differ
	now  content
}

// changes lists the files that differ from some parent of a commit.
func (w *stepper) changes(ctx context.Context, c space.Commit, parents []space.CommitID) ([]change, error) {
	var all []change
	at := map[space.Path]int{}
	take := func(list []space.FileChange) {
		for _, f := range list {
			if !Covers(f.Path) {
				continue
			}
			i, ok := at[f.Path]
			if !ok {
				i = len(all)
				at[f.Path] = i
				all = append(all, change{path: f.Path, now: content{f.New, f.NewMode}})
			}
			all[i].was = append(all[i].was, content{f.Old, f.OldMode})
		}
	}
	take(c.Files)
	for _, p := range parents[min(1, len(parents)):] {
		list, err := w.o.Git.Diff(ctx, w.id, p, c.ID)
		if err != nil {
			return nil, err
		}
		take(list)
	}
	return all, nil
}

// author is what the method judge needs to know about a commit's author.
type author struct {
	maker
	proven bool // Satchel made the commit
	person bool // a person wrote the files, or the commit is a merge
	moving bool // a person moved files on the pages
}

// authorOf returns the author of a commit. For Satchel's own commits the author is proven.
// Other commits are a person's, unless their trailers name a tool that is not a person's. So
// trailers can only make more files wait.
func (w *stepper) authorOf(c space.Commit, s gitstore.CommitBetween) author {
	a := author{maker: maker{string(c.ID), c.Tool, c.Client, database.Millis(c.Time)}}
	if c.Tool != "" {
		a.proven = true
		a.person = confirms(c.Tool) || len(s.Parents) > 1
		a.moving = c.Tool == space.ToolWebMove
		return a
	}
	if len(s.ClaimedTools) > 0 {
		a.tool = space.Elsewhere
	}
	a.person = !slices.ContainsFunc(s.ClaimedTools, func(tool string) bool {
		return !confirms(tool) && tool != space.ToolWebMove
	})
	return a
}

// step processes the changes of one commit.
func (w *stepper) step(ctx context.Context, s gitstore.CommitBetween) error {
	if err := w.breathe(ctx); err != nil {
		return err
	}
	c, err := w.o.Git.Show(ctx, w.id, s.ID)
	if err != nil {
		return err
	}
	files, err := w.changes(ctx, c, s.Parents)
	if err != nil {
		return err
	}
	by := w.authorOf(c, s)
	gone := map[content][]space.Path{} // files that the commit deletes
	for _, f := range files {
		if f.now.blob == "" {
			gone[f.was[0]] = append(gone[f.was[0]], f.path)
		}
	}
	found := make([]verdict, len(files))
	for i, f := range files {
		if found[i], err = w.judge(ctx, f, by, len(s.Parents), gone); err != nil {
			return err
		}
	}
	for i, f := range files {
		w.take(f, by.maker, found[i])
	}
	return nil
}

// verdict is the decision about a file that a commit changed.
type verdict struct {
	waits bool
	from  *row // the row of the moved file, if it waited
}

// judge decides whether a file waits after a commit with this number of parents.
func (w *stepper) judge(ctx context.Context, f change, by author, parents int, gone map[content][]space.Path) (v verdict, err error) {
	var known content
	if x := w.rows[f.path]; x != nil {
		known = x.baseline()
	}
	switch {
	case len(f.was) < parents: // a merge took the file unchanged from one side
		v.waits, err = w.hasWaited(ctx, f.path, f.now)
	case known == f.now:
	case !by.person && !by.moving:
		v.waits = true
	case f.now.blob == "":
	case f.was[0].blob == "" && len(gone[f.now]) > 0:
		return w.judgeMoved(ctx, f, gone[f.now])
	case parents > 1 && slices.ContainsFunc(f.was, func(k content) bool { return k.blob == "" }):
		// A merge wrote the file to a path that a side lacks, such as a conflict copy or a
		// renamed file. The file may have lines from any path of that side.
		v.waits = true
	case by.moving:
		v.waits = true
	default:
		v.waits, err = w.carries(ctx, f, by)
	}
	return v, err
}

// judgeMoved is like judge, for a file that was moved from one of the paths, preferably
// one with the same base name. The file waits if the content waited at one of these paths.
func (w *stepper) judgeMoved(ctx context.Context, f change, from []space.Path) (v verdict, err error) {
	var named []space.Path
	for _, p := range from {
		if path.Base(string(p)) == path.Base(string(f.path)) {
			named = append(named, p)
		}
	}
	if len(named) > 0 {
		from = named
	}
	for _, p := range from {
		is, err := w.hasWaited(ctx, p, f.now)
		if err != nil {
			return v, err
		}
		if is {
			v = verdict{true, &row{}}
			if x := w.rows[p]; x != nil {
				*v.from = *x
			}
		}
	}
	return v, nil
}

// carries reports whether a file that a person wrote contains content that waits: either
// the file was made from a waiting file, or a push brings exactly the waiting content
// again. A person who edits a waiting file does not confirm the rest of it.
func (w *stepper) carries(ctx context.Context, f change, by author) (bool, error) {
	of := f.was
	if !by.proven {
		of = append(of, f.now)
	}
	for _, k := range of {
		if k.blob == "" {
			continue
		}
		if is, err := w.hasWaited(ctx, f.path, k); err != nil || is {
			return is, err
		}
	}
	return false, nil
}

// take records a path's content, who made it, and whether it waits.
func (w *stepper) take(f change, by maker, v verdict) {
	x := w.rows[f.path]
	if x == nil {
		x = &row{Path: string(f.path)}
		w.rows[f.path] = x
	}
	x.now = f.now
	x.madeBy(by)
	w.dirty[f.path] = true
	switch {
	case v.from != nil:
		x.Blob, x.Mode, x.Base = v.from.Blob, v.from.Mode, ""
		x.madeBy(v.from.maker())
		fallthrough
	case v.waits:
		w.waited.note(f.path, f.now, true)
	default:
		w.confirm(x)
	}
	if x.Blob == "" && f.now.blob == "" {
		delete(w.rows, f.path) // nobody knew the file, and it is deleted
	}
}

// confirm makes a path's content its baseline.
func (w *stepper) confirm(x *row) {
	x.know(x.now, space.CommitID(x.CommitID))
	w.waited.note(space.Path(x.Path), x.now, false)
}
