package server

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/agent"
	"satchel/tools"
)

// Attack: kill the sandbox between a command's end and the collection of what
// it changed. The answer must not promise that lost changes are tried again.
func TestNotSavedNote(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		stays bool
	}{
		"the sandbox ended": {fault.Wrap(space.ErrSandboxEnded, fault.Unavailable, "The sandbox ended. What the command had changed is lost."), false},
		"out of memory":     {fault.Wrap(space.ErrOutOfMemory, fault.Unavailable, "The sandbox ran out of memory. What the command had changed is lost."), false},
		"told already":      {fault.Wrap(errors.New("disk"), fault.Unavailable, "The changes could not be committed now. They stay in the sandbox."), false},
		"the space is full": {fault.New(fault.TooLarge, "The space is full."), true},
	} {
		t.Run(name, func(t *testing.T) {
			note := notSavedNote(c.err)
			if !strings.Contains(note, fault.PublicOf(c.err)) {
				t.Errorf("%q does not say why", note)
			}
			if got := strings.Contains(note, "It stays in the sandbox"); got != c.stays {
				t.Errorf("%q", note)
			}
		})
	}
}

// A command that a stop in order ended is not told to have lost what was
// committed of it.
func TestEnds(t *testing.T) {
	for end, want := range map[agent.End]tools.RunEnd{
		agent.Exited: tools.RunExited, agent.TimedOut: tools.RunTimedOut, agent.Canceled: tools.RunCanceled,
		agent.Detached: tools.RunJob, agent.Shutdown: tools.RunStopped,
	} {
		if got := ends[end]; got != want {
			t.Errorf("end %v: %q, want %q", end, got, want)
		}
	}
}

// A command that a refusal tells a person to run has the user's name where that
// is known, and nothing of what a user chose as an address that a shell reads
// otherwise.
func TestNameUser(t *testing.T) {
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
		out := tools.RunResult{Held: refused, Commits: []space.Commit{{Rejected: refused, Warnings: []space.Warning{{Path: "a", Why: text}}}}, Notes: []string{text}}
		nameUser(&out, space.Person{Email: email})
		for _, got := range []string{out.Held[0].Why, out.Commits[0].Rejected[0].Why, out.Commits[0].Warnings[0].Why, out.Notes[0]} {
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

// The tools name the limits that a command met by their keys in the
// configuration, each once; that of memory ends the sandbox.
func TestLimits(t *testing.T) {
	got := limitNames([]sandbox.Limit{sandbox.LimitTmp, sandbox.LimitDisk, sandbox.LimitTmp})
	if want := []string{"sandbox.tmp", "sandbox.disk"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := limitNames(nil); got != nil {
		t.Errorf("none are %q", got)
	}
	for end, want := range map[tools.RunEnd][]string{tools.RunOutOfMemory: {"sandbox.memory"}, tools.RunLost: nil} {
		if got := limitsOfDeath(end); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", end, got, want)
		}
	}
}
