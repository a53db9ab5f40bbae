//go:build unix

package gitstore

import (
	"fmt"
	"strings"
	"testing"

	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// bombTree writes levels of trees. Each tree has many names for one subtree. The lowest tree
// contains a file, or is the empty tree.
func (o *origin) bombTree(width, levels int, file bool) string {
	o.t.Helper()
	at := trees.Empty
	gitStdin(o.t, o.work, "", "mktree")
	mode, kind := "040000", "tree"
	if file {
		at = strings.TrimSpace(gitStdin(o.t, o.work, "x\n", "hash-object", "-w", "--stdin"))
		mode, kind = "100644", "blob"
	}
	for range levels {
		var in strings.Builder
		for i := range width {
			fmt.Fprintf(&in, "%s %s %s\td%d\n", mode, kind, at, i)
		}
		at = strings.TrimSpace(gitStdin(o.t, o.work, in.String(), "mktree"))
		mode, kind = "040000", "tree"
	}
	return at
}

// commitTree commits a tree and pushes the commit.
func (o *origin) commitTree(tree, message string, parents ...space.CommitID) space.CommitID {
	o.t.Helper()
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", string(p))
	}
	return o.pushMain(gitStdin(o.t, o.work, message, args...))
}

// pushMain pushes a commit, given as a line of git's output, as the main branch.
func (o *origin) pushMain(line string) space.CommitID {
	o.t.Helper()
	c := space.CommitID(strings.TrimSpace(line))
	git(o.t, o.work, "push", "-q", "-f", "origin", string(c)+":refs/heads/main")
	return c
}

// TestAttackAGitBombIsNotTaken checks that less than a kilobyte with ten million paths is
// measured in the quarantine, at the cost of its eight trees.
func TestAttackAGitBombIsNotTaken(t *testing.T) {
	for name, file := range map[string]bool{"files": true, "empty directories": false} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			first := o.commit("", "main", "echo 1 > a.md")
			s := newStore(t, withTransport(t))
			id := newSpace(t, s, nil)
			receive(t, s, id, o, "main")
			before, _ := s.Stats(t.Context(), id)
			tip := o.commitTree(o.bombTree(10, 7, file), "x", first)
			if f, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil); fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("%+v %v", f, err)
			}
			if known, _, err := s.Tracked(t.Context(), id, "main"); known != first || err != nil {
				t.Errorf("tracked %s %v", known, err)
			}
			if after, _ := s.Stats(t.Context(), id); after != before {
				t.Errorf("taken: %+v, was %+v", after, before)
			}
			if _, err := s.Integrate(t.Context(), id, tip, space.Meta{Author: ada}); fault.CodeOf(err) != fault.NotFound {
				t.Error(err)
			}
			other := newSpace(t, s, nil)
			if res, err := s.Import(t.Context(), other, FromBundle(testenv.Bundle(t, o.dir)), space.Meta{Author: ada}, nil); fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

// TestAttackAGitBombInTheHistoryIsLookedAtWithinBounds has a remote that adds a bomb and
// deletes it, so that its head is harmless.
func TestAttackAGitBombInTheHistoryIsLookedAtWithinBounds(t *testing.T) {
	for name, b := range map[string]struct {
		width, levels int
		file          bool
	}{"deep": {10, 6, true}, "wide": {100, 2, true}, "empty directories": {10, 6, false}} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			first := o.commit("", "main", "echo 1 > a.md")
			bomb := o.commitTree(o.bombTree(b.width, b.levels, b.file), "x", first)
			harmless := o.commitTree(git(t, o.work, "rev-parse", string(first)+"^{tree}"), "y", bomb)
			s := newStore(t, withTransport(t), func(op *Options) { op.Limits.Walk = 1000 })
			id := newSpace(t, s, nil)
			if got := receive(t, s, id, o, "main"); got.Head != harmless {
				t.Fatalf("%+v", got)
			}
			ctx := t.Context()
			for what, look := range map[string]func() error{
				"show":    func() error { _, err := s.Show(ctx, id, bomb); return err },
				"diff":    func() error { _, err := s.Diff(ctx, id, first, bomb); return err },
				"patch":   func() error { _, err := s.Patch(ctx, id, first, bomb, ""); return err },
				"files":   func() error { _, err := s.Files(ctx, id, bomb, ""); return err },
				"dates":   func() error { _, err := s.Dates(ctx, id, "", bomb); return err },
				"restore": func() error { _, err := s.Restore(ctx, id, "", bomb, space.Meta{}); return err },
				"follow":  func() error { _, err := s.ResetToRemote(ctx, id, bomb, space.Meta{}); return err },
				"contents": func() error {
					return s.WalkBlobs(ctx, id, "", func(space.CommitID, space.Path, []byte) error { return nil })
				},
				"purge": func() error { _, err := s.Purge(ctx, id, "", redact, space.Meta{}); return err },
			} {
				if err := look(); fault.CodeOf(err) != fault.TooLarge {
					t.Errorf("%s: %v", what, err)
				}
			}
			if log, err := s.Log(ctx, id, space.LogQuery{Path: "a.md"}); err != nil || len(log) == 0 {
				t.Errorf("log: %v %v", log, err)
			}
			commit(t, s, id, writes(map[string]string{"after.md": "x"}))
			seed(t, s, id).Release()
		})
	}
}

// TestAttackAGitBombIsNoBaseOfAMerge checks that git never merges from a bomb, because git
// would walk through it.
func TestAttackAGitBombIsNoBaseOfAMerge(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("", "main", "echo 1 > a.md")
	bomb := o.commitTree(o.bombTree(10, 6, true), "x", first)
	fine := git(t, o.work, "rev-parse", string(first)+"^{tree}")
	o.commitTree(fine, "y", bomb)
	s := newStore(t, withTransport(t), func(op *Options) { op.Limits.Walk = 1000 })
	id := newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	commit(t, s, id, writes(map[string]string{"o.md": "o"}))
	o.commitTree(fine, "z", bomb)
	got := receive(t, s, id, o, "main")
	if files := listing(t, s.repoDir(id), string(got.Head)); got.How != Merged || files != "a.md = 1\no.md = o" {
		t.Errorf("%+v\n%s", got, files)
	}
}

// TestAttackTreesThatAreNestedTooDeepAreMalformed checks that such trees are not an internal
// error.
func TestAttackTreesThatAreNestedTooDeepAreMalformed(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("", "main", "echo 1 > a.md")
	tree := git(t, o.work, "rev-parse", string(first)+"^{tree}")
	for range trees.MaxDepth + 1 {
		tree = strings.TrimSpace(gitStdin(t, o.work, "040000 tree "+tree+"\td\n", "mktree"))
	}
	o.commitTree(tree, "x", first)
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	if _, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil); fault.CodeOf(err) != fault.Invalid {
		t.Error(err)
	}
	if _, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, o.dir)), space.Meta{Author: ada}, nil); fault.CodeOf(err) != fault.Invalid {
		t.Error(err)
	}
}
