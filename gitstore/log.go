package gitstore

import (
	"container/heap"
	"context"
	"slices"
	"strings"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// staleClock is after how many commits in a row that are too old Log looks for
// no more.
const staleClock = 20

// Log lists commits, newest first, without their files. A commit comes before
// its parents. With Path, a merge is left out where it took the path as one of
// its parents had it, as git does.
func (s *Store) Log(ctx context.Context, id space.SpaceID, o space.LogQuery) ([]space.Commit, error) {
	r, st, release, err := s.at(ctx, id, o.From)
	if err != nil {
		return nil, err
	}
	defer release()
	if o.Limit <= 0 {
		o.Limit = 50
	}
	o.Limit = min(o.Limit, 1000)
	if o.After != "" {
		if _, err := r.resolve(string(o.After)); err != nil {
			return nil, err
		}
	}
	var out []space.Commit
	passed := o.After == ""
	older := 0 // commits in a row that are older than Since
	err = r.history(ctx, st.id, string(o.Path), func(h packfile.Hash, c commits.Raw, touches bool) (bool, error) {
		if c.Time.Before(o.Since) {
			// Clocks differ, so that a few more are looked at, as git does.
			older++
			return older < staleClock || !passed, nil
		}
		older = 0
		if !passed {
			passed = packfile.CommitID(h) == o.After
			return true, nil
		}
		if !touches || !o.Until.IsZero() && !c.Time.Before(o.Until) {
			return true, nil
		}
		x := r.proven(c, h)
		if len(o.Tools) > 0 && !slices.Contains(o.Tools, x.Tool) {
			return true, nil
		}
		if o.Tool != "" && x.Tool != o.Tool || o.Client != "" && x.Client != o.Client && !strings.HasPrefix(x.Client, o.Client+"/") {
			return true, nil
		}
		x.Changed = true
		out = append(out, x)
		return len(out) < o.Limit, nil
	})
	if err != nil {
		return nil, err
	}
	if !passed {
		return nil, fault.New(fault.NotFound, "The commit %s is not in this history.", o.After.Short())
	}
	return out, nil
}

// history visits commits from h on, by time, children first, until visit
// returns false. With a path, it follows only parents that may have changed it
// and reports whether a commit did.
func (r *repo) history(ctx context.Context, h packfile.Hash, path string, visit func(packfile.Hash, commits.Raw, bool) (bool, error)) error {
	q := &byTime{}
	seen := map[packfile.Hash]bool{}
	push := func(h packfile.Hash) error {
		if seen[h] {
			return nil
		}
		seen[h] = true
		c, err := commits.Get(r.db, h)
		if err != nil {
			return r.internalf(err, "log")
		}
		heap.Push(q, datedCommit{h, c, len(seen)})
		return nil
	}
	if err := push(h); err != nil {
		return err
	}
	for q.Len() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := heap.Pop(q).(datedCommit)
		follow, touches := d.c.Parents, true
		if path != "" {
			var err error
			if follow, touches, err = r.touching(d.c, path); err != nil {
				return r.internalf(err, "log")
			}
		}
		more, err := visit(d.h, d.c, touches)
		if err != nil || !more {
			return err
		}
		for _, p := range follow {
			if err := push(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// touching reports whether a commit changed a path against all its parents, and
// which parents to follow: the one that has the path unchanged, else all.
func (r *repo) touching(c commits.Raw, path string) (follow []packfile.Hash, touches bool, err error) {
	mine, err := r.trees().Lookup(c.Tree, path)
	if err != nil {
		return nil, false, err
	}
	if len(c.Parents) == 0 {
		return nil, mine.Found, nil
	}
	for _, p := range c.Parents {
		pc, err := commits.Get(r.db, p)
		if err != nil {
			return nil, false, err
		}
		theirs, err := r.trees().Lookup(pc.Tree, path)
		if err != nil {
			return nil, false, err
		}
		if theirs.Found == mine.Found && (!mine.Found || theirs.Hash == mine.Hash && theirs.Mode == mine.Mode) {
			return []packfile.Hash{p}, false, nil
		}
	}
	return c.Parents, true, nil
}

type datedCommit struct {
	h     packfile.Hash
	c     commits.Raw
	order int
}

// byTime is a heap: newest first, then as they were found.
type byTime []datedCommit

func (q byTime) Len() int      { return len(q) }
func (q byTime) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q byTime) Less(i, j int) bool {
	if !q[i].c.Time.Equal(q[j].c.Time) {
		return q[i].c.Time.After(q[j].c.Time)
	}
	return q[i].order < q[j].order
}
func (q *byTime) Push(x any) { *q = append(*q, x.(datedCommit)) }
func (q *byTime) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// Show returns one commit with the files that it changed against its first
// parent.
func (s *Store) Show(ctx context.Context, id space.SpaceID, at space.CommitID) (space.Commit, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Commit{}, err
	}
	defer release()
	raw, err := commits.Get(r.db, st.id)
	if err != nil {
		return space.Commit{}, r.internalf(err, "show")
	}
	var parent packfile.Hash
	if len(raw.Parents) > 0 {
		p, err := r.state(raw.Parents[0])
		if err != nil {
			return space.Commit{}, r.internalf(err, "show")
		}
		parent = p.tree
	}
	c := r.proven(raw, st.id)
	c.Changed = true
	c.Files, err = r.diff(ctx, parent, st.tree)
	return c, err
}

// under reports whether path is p or below it; everything is under "".
func under(path, p string) bool {
	return p == "" || path == p || strings.HasPrefix(path, p+"/")
}
