package gitstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"satchel/internal/space"
)

// What the branch's log says begins with these: of a commit that was made here, and
// of a history from elsewhere that the space was filled with as it is.
const (
	committing = "commit: "
	adopting   = "import"
)

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
	return r.made(wanted)
}

func (r *repo) made(wanted func(space.CommitID) bool) (map[space.CommitID]bool, error) {
	lines, err := r.logged()
	if err != nil {
		return nil, r.internalf(err, "read the branch's log")
	}
	out := map[space.CommitID]bool{}
	for _, l := range lines {
		if strings.HasPrefix(l.why(), committing) {
			if c := commitID(l.now); wanted(c) {
				out[c] = true
			}
		}
	}
	return out, nil
}

// Adopted tells which first commit of a space's own gave way to a history from
// elsewhere that the space was filled with, and at which commit that ends; ok is
// false where the branch's log tells of none, as after a purge that wrote it anew.
func (s *Store) Adopted(ctx context.Context, id space.SpaceID) (first, tip space.CommitID, ok bool, err error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return "", "", false, err
	}
	defer release()
	lines, err := r.logged()
	if err != nil {
		return "", "", false, r.internalf(err, "read the branch's log")
	}
	for _, l := range lines {
		if why := l.why(); l.old.IsZero() || !strings.HasPrefix(why, committing) && !strings.HasPrefix(why, adopting) {
			continue
		}
		was, err := r.rawCommit(l.old)
		if errors.Is(err, errNoObject) {
			continue
		}
		if err != nil {
			return "", "", false, r.internalf(err, "adopted")
		}
		if len(was.parents) > 0 {
			return "", "", false, nil // a space can be filled only in the place of its first commit
		}
		p, err := r.paint(ctx, l.now, l.old)
		if err != nil {
			return "", "", false, r.internalf(err, "adopted")
		}
		if p.colour[l.old] != paintBoth {
			return commitID(l.old), commitID(l.now), true, nil
		}
	}
	return "", "", false, nil
}

// logged reads the branch's log.
func (r *repo) logged() ([]logLine, error) {
	b, err := os.ReadFile(r.logFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lines, _ := parseLog(b)
	return lines, err
}

// why is what a line says was done: who did it stands before the tab, and has none.
func (l logLine) why() string {
	_, why, _ := strings.Cut(l.rest, "\t")
	return why
}
