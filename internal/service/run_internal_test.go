package service

import (
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/sandbox"
)

// Commands that refusals suggest have the user's name if it is known. An address with
// characters that are special in a shell is never used.
func TestFillUserName(t *testing.T) {
	const text = "allow it: satchel space allow --user NAME 0123456789abcdef0123"
	for email, want := range map[string]string{
		"ann@satchel.invalid":       "--user ann 0123456789abcdef0123",
		"ann@example.com":           "--user NAME 0123456789abcdef0123",
		"":                          "--user NAME 0123456789abcdef0123",
		"@satchel.invalid":          "--user NAME 0123456789abcdef0123",
		"$(rm -rf)@satchel.invalid": "--user NAME 0123456789abcdef0123",
		"--trusted@satchel.invalid": "--user NAME 0123456789abcdef0123",
		"a@b.com@satchel.invalid":   "--user NAME 0123456789abcdef0123",
		"ann.o-1_x@satchel.invalid": "--user ann.o-1_x 0123456789abcdef0123",
		"ann\nbob@satchel.invalid":  "--user NAME 0123456789abcdef0123",
		"ann bob@satchel.invalid":   "--user NAME 0123456789abcdef0123",
		"ann@satchel.invalid.org":   "--user NAME 0123456789abcdef0123",
	} {
		refused := []space.Rejection{{Path: "a", Why: text}}
		out := sandbox.Result{Pending: refused, Commits: []space.Commit{{Rejected: refused, Warnings: []space.Warning{{Path: "a", Why: text}}}}, Notes: []string{text}}
		fillUserName(&out, space.Person{Email: email})
		for _, got := range []string{out.Pending[0].Why, out.Commits[0].Rejected[0].Why, out.Commits[0].Warnings[0].Why, out.Notes[0]} {
			if !strings.HasSuffix(got, want) {
				t.Errorf("%q: %q, want %q", email, got, want)
			}
		}
		if refused[0].Why != text {
			t.Error("what the sandbox remembers was changed")
		}
	}
}

func TestAppliedNote(t *testing.T) {
	for n, want := range map[int]string{1: "1 file that changed elsewhere was brought in", 2: "2 files that changed elsewhere were brought in"} {
		if got := appliedNote(n); !strings.HasPrefix(got, want+" ") {
			t.Errorf("%d: %q", n, got)
		}
	}
}
