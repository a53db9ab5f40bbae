package gitstore

import (
	"context"
	"fmt"

	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Restore makes a path, or everything with "", what it was at a commit, as a
// new commit on head: files that came since are deleted, and nothing leaves the
// history. Changed is false if it is so already. A path that neither the
// commit nor head has is a fault.NotFound. Paths and links that break today's
// rules, as imported histories may hold them, are listed in Rejected.
func (s *Store) Restore(ctx context.Context, id space.SpaceID, path space.Path, at space.CommitID, m space.Meta) (space.Commit, error) {
	r, then, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Commit{}, err
	}
	defer release()
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	head := r.head.Load()
	if path != "" {
		old, err := r.trees().Lookup(then.tree, string(path))
		if err != nil {
			return space.Commit{}, r.internalf(err, "restore")
		}
		cur, err := r.trees().Lookup(head.tree, string(path))
		if err != nil {
			return space.Commit{}, r.internalf(err, "restore")
		}
		if !(old.Found && old.Blocked == "") && !(cur.Found && cur.Blocked == "") {
			return space.Commit{}, notFoundPath(path, packfile.CommitID(then.id))
		}
	}
	files, err := r.diff(ctx, head.tree, then.tree)
	if err != nil {
		return space.Commit{}, err
	}
	var reqs []request
	var refused []space.Rejection
	for _, f := range files {
		// What stands in the way of a restored path goes with it.
		if !under(string(f.Path), string(path)) && !(f.Status == space.Deleted && path != "" && under(string(path), string(f.Path))) {
			continue
		}
		q, err := r.restoring(f)
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				return space.Commit{}, r.internalf(err, "restore")
			}
			refused = append(refused, rejection(string(f.Path), err))
			continue
		}
		reqs = append(reqs, q)
	}
	p, err := r.decide(ctx, head, reqs, space.RefuseStale)
	if err != nil {
		return space.Commit{}, err
	}
	p.refused = append(p.refused, refused...)
	if m.Message == "" {
		what := string(path)
		if what == "" {
			what = "everything"
		}
		m.Message = fmt.Sprintf("Restore %s to %s", what, packfile.CommitID(then.id).Short())
	}
	c, err := r.apply(ctx, p, m)
	if err == nil && c.Changed {
		r.committed(c)
	}
	return c, err
}

// restoring turns a difference from head into a request whose content the
// repository has.
func (r *repo) restoring(f space.FileChange) (request, error) {
	p, err := space.ParsePath(string(f.Path))
	if err != nil {
		return request{}, err
	}
	if err := r.checkWorkflow(p); err != nil {
		return request{}, err
	}
	q := request{path: p, raw: string(f.Path), base: f.Old, baseMode: f.OldMode, mode: f.NewMode, size: f.Size}
	if f.Status == space.Deleted {
		q.delete = true
		return q, nil
	}
	if q.hash, err = packfile.HashFrom(string(f.New)); err != nil {
		return q, err
	}
	if f.NewMode == space.Symlink {
		return q, r.checkLink(p, q.hash)
	}
	return q, nil
}
