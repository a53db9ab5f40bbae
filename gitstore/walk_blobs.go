package gitstore

import (
	"bytes"
	"context"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// WalkBlobs visits the contents written by the commits in head's history, except the
// commits in the history of since (an empty since has none). It visits each content once
// for each path, at the newest such commit. The content of a link is its target.
// Messages, authors and committers have an empty path; each person is visited once. An
// error of visit ends the walk.
func (s *Store) WalkBlobs(ctx context.Context, id space.SpaceID, since space.CommitID, visit func(at space.CommitID, p space.Path, content []byte) error) error {
	r, head, release, err := s.at(ctx, id, "")
	if err != nil {
		return err
	}
	defer release()
	return r.walkBlobs(ctx, head, since, visit)
}

// walkBlobs is like WalkBlobs, for a head that may be in a quarantine.
func (r *repo) walkBlobs(ctx context.Context, head *headState, since space.CommitID, visit func(at space.CommitID, p space.Path, content []byte) error) error {
	known := map[packfile.Hash]bool{}
	if since != "" {
		old, err := r.resolve(string(since))
		if err != nil {
			return err
		}
		err = r.history(ctx, old.id, "", func(h packfile.Hash, _ commits.Raw, _ bool) (bool, error) {
			known[h] = true
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	type written struct {
		path string
		blob packfile.Hash
	}
	seen, named := map[written]bool{}, map[string]bool{}
	return r.history(ctx, head.id, "", func(h packfile.Hash, c commits.Raw, _ bool) (bool, error) {
		if known[h] {
			return true, nil
		}
		o, err := r.db.Read(h)
		if err != nil {
			return false, r.internalf(err, "contents")
		}
		header, message, _ := bytes.Cut(o.Data, []byte("\n\n"))
		words := [][]byte{message}
		for line := range bytes.Lines(header) {
			if from, to := commits.PersonIn(line); to > from && !named[string(line[from:to])] {
				named[string(line[from:to])] = true
				words = append(words, line[from:to])
			}
		}
		for _, w := range words {
			if err := visit(packfile.CommitID(h), "", w); err != nil {
				return false, err
			}
		}
		var parent packfile.Hash
		if len(c.Parents) > 0 {
			p, err := commits.Get(r.db, c.Parents[0])
			if err != nil {
				return false, r.internalf(err, "contents")
			}
			parent = p.Tree
		}
		var changes []trees.Change
		if err := r.trees().Diff(ctx, parent, c.Tree, &changes); err != nil {
			return false, r.internalf(err, "contents")
		}
		for _, x := range changes {
			w := written{x.Path, x.New.Hash}
			if !x.New.IsFile() || seen[w] {
				continue
			}
			seen[w] = true
			content, err := r.db.Blob(x.New.Hash)
			if err != nil {
				return false, r.internalf(err, "contents")
			}
			if err := visit(packfile.CommitID(h), space.Path(x.Path), content); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}
