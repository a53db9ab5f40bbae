package gitstore

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
)

// TestPurgeMovesRefs checks tags, kept refs, tracking refs and their reflogs.
func TestPurgeMovesRefs(t *testing.T) {
	s := newStore(t)
	id := imported(t, s, `echo a >a; c -m first; echo SECRET >k; c -m leak; echo b >b; c -m last`)
	dir := s.repoDir(id)
	leak := string(named(t, s, id, "leak"))
	first := string(named(t, s, id, "first"))
	// A kept commit that main does not reach.
	tree := git(t, dir, "rev-parse", leak+"^{tree}")
	kept := git(t, dir, "commit-tree", "-p", leak, "-m", "kept", tree)
	git(t, dir, "update-ref", keptRefs+kept, kept)
	git(t, dir, "tag", "light", leak)
	git(t, dir, "tag", "-a", "-m", "words\n-----BEGIN PGP SIGNATURE-----\nxyz", "annotated", leak)
	git(t, dir, "tag", "early", first)
	git(t, dir, "tag", "-a", "-m", "outer", "nested", "annotated")
	git(t, dir, "update-ref", "refs/remotes/origin/main", first)
	git(t, dir, "update-ref", "refs/remotes/origin/leaked", leak)
	git(t, dir, "tag", "tree", leak+"^{tree}")
	git(t, dir, "tag", "blob", leak+":k")
	git(t, dir, "tag", "harmless", leak+":a")
	git(t, dir, "pack-refs", "--all")
	if _, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	now := git(t, dir, "rev-parse", "main~1")
	refs := map[string]string{}
	for line := range strings.Lines(git(t, dir, "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)")) {
		f := strings.Fields(line)
		refs[f[0]] = f[len(f)-1]
	}
	for name, want := range map[string]string{
		"refs/tags/light": now, "refs/tags/annotated": now, "refs/tags/nested": now, "refs/tags/early": first,
		"refs/remotes/origin/main": first, "refs/remotes/origin/leaked": "",
		"refs/tags/tree": "", "refs/tags/blob": "", "refs/tags/harmless": git(t, dir, "rev-parse", "main:a"),
	} {
		if refs[name] != want {
			t.Errorf("%s is at %q, want %q", name, refs[name], want)
		}
	}
	if refs[keptRefs+kept] != "" {
		t.Error("the old kept ref is there")
	}
	i := slices.IndexFunc(slices.Collect(maps.Keys(refs)), func(n string) bool { return strings.HasPrefix(n, keptRefs) && n == keptRefs+refs[n] })
	if i < 0 {
		t.Errorf("the kept head was not kept: %v", refs)
	}
	if tag := git(t, dir, "cat-file", "tag", "annotated"); !strings.Contains(tag, "words") || strings.Contains(tag, "SIGNATURE") || !strings.Contains(tag, "tag annotated") {
		t.Errorf("tag:\n%s", tag)
	}
	if out := git(t, dir, "log", "-g", "--format=%H", "main"); strings.Contains(out, leak) {
		t.Errorf("the reflog names a commit that is gone:\n%s", out)
	}
	assertGone(t, s.o.Dir)
	fsck(t, s, id)
	reopened(t, s, id)
}
