package tools_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/tools"
)

// answer is what bash answers.
func answer(r sandbox.Result) tools.Result {
	return tools.BashResult(false, "x", "bash", service.CommandResult{Result: r})
}

// Attack: kill the sandbox between a command's end and the collection of what it
// changed. The answer must not promise that lost changes are tried again.
func TestBashSaysWhatBecomesOfChangesThatWereNotSaved(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		stays bool
	}{
		"the sandbox ended": {fault.Wrap(space.ErrSandboxEnded, fault.Unavailable, "The sandbox ended. The command's changes are lost."), false},
		"the space is full": {fault.New(fault.TooLarge, "The space is full."), true},
	} {
		stays := "They stay in the sandbox"
		if !c.stays {
			stays = "!" + stays
		}
		t.Run(name, func(t *testing.T) {
			check(t, answer(sandbox.Result{NotSaved: c.err}), true, fault.PublicOf(c.err), stays)
		})
	}
}

// TestBashNeverCutsWhatToDo: a refusal and a notice end in a command that is of
// no use in part.
func TestBashNeverCutsWhatToDo(t *testing.T) {
	const command = "satchel space allow --user NAME 0123456789abcdef0123"
	why := "It will be lost when the sandbox stops: it has 90.0 kB, and 180.0 kB of the 200.0 kB that may be held for you are taken. " +
		strings.Repeat("x", 700-len(command)) + command
	note := strings.Repeat("n", 1400) + " Delete the copy."
	c := someCommit(1)
	c.Rejected = []space.Rejection{{Path: "new.md", Why: strings.Repeat("y", 600) + command}}
	r := answer(sandbox.Result{Commits: []space.Commit{c}, Notes: []string{note}, Pending: []space.Rejection{{Path: "old.md", Why: why}}})
	check(t, r, false, why, note, `"new.md": `+c.Rejected[0].Why)
}

// TestBashSaysWhatBecomesOfARefusedFile: the answer says next to the rejection whether the
// file is lost with the sandbox, which the list of pending files shows.
func TestBashSaysWhatBecomesOfARefusedFile(t *testing.T) {
	c := someCommit(1)
	c.Rejected = []space.Rejection{{Path: "a.md", Why: "It holds a secret."}}
	r := answer(sandbox.Result{Commits: []space.Commit{c}, Pending: []space.Rejection{{Path: "a.md", Why: "It will be lost when the sandbox stops. It holds a secret."}}})
	check(t, r, false, `"a.md": It will be lost when the sandbox stops. It holds a secret.`, "!till not committed")
}

// TestBashWarnsOfWhatWasCommitted beside the list of files, and in what programs read.
func TestBashWarnsOfWhatWasCommitted(t *testing.T) {
	c := someCommit(1)
	c.Warnings = []space.Warning{{Path: "a.md", Why: "Line 1 looks like a secret."}}
	res := answer(sandbox.Result{Commits: []space.Commit{c}})
	check(t, res, false, "[WARNING", `"a.md": Line 1 looks like a secret.`, "!NOT COMMITTED")
	if got := fmt.Sprint(res.Meta["warnings"]); !strings.Contains(got, "a.md") {
		t.Errorf("%v", res.Meta)
	}
}

// TestEveryBashAnswerNamesWhatIsNotCommitted: the first three with the reason,
// the lost ones first, and how many more there are.
func TestEveryBashAnswerNamesWhatIsNotCommitted(t *testing.T) {
	held := func(tool string, list []space.Rejection, want ...string) {
		t.Helper()
		check(t, tools.BashResult(tool == "bash_readonly", "x", "bash", service.CommandResult{Result: sandbox.Result{Pending: list}}), false, want...)
	}
	list := []space.Rejection{{Path: "a", Why: "Why a."}, {Path: "b", Why: "Why b."}, {Path: "c", Why: "Why c."}, {Path: "d", Why: "Why d."}}
	for _, tool := range []string{"bash", "bash_readonly"} {
		held(tool, list, "[NOT COMMITTED", "  \"a\": Why a.\n  \"b\": Why b.\n  \"c\": Why c.\n  … 1 more: satchel space status", "!Why d")
	}
	held("bash", append(list[:3:3], space.Rejection{Path: "d", Why: "It will be lost.", Lost: true}), "]\n  \"d\": It will be lost.\n", "!Why c")
	held("bash", list[:3], "Why c.", "!more")
	held("bash", nil, "!ommitted")
}

func TestBashNamesFilesThatAreNotFacts(t *testing.T) {
	var list []service.MemoryFact
	for i := range 12 {
		list = append(list, service.MemoryFact{Path: space.Path(fmt.Sprintf("memory/n%02d.md", i)), Fact: facts.Fact{Problem: "Why."}})
	}
	r := tools.BashResult(false, "x", "bash", service.CommandResult{NotFacts: list})
	check(t, r, false, "[NOT REMEMBERED", "\"memory/n09.md\": Why.\n  … 2 more", "Call remember", "\n---\nvalue: ", "!n10.md")
	if all, ok := r.Meta["not_facts"].([]map[string]any); !ok || len(all) != 12 {
		t.Errorf("%v", r.Meta)
	}
	check(t, tools.BashResult(false, "x", "bash", service.CommandResult{}), false, "!REMEMBERED")
}

// TestBashNamesWhatTheCommandWasRefused before what was refused earlier.
func TestBashNamesWhatTheCommandWasRefused(t *testing.T) {
	c := someCommit(1)
	var held []space.Rejection
	for i := range 10 {
		held = append(held, space.Rejection{Path: fmt.Sprint("earlier", i), Why: "Why."})
	}
	for i := range 8 {
		c.Rejected = append(c.Rejected, space.Rejection{Path: fmt.Sprint("now", i), Why: "Why."})
	}
	check(t, answer(sandbox.Result{Commits: []space.Commit{c}, Pending: append(held, c.Rejected...)}), false, "\"now7\": Why.\n  \"earlier0\": Why.\n  \"earlier1\": Why.\n  \"earlier2\": Why.\n  … 7 more")
}

// TestEveryBashAnswerTellsThatThePushFails, also where it made no commit.
func TestEveryBashAnswerTellsThatThePushFails(t *testing.T) {
	const want = "[the space's commits are NOT PUSHED to its remote: The token was refused. Set a new one]"
	failed := service.PushState{State: "failed", Detail: "The token was refused.\nSet a new one."}
	for _, tt := range []struct {
		name, tool string
		end        protocol.End
		push       service.PushState
		isError    bool
		want       string
	}{
		{"bash", "bash", service.Exited, failed, false, want},
		{"read-only", "bash_readonly", service.Exited, failed, false, want},
		{"a job", "bash", service.Detached, failed, false, want},
		{"out of memory", "bash", service.OutOfMemory, failed, true, want},
		{"pushed", "bash", service.Exited, service.PushState{State: "pushed"}, false, "!pushed"},
		{"queued", "bash", service.Exited, service.PushState{State: "queued"}, false, "!the push"},
		{"no remote", "bash", service.Exited, service.PushState{State: "local"}, false, "!NOT PUSHED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := service.CommandResult{Result: sandbox.Result{End: tt.end, Duration: time.Second}, Push: tt.push}
			check(t, tools.BashResult(tt.tool == "bash_readonly", "x", "bash", r), tt.isError, tt.want)
		})
	}
}
