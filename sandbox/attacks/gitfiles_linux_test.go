package attacks_test

import (
	"slices"
	"strings"
	"testing"
)

// outages are files that a git server refuses a push for, for ever.
const outages = `mkdir a b c; printf '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n' > .gitmodules; printf '[submodule "../../x"]\n\tpath = x\n\turl = ../y\n\tupdate = !touch pwned\n' > a/.gitmodules
	ln -s ../readme.md b/.gitmodules; ln -s ../readme.md b/.gitattributes; head -c 3000 /dev/zero | tr '\0' x > c/.gitattributes; cp .gitmodules c/'gitmod~1'; cp .gitmodules c/.GitModules`

// TestAttackPushOutage: files that git reads its settings from, made so that
// every server refuses them. They are refused here, and a plain one is not.
func TestAttackPushOutage(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(map[string]string{"readme.md": "x\n"})
	r := a.sh(outages)
	want := []string{".gitmodules", "a/.gitmodules", "b/.gitattributes", "b/.gitmodules", "c/.GitModules", "c/.gitattributes", "c/gitmod~1"}
	if got := refused(r); !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
	a.sh(`rm -rf a b c; printf '[submodule "x"]\n\tpath = x\n\turl = https://example.org/x.git\n' > .gitmodules; mkdir x`)
	if got := a.files(); !slices.Equal(got, []string{".gitmodules", "readme.md"}) {
		t.Errorf("committed %q", got)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		out := hostSh(t, "git init -q .; echo x > readme.md; "+outages+"; rm 'c/gitmod~1' b/.gitmodules; git -c core.protectNTFS=false add -A . 2>/dev/null; git -c user.name=x -c user.email=x commit -qm x; git fsck --full --strict && echo sound")
		if !strings.Contains(out, "gitmodulesUrl") || strings.Contains(out, "sound") {
			t.Errorf("git takes them: %q", out)
		}
	})
}
