// Package testenv provides the programs and data that tests need, and waits for
// events. Only tests import it.
package testenv

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// SkipOrFail skips a test that this machine cannot run, and says why. If the variable CI is set,
// it fails the test instead, so that CI leaves out no test silently.
func SkipOrFail(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("cannot run here, and CI may not skip: %s", reason)
	}
	t.Skip(reason)
}

// NeedProgram returns the path of a program, or skips (see SkipOrFail).
func NeedProgram(t testing.TB, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		SkipOrFail(t, name+" is not installed")
	}
	return p
}

// Git returns a command that runs the git program in a directory, in the environment of GitEnv.
// It skips the test if git is missing (see SkipOrFail).
func Git(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(NeedProgram(t, "git"), args...)
	cmd.Dir, cmd.Env = dir, GitEnv()
	return cmd
}

// Bundle returns a git bundle of the HEAD of a repository with its history.
func Bundle(t testing.TB, dir string) io.Reader {
	t.Helper()
	out, err := Git(t, dir, "bundle", "create", "-q", "-", "HEAD").Output()
	if err != nil {
		t.Fatalf("git bundle: %v", err)
	}
	return bytes.NewReader(out)
}

// GitEnv returns the environment in which a test runs git, or a script that runs git.
// It has an identity and no configuration of the machine or the caller, so that a test
// does the same on every machine. The variables in add override those of the environment.
func GitEnv(add ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Grace", "GIT_AUTHOR_EMAIL=grace@example.com",
		"GIT_COMMITTER_NAME=Grace", "GIT_COMMITTER_EMAIL=grace@example.com",
	}, add...)
}

// LargeData returns a file or directory of the large test data, which is in the directory
// LARGE_TESTDATA. It skips the test if the file or directory does not exist, even in CI.
func LargeData(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("LARGE_TESTDATA")
	if root == "" {
		t.Skip("LARGE_TESTDATA names no directory")
	}
	p := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("the large test data has no %s", filepath.Join(elem...))
	}
	return p
}

// Postgres returns the URL of a PostgreSQL server on which a test may make
// databases, from SATCHEL_TEST_POSTGRES, or skips (see SkipOrFail).
func Postgres(t testing.TB) string {
	t.Helper()
	u := os.Getenv("SATCHEL_TEST_POSTGRES")
	if u == "" {
		SkipOrFail(t, "SATCHEL_TEST_POSTGRES names no PostgreSQL server")
	}
	return u
}

// InitAllocs returns how many objects a package of this test's binary allocates before main.
// Every process of a program that has the package pays for these objects.
func InitAllocs(t testing.TB, pkg string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m := regexp.MustCompile(`(?m)^init ` + regexp.QuoteMeta(pkg) + ` @.* (\d+) allocs$`).FindSubmatch(out)
	if m == nil {
		return 0 // the package initializes nothing
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
