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
	return s.made(ctx, id, func(space.CommitID) bool { return true })
}

// MadeOf is Made of some commits alone, for pages.
func (s *Store) MadeOf(ctx context.Context, id space.SpaceID, commits []space.CommitID) (map[space.CommitID]bool, error) {
	asked := make(map[space.CommitID]bool, len(commits))
	for _, c := range commits {
		asked[c] = true
	}
	return s.made(ctx, id, func(c space.CommitID) bool { return asked[c] })
}

func (s *Store) made(ctx context.Context, id space.SpaceID, wanted func(space.CommitID) bool) (map[space.CommitID]bool, error) {
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
	out := map[space.CommitID]bool{}
	for _, l := range lines {
		// Who did it stands before the tab, and has none.
		if _, why, _ := strings.Cut(l.rest, "\t"); strings.HasPrefix(why, committing) {
			if c := commitID(l.now); wanted(c) {
				out[c] = true
			}
		}
	}
	return out, nil
}
