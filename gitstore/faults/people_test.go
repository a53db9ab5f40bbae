//go:build unix

package faults

import (
	"errors"
	"fmt"
)

// What people do at the remote with plain git, while writers work.

// person pushes a change. Where somebody was faster, it is made again from
// what is there then.
func (s *schedule) person() {
	s.ops++
	op := fmt.Sprintf("h-%d", s.ops)
	for try := 0; ; try++ {
		tip, err := s.repo.tip("refs/heads/" + s.branch)
		s.must(err)
		from := view{}
		if tip != "" {
			from, err = s.repo.view(tip)
			s.must(err)
		}
		e := newEdit(from, s.rng, op)
		pushed, err := s.repo.push(s.branch, tip, op, e.changes, false)
		if errors.Is(err, errLocked) {
			return // pushes are refused
		}
		s.must(err)
		if !pushed && try < 5 {
			continue
		}
		s.note("a person pushes %s: %v", op, pushed)
		if pushed {
			s.remember(op)
		}
		return
	}
}

// remember notes what a person pushed: the newest commit that says so.
func (s *schedule) remember(op string) {
	tip, err := s.repo.tip("refs/heads/" + s.branch)
	s.must(err)
	if tip == "" {
		return
	}
	h, err := s.repo.history(tip)
	s.must(err)
	for _, c := range h.commits {
		if c.op == op {
			s.taken[c.id] = op
			s.stats.add("people's pushes", 1)
		}
	}
}

// force throws the newest commits of the branch away and puts another in their
// place. What people had pushed there is gone by their own wish, unless a
// writer had it already; what writers acknowledged must come back.
func (s *schedule) force() {
	tip, err := s.repo.tip("refs/heads/" + s.branch)
	s.must(err)
	if tip == "" {
		return
	}
	h, err := s.repo.history(tip)
	s.must(err)
	to := tip
	for range 1 + s.rng.IntN(2) {
		if ps := h.commits[to].parents; len(ps) > 0 {
			to = ps[0]
		}
	}
	if to == tip {
		return
	}
	from, err := s.repo.view(to)
	s.must(err)
	s.ops++
	op := fmt.Sprintf("h-%d", s.ops)
	pushed, err := s.repo.push(s.branch, to, op, newEdit(from, s.rng, op).changes, true)
	if errors.Is(err, errLocked) {
		return
	}
	s.must(err)
	s.note("a person force-pushes %s over %s: %v", op, tip, pushed)
	if pushed {
		s.forget()
		s.remember(op)
		s.stats.add("force-pushes", 1)
	}
}

// forget leaves out of what people pushed what the branch has no more.
func (s *schedule) forget() {
	tip, err := s.repo.tip("refs/heads/" + s.branch)
	s.must(err)
	h := &history{commits: map[string]*commit{}}
	if tip != "" {
		h, err = s.repo.history(tip)
		s.must(err)
	}
	for id := range s.taken {
		if h.commits[id] == nil {
			delete(s.taken, id)
		}
	}
}

// deleteBranch deletes the branch, and so empties the repository.
func (s *schedule) deleteBranch() {
	tip, err := s.repo.tip("refs/heads/" + s.branch)
	s.must(err)
	if tip == "" {
		return
	}
	if _, err := git(s.srv.Dir(repoName), "update-ref", "-d", "refs/heads/"+s.branch); err != nil {
		s.note("a person could not delete the branch: %v", err)
		return
	}
	s.note("a person deletes the branch")
	s.stats.add("branches deleted", 1)
	s.taken = map[string]string{} // gone by people's own wish, unless a writer had it
}

// renameBranch renames the default branch, once, while both writers are in step
// with it and stopped, and waits until both have found out, with changes of
// their own. A push that comes at the very moment of the renaming would make the
// old branch again; so does one that finds the new branch with another history,
// after a force-push or without any commit, for then nothing reports that it is
// the same.
func (s *schedule) renameBranch() {
	if s.branch != mainline {
		return
	}
	s.mu.Lock()
	s.calm = true
	s.mu.Unlock()
	s.heal()
	if s.t.Failed() {
		return
	}
	for _, p := range s.procs {
		s.must(p.quit())
	}
	dir := s.srv.Dir(repoName)
	_, err := git(dir, "branch", "-m", mainline, "trunk")
	s.must(err)
	s.branch = "trunk"
	s.note("a person renames the branch")
	s.stats.add("branches renamed", 1)
	for _, p := range s.procs {
		s.commit(p)
	}
	s.heal()
	s.mu.Lock()
	s.calm = false
	s.mu.Unlock()
}
