package gitstore

import (
	"context"

	"satchel/internal/space"
)

// Contains reports whether a commit is in the history of another, tip, which is
// in its own. A commit that the space does not have is a fault.NotFound.
func (s *Store) Contains(ctx context.Context, id space.SpaceID, tip, commit space.CommitID) (bool, error) {
	r, newer, release, err := s.at(ctx, id, tip)
	if err != nil {
		return false, err
	}
	defer release()
	older, err := r.resolve(string(commit))
	if err != nil {
		return false, err
	}
	p, err := r.paint(ctx, newer.id, older.id)
	if err != nil {
		return false, r.internalf(err, "compare histories")
	}
	return p.colour[older.id] == paintBoth, nil
}
