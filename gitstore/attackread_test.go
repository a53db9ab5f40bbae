//go:build unix

package gitstore

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// TestAttackAHugeLinkTargetIsNeverRead checks that only the size of a link's blob is read, and
// that the link stays out of checkouts.
func TestAttackAHugeLinkTargetIsNeverRead(t *testing.T) {
	for _, size := range []int{maxLinkTarget, maxLinkTarget + 1} {
		o := newOrigin(t)
		first := o.commit("", "main", "echo 1 > a.md")
		target := strings.TrimSpace(gitStdin(t, o.work, strings.Repeat("x", size), "hash-object", "-w", "--stdin"))
		mode := git(t, o.work, "ls-tree", string(first))
		o.commitTree(strings.TrimSpace(gitStdin(t, o.work, mode+"\n120000 blob "+target+"\tbig\n", "mktree")), "x", first)
		s := newStore(t, withTransport(t))
		id := newSpace(t, s, map[string]string{"start.md": "s"})
		first = commit(t, s, id, writes(map[string]string{"b.md": "b"})).ID
		got := receive(t, s, id, o, "main")
		if got.How != Merged || len(got.Commit.Rejected) != 1 || got.Commit.Rejected[0].Path != "big" {
			t.Errorf("%+v", got)
		}
		sd := seed(t, s, id)
		if es, err := os.ReadDir(sd.Dir); err != nil || len(es) != 3 {
			t.Errorf("%v %v", es, err)
		}
		sd.Release()
		// The link disappears with a restored head, and does not come back.
		if _, err := s.Restore(t.Context(), id, "", first, space.Meta{Author: ada}); err != nil {
			t.Error(err)
		}
		c, err := s.Restore(t.Context(), id, "", got.Head, space.Meta{Author: ada})
		if err != nil || len(c.Rejected) != 1 || c.Rejected[0].Path != "big" {
			t.Errorf("%+v %v", c, err)
		}
		h, err := packfile.HashFrom(target)
		if err != nil {
			t.Fatal(err)
		}
		r, release, err := s.acquire(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if _, read := s.cache.Get(r.db, h); read != (size <= maxLinkTarget) {
			t.Errorf("a target of %d bytes, read: %v", size, read)
		}
	}
}

// TestAttackALongCommitMessageIsCut also checks a long name of the author.
func TestAttackALongCommitMessageIsCut(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("", "main", "echo 1 > a.md")
	tree := git(t, o.work, "rev-parse", string(first)+"^{tree}")
	long := strings.Repeat("é", 4*commits.MaxRead)
	by := strings.Repeat("n", 10*commits.MaxPerson) + " <n@example.com> 1700000000 +0000"
	tip := o.pushMain(gitStdin(t, o.work, fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter %s\n\n%s", tree, first, by, by, long),
		"hash-object", "-w", "-t", "commit", "--stdin"))
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	c, err := s.Show(t.Context(), id, tip)
	if err != nil {
		t.Fatal(err)
	}
	body, mark, _ := strings.Cut(c.Message, "\n\n")
	if len(body) > commits.MaxRead || len(body) < commits.MaxMessage || !strings.HasPrefix(long, body) || !strings.HasPrefix(mark, "[The message is longer than ") {
		t.Errorf("%d bytes of message, and %q", len(body), mark)
	}
	if c.Author.Name != strings.Repeat("n", commits.MaxPerson) {
		t.Errorf("%d bytes of name", len(c.Author.Name))
	}
	r, release, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	h, _ := packfile.HashFrom(string(tip))
	if o, size, err := r.db.ReadStart(h, commits.MaxStart); err != nil || len(o.Data) != commits.MaxStart || size < int64(len(long)) {
		t.Errorf("%d of %d bytes were read: %v", len(o.Data), size, err)
	}
	log, err := s.Log(t.Context(), id, space.LogQuery{})
	if err != nil || log[0].Message != c.Message {
		t.Errorf("%v", err)
	}
}

// TestAttackASecretInACommentIsNotCommitted checks that the change is committed with the
// summary of a change without a comment.
func TestAttackASecretInACommentIsNotCommitted(t *testing.T) {
	s, sc := screened(t)
	id := newSpace(t, s, nil)
	sc.take()
	c, err := s.Commit(t.Context(), id, writes(map[string]string{"a.md": "a"}), space.Meta{Author: ada, Message: "Use SECRET"})
	if err != nil || !c.Changed || c.Message != "Add a.md" {
		t.Fatalf("%+v %v", c, err)
	}
	if len(c.Rejected) != 1 || c.Rejected[0].Path != "(comment)" || !strings.Contains(c.Rejected[0].Why, "saved without its comment") || !isFault(c.Rejected[0].Err) {
		t.Errorf("%+v", c.Rejected)
	}
	if objects := objectsOf(t, s.repoDir(id)); strings.Contains(objects, "SECRET") {
		t.Error("the comment is in the repository")
	}
	c, err = s.Commit(t.Context(), id, writes(map[string]string{"b.md": "b"}), space.Meta{Author: ada, Message: "Add b"})
	if err != nil || c.Message != "Add b" || len(c.Rejected) != 0 {
		t.Errorf("%+v %v", c, err)
	}
	// Nothing was saved, so there is nothing to report.
	c, err = s.Commit(t.Context(), id, space.ChangeSet{}, space.Meta{Author: ada, Message: "Use SECRET"})
	if err != nil || c.Changed || len(c.Rejected) != 0 {
		t.Errorf("%+v %v", c, err)
	}
}

// TestAttackASecretInAMessageIsPurged purges a secret from the messages of commits, whose files
// stay the same, and of tags.
func TestAttackASecretInAMessageIsPurged(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, nil)
	first := commit(t, s, id, writes(map[string]string{"a.md": "a"}))
	c, err := s.Commit(t.Context(), id, writes(map[string]string{"b.md": "b"}), space.Meta{Author: ada, Tool: "bash", Message: "Use " + secret})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, id, writes(map[string]string{"c.md": "c"}))
	git(t, s.repoDir(id), "tag", "-a", "-m", "Has "+secret, "v1", string(first.ID))
	before := tree(t, s, id)
	asked := 0
	res, err := s.Purge(t.Context(), id, "", func(p space.Path, content []byte) ([]byte, bool) {
		if p == "" {
			asked++
		}
		return bytes.ReplaceAll(content, []byte(secret), []byte("REDACTED")), p != ""
	}, space.Meta{Author: ada})
	if err != nil || res.Commits != 2 || len(res.Files) != 0 || asked < 4 {
		t.Fatalf("%+v %v, asked %d times", res, err, asked)
	}
	log, err := s.Log(t.Context(), id, space.LogQuery{})
	if err != nil || len(log) != 4 || log[1].Message != "Use REDACTED" || log[1].Tool != "bash" || log[1].ID == c.ID || log[2].ID != first.ID {
		t.Errorf("%+v %v", log, err)
	}
	sameFiles(t, "files", tree(t, s, id), before)
	assertGone(t, s.o.Dir)
	fsck(t, s, id)
}
