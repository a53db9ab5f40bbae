//go:build unix

package faults

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What must hold when a schedule has healed:
//
//  1. Both spaces' heads are the tip of the remote's branch, and each says that
//     it is pushed.
//  2. Every commit that a writer acknowledged is in the tip's history, and so is
//     every push of a person that the remote took, unless a person's force-push
//     threw it away. A space's very first commit, made before it met the remote,
//     may be adopted instead: then its content is there.
//  3. An acknowledged commit has all that its change brought, but for what the
//     answer named as refused, at the path or in a conflict copy. A commit
//     removes nothing that its author did not mean to remove.
//  4. Nothing is lost by a merge. Every line has a token of its own. A token
//     that any tree of the history has is in the final tree too, unless a commit
//     of one parent removed it from a file: that is somebody who had seen it
//     and replaced, deleted or merged it by hand. So of two changes to one line
//     both are in the final tree, at the path or in a conflict copy, until
//     somebody who saw one changes it again; an edit outlives a deletion on the
//     other side; and both names of a file that was renamed twice stay.
//  5. No conflict marker is in any file.
//  6. git fsck --full --strict finds nothing, at the remote and in both spaces.

// history is what a tip reaches.
type history struct {
	repo    *repo
	commits map[string]*commit
	trees   map[string]map[string]int // by tree: in how many files each token is
	blobs   map[string][]string
}

type commit struct {
	id, tree string
	parents  []string
	op       string // of its message; empty if it is nobody's change
	message  string
}

func (r *repo) history(tip string) (*history, error) {
	h := &history{repo: r, commits: map[string]*commit{}, trees: map[string]map[string]int{}, blobs: map[string][]string{}}
	for left := []string{tip}; len(left) > 0; {
		id := left[len(left)-1]
		left = left[:len(left)-1]
		if h.commits[id] != nil {
			continue
		}
		_, kind, data, err := r.object(id)
		if err != nil {
			return nil, err
		}
		if kind != "commit" {
			return nil, fmt.Errorf("commit %s is missing or a %q", id, kind)
		}
		c := &commit{id: id}
		head, msg, _ := strings.Cut(string(data), "\n\n")
		for l := range strings.Lines(head) {
			switch k, v, _ := strings.Cut(strings.TrimSpace(l), " "); k {
			case "tree":
				c.tree = v
			case "parent":
				c.parents = append(c.parents, v)
			}
		}
		c.message = msg
		if subject, _, _ := strings.Cut(msg, "\n"); strings.HasPrefix(subject, opMark) {
			c.op = strings.TrimPrefix(subject, opMark)
		}
		h.commits[id] = c
		left = append(left, c.parents...)
	}
	return h, nil
}

// tokens counts in how many files below a tree each token is.
func (h *history) tokens(tree string) (map[string]int, error) {
	if n, ok := h.trees[tree]; ok {
		return n, nil
	}
	_, kind, data, err := h.repo.object(tree)
	if err != nil {
		return nil, err
	}
	if kind != "tree" {
		return nil, fmt.Errorf("tree %s is missing", tree)
	}
	n := map[string]int{}
	for len(data) > 0 {
		head, rest, _ := bytes.Cut(data, []byte{0})
		id := fmt.Sprintf("%x", rest[:20])
		data = rest[20:]
		if bytes.HasPrefix(head, []byte("40000 ")) {
			below, err := h.tokens(id)
			if err != nil {
				return nil, err
			}
			for t, k := range below {
				n[t] += k
			}
			continue
		}
		ts, ok := h.blobs[id]
		if !ok {
			_, kind, content, err := h.repo.object(id)
			if err != nil {
				return nil, err
			}
			if kind != "blob" {
				return nil, fmt.Errorf("blob %s is missing", id)
			}
			if bytes.Contains(content, []byte("<<<<<<<")) {
				return nil, fmt.Errorf("a conflict marker is in %s (blob %s)", head, id)
			}
			ts = tokensOf(content)
			h.blobs[id] = ts
		}
		for _, t := range ts {
			n[t]++
		}
	}
	h.trees[tree] = n
	return n, nil
}

// removed returns the tokens that a commit of at most one parent took out of a
// file.
func (h *history) removed(c *commit) ([]string, error) {
	if len(c.parents) != 1 {
		return nil, nil
	}
	was, err := h.tokens(h.commits[c.parents[0]].tree)
	if err != nil {
		return nil, err
	}
	is, err := h.tokens(c.tree)
	if err != nil {
		return nil, err
	}
	var out []string
	for t, n := range was {
		if is[t] < n {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out, nil
}

// check holds the rules 2 to 5 against the history of the final tip. intents
// and acks are all that writers said; taken are people's pushes by their
// commits, those that were thrown away left out.
func (h *history) check(tip string, said []event, taken map[string]string) []string {
	var bad []string
	fail := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	intents := map[string]event{}
	for _, e := range said {
		if e.Is == "intent" {
			intents[e.Op] = e
		}
	}
	for _, e := range said {
		if e.Is != "acked" {
			continue
		}
		c := h.commits[string(e.Commit)]
		if !e.Changed {
			// The answer names the head that had all of it already, which may be
			// a space's first commit.
			for p, ts := range intents[e.Op].Adds {
				if len(ts) > 0 && !slices.Contains(e.Refused, p) {
					fail("rule 3: op %s was acknowledged as no change, and it brought %s", e.Op, ts)
				}
			}
			continue
		}
		if c == nil {
			fail("rule 2: commit %s of op %s was acknowledged and is not in the remote's history", e.Commit, e.Op)
			continue
		}
		has, err := h.tokens(c.tree)
		if err != nil {
			fail("%v", err)
			continue
		}
		for p, ts := range intents[e.Op].Adds {
			if slices.Contains(e.Refused, p) {
				continue
			}
			for _, t := range ts {
				if has[t] == 0 {
					fail("rule 3: %s of op %s, for %s, is not in its commit %s", t, e.Op, p, e.Commit)
				}
			}
		}
	}
	for id, op := range taken {
		if h.commits[id] == nil {
			fail("rule 2: the person's commit %s, op %s, is not in the remote's history", id, op)
		}
	}
	excused, all := map[string]bool{}, map[string]string{}
	for _, c := range h.commits {
		gone, err := h.removed(c)
		if err != nil {
			fail("%v", err)
		}
		for _, t := range gone {
			excused[t] = true
			if in, writers := intents[c.op]; (writers || c.op == "") && !slices.Contains(in.Removes, t) {
				fail("rule 3: commit %s, op %q, removed %s, which nobody meant to remove", c.id, c.op, t)
			}
		}
		has, err := h.tokens(c.tree)
		if err != nil {
			fail("%v", err)
		}
		for t := range has {
			all[t] = c.id
		}
	}
	final, err := h.tokens(h.commits[tip].tree)
	if err != nil {
		fail("%v", err)
	}
	for _, t := range slices.Sorted(maps.Keys(all)) {
		if final[t] == 0 && !excused[t] {
			fail("rule 4: %s was in commit %s, nobody removed it, and it is not in the final tree", t, all[t])
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// fsck has git look at all of a repository.
func fsck(dir string) error {
	out, err := git(dir, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
	if err == nil && out != "" {
		err = fmt.Errorf("git fsck of %s: %s", dir, out)
	}
	return err
}
