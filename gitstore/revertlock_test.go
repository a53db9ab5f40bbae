package gitstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Attack: computing a revert takes long, and makes all other commits wait. Instead, the commits
// are made meanwhile, and a path that they change is computed again.
func TestAttackRevertHoldsNobodyUp(t *testing.T) {
	for _, tc := range []struct {
		name      string
		meanwhile map[string]string // what another person commits once the revert is computed
		always    bool              // on every try
		want      string            // the content of a
		kept      bool
		code      fault.Code
	}{
		{name: "elsewhere", meanwhile: map[string]string{"b": "others"}, want: "1"},
		{name: "elsewhere, each time", meanwhile: map[string]string{"b": "others"}, always: true, want: "1"},
		{name: "at the path", meanwhile: map[string]string{"a": "others"}, want: "others", kept: true},
		{name: "at the path, each time", meanwhile: map[string]string{"a": "others"}, always: true, code: fault.Conflict},
		{name: "the path became a directory", meanwhile: map[string]string{"a": "", "a/b": "x"}, kept: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			times := 0
			var s *Store
			var id space.SpaceID
			s = newStore(t, func(o *Options) {
				o.probe = func(step string) {
					if step != "revert: decided" || times > 0 && !tc.always {
						return
					}
					times++
					files := map[string]string{}
					for p, c := range tc.meanwhile {
						if tc.always {
							c += fmt.Sprint(times)
						}
						files[p] = c
					}
					change(t, s, id, files) // blocks for ever if the revert holds the lock
				}
			})
			id = newSpace(t, s, map[string]string{"a": "1", "b": "1"})
			c := change(t, s, id, map[string]string{"a": "2"})
			got, err := s.Revert(t.Context(), id, []space.CommitID{c}, space.Meta{Author: ada})
			if fault.CodeOf(err) != tc.code || times == 0 {
				t.Fatalf("%v, after %d commits of others", err, times)
			}
			if tc.code != "" {
				return
			}
			if len(got.Conflicts) > 0 != tc.kept {
				t.Errorf("%+v", got)
			}
			if tc.want != "" {
				if text := git(t, s.repoDir(id), "show", "main:a"); text != tc.want {
					t.Errorf("a is %q", text)
				}
			}
			fsck(t, s, id)
		})
	}
}

// Attack: the content to restore is purged while the revert is computed. It must not come back.
func TestAttackRevertBesideAPurge(t *testing.T) {
	var s *Store
	var id space.SpaceID
	purged := false
	s = newStore(t, func(o *Options) {
		o.probe = func(step string) {
			if step != "revert: decided" || purged {
				return
			}
			purged = true
			if _, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada}); err != nil {
				t.Error(err)
			}
		}
	})
	id = newSpace(t, s, map[string]string{"k": secret, "a": "1"})
	c := change(t, s, id, map[string]string{"k": "", "a": "2"})
	if _, err := s.Revert(t.Context(), id, []space.CommitID{c}, space.Meta{Author: ada}); fault.CodeOf(err) != fault.NotFound || !purged {
		t.Errorf("a commit that is gone: %v", err)
	}
	assertGone(t, s.o.Dir)
	fsck(t, s, id)
}

// numbers returns lines of random numbers. Another seed returns about the same lines in another
// order.
func numbers(seed uint64, lines int) string {
	r := rand.New(rand.NewPCG(seed, seed))
	var b strings.Builder
	for range lines {
		fmt.Fprintln(&b, r.IntN(1000))
	}
	return b.String()
}

// Attack: files take very long to compare. The comparison has a time limit, whose error says
// what to do, and it ends when the caller's context ends.
func TestAttackRevertHasAnEnd(t *testing.T) {
	s := newStore(t, func(o *Options) { o.RevertTime = time.Millisecond })
	id := newSpace(t, s, map[string]string{"a": numbers(0, 30_000)})
	var commits []space.CommitID
	for i := range 4 {
		commits = append(commits, change(t, s, id, map[string]string{"a": numbers(uint64(i+1), 30_000)}))
	}
	head, _ := s.Head(t.Context(), id)
	_, err := s.Revert(t.Context(), id, commits[:3], space.Meta{Author: ada})
	if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(fault.PublicOf(err), "fewer") {
		t.Errorf("it took too long: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Revert(ctx, id, commits[:3], space.Meta{Author: ada}); !errors.Is(err, context.Canceled) {
		t.Errorf("who asked went away: %v", err)
	}
	if now, _ := s.Head(t.Context(), id); now != head {
		t.Error("something was committed")
	}
}

// Attack: a revert is larger than one change may be.
func TestAttackRevertOfTooMuch(t *testing.T) {
	s := newStore(t, func(o *Options) { o.Limits.Entries = 3 })
	id := newSpace(t, s, map[string]string{"a": "1"})
	var commits []space.CommitID
	for i := range 4 {
		commits = append(commits, change(t, s, id, map[string]string{fmt.Sprint("f", i): "x"}))
	}
	if _, err := s.Revert(t.Context(), id, commits, space.Meta{Author: ada}); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("four paths, of three: %v", err)
	}
	if c, err := s.Revert(t.Context(), id, commits[1:], space.Meta{Author: ada}); err != nil || !c.Changed {
		t.Errorf("three: %v", err)
	}
}
