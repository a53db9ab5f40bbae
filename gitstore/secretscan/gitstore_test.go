package secretscan_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"satchel/gitstore"
	"satchel/gitstore/secretscan"
	"satchel/internal/database/databasetest"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// TestASpaceKeepsKeysOutAndGetsRidOfThem follows a key that is refused, allowed, found by the
// remote and purged.
func TestASpaceKeepsKeysOutAndGetsRidOfThem(t *testing.T) {
	scanner := migrated(t, databasetest.Open(t, databasetest.SQLite(t)))
	dir := t.TempDir()
	store, err := gitstore.Open(gitstore.Options{Dir: dir, Screen: scanner.Screen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	id, by := space.NewSpaceID(), space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.org"}}
	if _, err := store.Create(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: "a.md", Content: []byte("first\n")}}}, by); err != nil {
		t.Fatal(err)
	}
	write := func(path, content string) space.Commit {
		t.Helper()
		c, err := store.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: path, Content: []byte(content)}}}, by)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	secret := token("a9")
	c := write("key.md", "the key\n"+secret+"\n")
	var refusal *secretscan.Refusal
	if c.Changed || len(c.Rejected) != 1 || !errors.As(c.Rejected[0].Err, &refusal) {
		t.Fatalf("%+v", c)
	}
	if err := scanner.Allow(t.Context(), space.SecretAllowance{Space: id, Fingerprint: refusal.Findings[0].Fingerprint}); err != nil {
		t.Fatal(err)
	}
	if c = write("key.md", "the key\n"+secret+"\n"); !c.Changed || len(c.Rejected) != 0 {
		t.Fatalf("an allowed key: %+v", c)
	}
	write("b.md", "later\n")

	purger, err := scanner.Purger(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	_, content, err := store.Open(t.Context(), id, c.ID, "key.md")
	if err != nil {
		t.Fatal(err)
	}
	if purger.Learn(content, 2) != 1 {
		t.Fatal("the remote's line taught nothing")
	}
	if _, err := store.Purge(t.Context(), id, "", purger.Rewrite, by); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[space.Path]string{"a.md": "first\n", "b.md": "later\n", "key.md": "the key\n" + secretscan.Redacted + "\n"} {
		if _, got, err := store.Open(t.Context(), id, "", p); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", p, got, err)
		}
	}
	// No object that git can reach or list contains the key.
	repo := filepath.Join(dir, string(id)+".git")
	out, err := testenv.Git(t, repo, "cat-file", "--batch-all-objects", "--batch").Output()
	if err != nil || len(out) == 0 || bytes.Contains(out, []byte(secret)) {
		t.Errorf("the secret is among the objects: %v", err)
	}
}
