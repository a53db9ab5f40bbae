package tools_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools"
)

// TestBashNeverCutsWhatToDo: a refusal and a notice end in a command that is of
// no use in part.
func TestBashNeverCutsWhatToDo(t *testing.T) {
	const command = "satchel space allow --user NAME 0123456789abcdef0123"
	why := "It will be lost when the sandbox stops: it has 90.0 kB, and 180.0 kB of the 200.0 kB that may be held for you are taken. " +
		strings.Repeat("x", 700-len(command)) + command
	note := strings.Repeat("n", 1400) + " Delete the copy."
	c := someCommit(1)
	c.Refused = []space.Refusal{{Path: "new.md", Why: strings.Repeat("y", 600) + command}}
	b := newBench(t, nil, nil)
	b.run.result = tools.RunResult{
		End: tools.RunExited, Commits: []space.Commit{c}, Notes: []string{note},
		Held: []space.Refusal{{Path: "old.md", Why: why}},
	}
	check(t, b.call(t, "bash", `{"command":"x"}`), false, why, note, `"new.md": `+c.Refused[0].Why)
}

// TestBashSaysWhatBecomesOfARefusedFile: that it is lost with the sandbox, which
// the list of what is held knows, is told where the commit's refusal is.
func TestBashSaysWhatBecomesOfARefusedFile(t *testing.T) {
	c := someCommit(1)
	c.Refused = []space.Refusal{{Path: "a.md", Why: "It holds a secret."}}
	b := newBench(t, nil, nil)
	b.run.result = tools.RunResult{
		End: tools.RunExited, Commits: []space.Commit{c},
		Held: []space.Refusal{{Path: "a.md", Why: "It will be lost when the sandbox stops. It holds a secret."}},
	}
	check(t, b.call(t, "bash", `{"command":"x"}`), false, `"a.md": It will be lost when the sandbox stops. It holds a secret.`, "!till not committed")
}

// TestBashWarnsOfWhatWasCommitted beside the list of files, and in what programs read.
func TestBashWarnsOfWhatWasCommitted(t *testing.T) {
	c := someCommit(1)
	c.Warnings = []space.Warning{{Path: "a.md", Why: "Line 1 looks like a secret."}}
	b := newBench(t, nil, nil)
	b.run.result = tools.RunResult{End: tools.RunExited, Commits: []space.Commit{c}}
	res := b.call(t, "bash", `{"command":"x"}`)
	check(t, res, false, "[WARNING", `"a.md": Line 1 looks like a secret.`, "!NOT COMMITTED")
	if got := fmt.Sprint(res.Meta["warnings"]); !strings.Contains(got, "a.md") {
		t.Errorf("%v", res.Meta)
	}
}

// TestBashTellsOnceInFullWhatIsNotCommitted, and then that it still is not.
func TestBashTellsOnceInFullWhatIsNotCommitted(t *testing.T) {
	clock := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := newBench(t, nil, func(o *tools.Options) { o.Now = func() time.Time { return clock } })
	held := func(tool string, c tools.Caller, list []space.Refusal, want ...string) {
		t.Helper()
		b.run.result = tools.RunResult{End: tools.RunExited, Held: list}
		check(t, b.callAs(t, c, tool, `{"command":"x"}`), false, want...)
	}
	list := []space.Refusal{{Path: "a", Why: "Why a."}, {Path: "b", Why: "Why b."}, {Path: "c", Why: "Why c."}, {Path: "d", Why: "Why d."}}
	const short = "[Still not committed: \"a\", \"b\", \"c\" and 1 more; "
	full := []string{"[NOT COMMITTED", `"a": Why a.`, `"d": Why d.`, "!till not"}
	held("bash", editor(), list, full...)
	held("bash", editor(), list, short, "!NOT COMMITTED", "!Why")

	another := editor()
	another.Client = "another/1.0"
	held("bash", another, list, full...)
	held("bash_readonly", editor(), list, full...)

	changed := append([]space.Refusal{{Path: "a", Why: "It will be lost when the sandbox stops. Why a.", Lost: true}}, list[1:]...)
	held("bash", editor(), changed, `"a": It will be lost`, "[Still not committed: \"b\", \"c\", \"d\"; ", "!Why b")
	held("bash", editor(), changed, "[STILL NOT COMMITTED, and LOST when the sandbox stops: \"a\"]", "[Still not committed: \"b\", \"c\", \"d\"; ", "!Why")

	held("bash", editor(), nil, "!ommitted")
	held("bash", editor(), list, full...) // it came back

	b.call(t, "instructions", `{}`) // another conversation
	held("bash", editor(), list, full...)
	clock = clock.Add(59 * time.Minute)
	held("bash", editor(), list, short)
	clock = clock.Add(time.Minute)
	held("bash", editor(), list, full...)
	held("bash", editor(), list, short)
}

// TestBashForgetsWhomItToldFirst, so that many clients cost it no more memory.
func TestBashForgetsWhomItToldFirst(t *testing.T) {
	b := newBench(t, nil, func(o *tools.Options) { o.Limits.ToldCallers = 4 })
	b.run.result = tools.RunResult{End: tools.RunExited, Held: []space.Refusal{{Path: "a", Why: "Why a."}}}
	as := func(client string) tools.Result {
		c := editor()
		c.Client = client
		return b.callAs(t, c, "bash", `{"command":"x"}`)
	}
	for _, client := range []string{"1", "2", "3", "4", "5"} {
		check(t, as(client), false, "Why a.")
	}
	check(t, as("5"), false, "!Why")
	check(t, as("1"), false, "Why a.")
}

// TestEveryBashAnswerTellsThatThePushFails, also where it made no commit.
func TestEveryBashAnswerTellsThatThePushFails(t *testing.T) {
	const want = "[the space's commits are NOT PUSHED to its remote: The token was refused. Set a new one]"
	failed := tools.PushState{State: "failed", Detail: "The token was refused.\nSet a new one."}
	for _, tt := range []struct {
		name, tool string
		end        tools.RunEnd
		push       tools.PushState
		isError    bool
		want       string
	}{
		{"bash", "bash", tools.RunExited, failed, false, want},
		{"read-only", "bash_readonly", tools.RunExited, failed, false, want},
		{"a job", "bash", tools.RunJob, failed, false, want},
		{"out of memory", "bash", tools.RunOutOfMemory, failed, true, want},
		{"pushed", "bash", tools.RunExited, tools.PushState{State: "pushed"}, false, "!pushed"},
		{"queued", "bash", tools.RunExited, tools.PushState{State: "queued"}, false, "!the push"},
		{"no remote", "bash", tools.RunExited, tools.PushState{State: "local"}, false, "!NOT PUSHED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil, nil)
			b.run.result = tools.RunResult{End: tt.end, Push: tt.push, Duration: time.Second}
			check(t, b.call(t, tt.tool, `{"command":"x"}`), tt.isError, tt.want)
		})
	}
}
