//go:build unix

package gitstore

import (
	"fmt"
	"strings"
	"testing"

	"satchel/internal/space"
)

// TestAMergeForPeople checks that the log, a commit's changes, dates and patches follow first
// parents. A sandbox sees the whole history, but nothing of remotes.
func TestAMergeForPeople(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	sd := seed(t, s, id)
	defer sd.Release()
	receive(t, s, id, o, "main")
	mine := commit(t, s, id, writes(map[string]string{"o.md": "o"}))
	theirs := o.commit(string(base), "main", "echo 2 > a.md; echo t > t.md; echo t > o.md")
	got := receive(t, s, id, o, "main")
	copied := "o.conflict-" + theirs.Short() + ".md"
	if want := "Merge the remote's " + theirs.Short() + "\n\nChanged here and at the remote; nothing was dropped:\n\n- o.md: what was here is " + copied; got.Commit.Message != want || got.Commit.Tool != "sync" {
		t.Errorf("message %q", got.Commit.Message)
	}
	log, err := s.Log(t.Context(), id, space.LogQuery{})
	if err != nil || len(log) != 4 || log[0].ID != got.Head || log[0].Parent != mine.ID {
		t.Errorf("%v %v", log, err)
	}
	c, err := s.Show(t.Context(), id, got.Head)
	if err != nil || names(c.Files) != "M a.md, A "+copied+", M o.md, A t.md" || names(got.Commit.Files) != names(c.Files) {
		t.Errorf("%s %s %v", names(c.Files), names(got.Commit.Files), err)
	}
	if log, err := s.Log(t.Context(), id, space.LogQuery{Path: "t.md"}); err != nil || len(log) != 1 || log[0].ID != theirs {
		t.Errorf("%v %v", log, err)
	}
	dates, err := s.Dates(t.Context(), id, "", "")
	if err != nil || len(dates) != 4 {
		t.Errorf("%v %v", dates, err)
	}
	if p, err := s.Patch(t.Context(), id, mine.ID, got.Head, "a.md"); err != nil || !strings.Contains(p, "-1\n+2\n") {
		t.Errorf("%s %v", p, err)
	}
	if err := s.WaitView(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if inside := gitIn(t, sd, "log", "--format=%H"); inside != git(t, s.repoDir(id), "log", "--format=%H", "main") {
		t.Errorf("inside:\n%s", inside)
	}
	if refs := gitIn(t, sd, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("refs inside: %s", refs)
	}
	gitIn(t, sd, "fsck", "--full")
	for range 2 {
		if err := s.Maintain(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	fsck(t, s, id)
	if got, err := s.Log(t.Context(), id, space.LogQuery{}); err != nil || len(got) != 4 {
		t.Errorf("%v %v", got, err)
	}
}

func names(fs []space.FileChange) string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%c %s", f.Status, f.Path))
	}
	return strings.Join(out, ", ")
}
