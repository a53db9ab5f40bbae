package gitstore

import (
	"context"
	"time"

	"satchel/gitstore/commits"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// Dates returns when files last changed. The result has the files of the commit "to" that are
// not the same in the commit "from". A file's date is the author date of the newest commit that
// changed it. An empty from is the empty tree, an empty to is head. Dates follows first parents, so
// that a file from a merge has the date of the merge. It stops at from, once every such file
// has its date, or after Options.DateCommits commits. Files that changed only before that are
// not in the result.
func (s *Store) Dates(ctx context.Context, id space.SpaceID, from, to space.CommitID) (map[space.Path]time.Time, error) {
	r, st, release, err := s.at(ctx, id, to)
	if err != nil {
		return nil, err
	}
	defer release()
	start := &headState{}
	if from != "" {
		if start, err = r.resolve(string(from)); err != nil {
			return nil, err
		}
	}
	dates, err := r.dates(ctx, start, st)
	if err != nil {
		return nil, r.internalf(err, "dates")
	}
	return dates, nil
}

func (r *repo) dates(ctx context.Context, from, to *headState) (map[space.Path]time.Time, error) {
	var changes []trees.Change
	if err := r.trees().Diff(ctx, from.tree, to.tree, &changes); err != nil {
		return nil, err
	}
	undated := make(map[string]bool, len(changes))
	for _, c := range changes {
		if c.New.IsFile() {
			undated[c.Path] = true
		}
	}
	dates := make(map[space.Path]time.Time, len(undated))
	at := to.id
	c, err := commits.Get(r.db, at)
	for walked := 0; err == nil && len(undated) > 0 && at != from.id; walked++ {
		if walked == r.s.o.DateCommits {
			r.logger().Info("The history is too long to follow to its beginning; some files have no date.", "commits", walked, "files", len(undated))
			break
		}
		var parent commits.Raw // stays zero if c has no parent; its tree is then empty
		if len(c.Parents) > 0 {
			if parent, err = commits.Get(r.db, c.Parents[0]); err != nil {
				break
			}
		}
		changes = changes[:0]
		if err = r.trees().Diff(ctx, parent.Tree, c.Tree, &changes); err != nil {
			break
		}
		for _, f := range changes {
			if undated[f.Path] {
				delete(undated, f.Path)
				dates[space.Path(f.Path)] = c.Authored
			}
		}
		if len(c.Parents) == 0 {
			break
		}
		at, c = c.Parents[0], parent
	}
	return dates, err
}
