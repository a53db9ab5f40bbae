package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"satchel/internal/testenv"
)

// TestGitHasNothingOfTheCallers: git in a test takes no configuration, repository
// or identity of whoever runs the test, and needs none.
func TestGitHasNothingOfTheCallers(t *testing.T) {
	home := t.TempDir()
	hostile := "[user]\n\tname = Mallory\n[commit]\n\tgpgSign = true\n[core]\n\thooksPath = /nonexistent\n"
	for _, name := range []string{".gitconfig", "git/config"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(hostile), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": filepath.Join(home, ".gitconfig"),
		"GIT_DIR": filepath.Join(home, "none"), "GIT_INDEX_FILE": filepath.Join(home, "index"),
		"GIT_AUTHOR_NAME": "Mallory", "GIT_COMMITTER_NAME": "Mallory",
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := testenv.Git(t, dir, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "x")
	if by := git("log", "--format=%an %cn"); by != "Grace Grace\n" {
		t.Errorf("committed by %q", by)
	}
	cmd := testenv.Git(t, dir, "var", "GIT_AUTHOR_IDENT")
	cmd.Env = testenv.GitEnv("GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_DATE=1700000000 +0000")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "Ada <grace@example.com> 1700000000 +0000\n" {
		t.Errorf("%q, %v", out, err)
	}
}
