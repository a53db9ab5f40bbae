package gitstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"satchel/internal/space"
)

// committing begins what the branch's log says of a commit that was made here.
const committing = "commit: "

// Made returns the commits that this server made in a space, as its branch's log
// tells. What a commit says of itself in trailers can be believed of these alone:
// one that came from a remote or with an import says what whoever made it liked.
// Commits that a purge wrote anew, and those that Limits.Reflog has no room for,
// are not told.
func (s *Store) Made(ctx context.Context, id space.SpaceID) (map[space.CommitID]bool, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	b, err := os.ReadFile(r.logFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, r.internalf(err, "read the branch's log")
	}
	lines, _ := parseLog(b)
	out := make(map[space.CommitID]bool, len(lines))
	for _, l := range lines {
		// Who did it stands before the tab, and has none.
		if _, why, _ := strings.Cut(l.rest, "\t"); strings.HasPrefix(why, committing) {
			out[commitID(l.now)] = true
		}
	}
	return out, nil
}
