package history

import (
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// movedFrom returns the path from which a commit moved p, and the parent of the commit. The
// history of p continues at from, starting with that parent. Both are empty if the commit
// did not move p, if more than one deleted path has the same contents as p, or if the commit
// changed more than [web.MaxMoved] files.
func (s *pages) movedFrom(v *web.Visit, m service.View, p space.Path, c space.Commit) (from space.Path, before space.CommitID, err error) {
	if c.Parent == "" {
		return "", "", nil
	}
	if _, err := m.Lookup(v.R.Context(), c.Parent, p); fault.CodeOf(err) != fault.NotFound {
		return "", "", err // the path existed before
	}
	files, total, err := m.Changes(v.R.Context(), c.Parent, c.ID, "", web.MaxMoved)
	if err != nil || total > len(files) {
		return "", "", err
	}
	type content struct {
		blob space.BlobID
		mode space.Mode
	}
	gone := map[content][]space.Path{}
	for _, f := range files {
		if f.Status == space.Deleted {
			gone[content{f.Old, f.OldMode}] = append(gone[content{f.Old, f.OldMode}], f.Path)
		}
	}
	was := map[space.Path]int{}
	came := 0
	for _, f := range files {
		below, in := strings.CutPrefix(string(f.Path), string(p))
		if !in || below != "" && below[0] != '/' {
			continue
		}
		if f.Status != space.Added {
			return "", "", nil
		}
		came++
		for _, g := range gone[content{f.New, f.NewMode}] {
			if top, ok := strings.CutSuffix(string(g), below); ok && top != "" {
				was[space.Path(top)]++
			}
		}
	}
	for top, n := range was {
		if n != came {
			continue
		}
		if from != "" {
			return "", "", nil
		}
		from = top
	}
	if from == "" {
		return "", "", nil
	}
	return from, c.Parent, nil
}
