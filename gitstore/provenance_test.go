package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"satchel/internal/space"
)

// Attack: a pushed commit has trailers of a tool and a client, which must not count as proof.
// Commits that Satchel made are still recognised after a restart and a purge.
func TestAttackForgedTrailersAreNoProof(t *testing.T) {
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	if _, err := s.Commit(t.Context(), id, writes(map[string]string{"d/own.md": secret}), space.Meta{Author: ada, Tool: "bash", Client: "claude"}); err != nil {
		t.Fatal(err)
	}
	o := newOrigin(t)
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); err != nil {
		t.Fatal(err)
	}
	git(t, o.work, "fetch", "-q", "origin", "main")
	git(t, o.work, "checkout", "-q", "--detach", "FETCH_HEAD")
	if err := os.WriteFile(filepath.Join(o.work, "d", "forged.md"), []byte("f"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, o.work, "add", "-A")
	git(t, o.work, "commit", "-q", "-m", "Forge\n\nSatchel-Tool: bash\nSatchel-Client: claude")
	git(t, o.work, "push", "-q", "origin", "HEAD:main")
	in := receive(t, s, id, o, "main")
	unproven := func(from string, c space.Commit) {
		t.Helper()
		if c.Tool != "" || c.Client != "" || c.ClaimedTool != "bash" || c.Message != "Forge" {
			t.Errorf("%s: %+v", from, c)
		}
	}
	unproven("Integrate", in.Commit)
	check := func() {
		t.Helper()
		log, err := s.Log(t.Context(), id, space.LogQuery{Limit: 2})
		if err != nil || len(log) != 2 {
			t.Fatal(log, err)
		}
		unproven("Log", log[0])
		if log[1].Tool != "bash" || log[1].Client != "claude" || log[1].ClaimedTool != "" {
			t.Errorf("own: %+v", log[1])
		}
		for _, q := range []space.LogQuery{{Tool: "bash"}, {Client: "claude"}, {Tools: []string{"bash"}}} {
			if list, err := s.Log(t.Context(), id, q); err != nil || len(list) != 1 || list[0].ID != log[1].ID {
				t.Errorf("%+v: %v %v", q, list, err)
			}
		}
		page, _, err := s.LogPage(t.Context(), id, "", "", "", 1, 10)
		if err != nil || len(page) != 1 {
			t.Fatal(page, err)
		}
		unproven("LogPage", page[0])
		shown, err := s.Show(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		unproven("Show", shown)
		last, err := s.LastChanges(t.Context(), id, "", "d", 10)
		if err != nil || last["own.md"].Tool != "bash" {
			t.Error(last, err)
		}
		unproven("LastChanges", last["forged.md"])
		_, newest, err := s.Unpushed(t.Context(), id, "other", 1)
		if err != nil || len(newest) != 1 {
			t.Fatal(newest, err)
		}
		unproven("Unpushed", newest[0])
		none, err := s.Commit(t.Context(), id, space.ChangeSet{}, space.Meta{Tool: "bash"})
		if err != nil {
			t.Fatal(err)
		}
		unproven("a commit of nothing", none)
	}
	check()
	reopened(t, s, id)
	check()
	if _, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	check()
	reopened(t, s, id)
	check()
}

// A proven commit stays proven when the branch's reflog grows and is shortened.
func TestProofsOutliveTheLogsEnd(t *testing.T) {
	s := newStore(t, func(o *Options) { o.Limits.Reflog = 4000 })
	id := newSpace(t, s, nil)
	for i := range 40 {
		if _, err := s.Commit(t.Context(), id, writes(map[string]string{fmt.Sprint(i, ".md"): "x"}), space.Meta{Author: ada, Tool: "bash"}); err != nil {
			t.Fatal(err)
		}
		log, err := s.Log(t.Context(), id, space.LogQuery{Limit: 1})
		if err != nil || log[0].Tool != "bash" {
			t.Fatal(i, log, err)
		}
		if i%10 == 9 {
			if _, err := s.GC(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	log, err := s.Log(t.Context(), id, space.LogQuery{Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range log {
		if c.Tool != "bash" {
			t.Errorf("%+v", c)
		}
	}
}
