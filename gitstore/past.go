package gitstore

import (
	"context"

	"satchel/internal/space"
)

// Past visits, newest first, the commits that are in the history of at ("" is head)
// and not in that of since ("" is nothing), each with the files that it changed
// against its first parent, in no order and without their sizes, until visit returns
// false. A since that is not there any more is nothing; where clocks went wrong, some
// of its history may be visited again. A commit that changed more
// files than Limits.Walk is a fault.TooLarge. Where the space is deleted meanwhile, it is
// a fault.NotFound.
func (s *Store) Past(ctx context.Context, id space.SpaceID, at, since space.CommitID, visit func(files []space.FileChange) bool) error {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return err
	}
	defer release()
	each := func(c rawCommit) (bool, error) {
		if r.gone.Load() {
			return false, errNoSpace() // whoever deletes it waits for its readers
		}
		var parent hash
		if len(c.parents) > 0 {
			p, err := r.rawCommit(c.parents[0])
			if err != nil {
				return false, r.internalf(err, "past")
			}
			parent = p.tree
		}
		var changes []treeChange
		if err := r.diffTrees(ctx, parent, c.tree, &changes); err != nil {
			return false, err
		}
		files := make([]space.FileChange, 0, len(changes))
		for _, x := range changes {
			f := space.FileChange{Path: space.Path(x.path)}
			if x.old.isFile() {
				f.Status, f.Old, f.OldMode = space.Deleted, blobID(x.old.hash), x.old.fileMode()
			}
			if x.new.isFile() {
				f.New, f.NewMode = blobID(x.new.hash), x.new.fileMode()
				if f.Status = space.Added; f.Old != "" {
					f.Status = space.Modified
				}
			}
			if f.Status != 0 {
				files = append(files, f)
			}
		}
		return visit(files), nil
	}
	if since != "" {
		if old, err := r.resolve(string(since)); err == nil {
			p, err := r.paint(ctx, st.id, old.id)
			if err != nil {
				return r.internalf(err, "past")
			}
			for _, d := range p.only(paintA) {
				if more, err := each(d.c); err != nil || !more {
					return err
				}
			}
			return nil
		}
	}
	return r.history(ctx, st.id, "", func(_ hash, c rawCommit, _ bool) (bool, error) { return each(c) })
}
