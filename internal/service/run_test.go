//go:build unix

package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

func TestACommandCommitsInTheNameOfItsActor(t *testing.T) {
	w := servicetest.New(t, time.Now)
	fake := sandboxtest.NewFake(t)
	w.Attach(service.Running{Pool: sandboxtest.NewPool(t, sandbox.Options{Runtime: fake, Connect: fake.Connect, Checkouts: w.Git, Committer: w.Git})})
	a := service.Client(auth.Principal{
		User: w.Owner.ID, UserName: "owner", Space: w.Space, Role: space.Owner, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite},
	}, "mcp").Labelled("claude-code/2.1")
	ctx := t.Context()
	in := service.RunCommandInput{Space: a.Space(), Command: "echo a > a.md; echo done", Comment: "Note it", Tool: "bash"}
	r, err := w.RunCommand(ctx, a, in)
	if err != nil || len(r.Commits) != 1 || r.Stdout.Text != "done\n" || r.Push.State != "local" {
		t.Fatalf("%+v, %v", r, err)
	}
	c := r.Commits[0]
	if c.Author.Email != "owner@satchel.invalid" || c.Tool != "bash" || c.Client != "claude-code/2.1" || strings.TrimSpace(c.Message) != "Note it" {
		t.Errorf("%+v", c)
	}
	if r, err := w.RunReadOnlyCommand(ctx, a, in); err != nil || len(r.Commits) != 0 {
		t.Errorf("read-only: %+v, %v", r, err)
	}
}

// A file under memory/ that is not a valid fact is reported by the command that wrote it,
// and by no later command.
func TestACommandReportsFilesThatAreNotFacts(t *testing.T) {
	w := servicetest.New(t, time.Now)
	fake := sandboxtest.NewFake(t)
	w.Attach(service.Running{Pool: sandboxtest.NewPool(t, sandbox.Options{Runtime: fake, Connect: fake.Connect, Checkouts: w.Git, Committer: w.Git})})
	a := memoryClient(w, "x")
	for _, c := range []struct{ command, want string }{
		{"mkdir -p memory/a; echo tea > memory/tea.md; echo tea > memory/a/tea.md; touch memory/.gitkeep; printf -- '---\\nvalue: tea\\n---\\n' > memory/a/good.md",
			"memory/a/tea.md memory/tea.md"},
		{"echo note > note.md", ""},
		{"echo tea > memory/a/good.md", "memory/a/good.md"},
		{"rm memory/tea.md", ""},
	} {
		r, err := w.RunCommand(t.Context(), a, service.RunCommandInput{Space: a.Space(), Command: c.command, Tool: "bash"})
		var got []string
		for _, f := range r.NotFacts {
			got = append(got, string(f.Path))
			if f.Problem == "" {
				t.Errorf("%s has no problem", f.Path)
			}
		}
		if err != nil || strings.Join(got, " ") != c.want || len(r.Commits) != 1 {
			t.Errorf("%s: %s, %v", c.command, got, err)
		}
	}
}

func TestCommandsNeedTheRight(t *testing.T) {
	w := servicetest.New(t, time.Now)
	w.Attach(service.Running{Pool: servicetest.Pool(t, func(context.Context, servicetest.Box, protocol.ExecRequest) (protocol.ExecResult, error) {
		return protocol.ExecResult{}, nil
	})})
	for _, c := range []struct {
		name              string
		role              space.Role
		scopes            []space.Scope
		in                space.SpaceID
		write, read, docs fault.Code
	}{
		{"an editor", space.Editor, []space.Scope{space.ScopeRead, space.ScopeWrite}, w.Space, "", "", ""},
		{"the scope to read", space.Owner, []space.Scope{space.ScopeRead}, w.Space, fault.Forbidden, "", ""},
		{"the scope to write alone", space.Owner, []space.Scope{space.ScopeWrite}, w.Space, "", fault.Forbidden, fault.Forbidden},
		{"a reader", space.Reader, []space.Scope{space.ScopeRead, space.ScopeWrite}, w.Space, fault.Forbidden, "", ""},
		{"another space", space.Owner, []space.Scope{space.ScopeRead, space.ScopeWrite}, "s_other", fault.NotFound, fault.NotFound, ""},
	} {
		a := service.Client(auth.Principal{User: "u_" + space.UserID(c.role), Space: w.Space, Role: c.role, Scopes: c.scopes}, "mcp")
		in := service.RunCommandInput{Space: service.SpaceRef{ID: c.in}, Command: "true"}
		_, write := w.RunCommand(t.Context(), a, in)
		_, read := w.RunReadOnlyCommand(t.Context(), a, in)
		_, docs := w.RunLibraryCommand(t.Context(), a, service.RunLibraryCommandInput{Command: "true"})
		if fault.CodeOf(write) != c.write || fault.CodeOf(read) != c.read || fault.CodeOf(docs) != c.docs {
			t.Errorf("%s: %v, %v, %v", c.name, write, read, docs)
		}
	}
}

func TestTheEndOfTheSandboxIsAResult(t *testing.T) {
	w := servicetest.New(t, time.Now)
	var why error
	w.Attach(service.Running{Pool: servicetest.Pool(t, func(_ context.Context, b servicetest.Box, _ protocol.ExecRequest) (protocol.ExecResult, error) {
		b.Crash(why)
		return protocol.ExecResult{}, protocol.ErrProtocol
	})})
	a := service.Client(auth.Principal{User: "u", Space: w.Space, Role: space.Owner, Scopes: []space.Scope{space.ScopeRead}}, "mcp")
	for cause, end := range map[error]protocol.End{space.ErrOutOfMemory: service.OutOfMemory, space.ErrKilled: service.Lost} {
		why = cause
		r, err := w.RunReadOnlyCommand(t.Context(), a, service.RunCommandInput{Space: a.Space(), Command: "true"})
		if err != nil || r.End != end || r.Detail == "" || (len(r.Limits) == 1) != (end == service.OutOfMemory) {
			t.Errorf("%v: %+v, %v", cause, r, err)
		}
	}
}

// library runs commands over the library and returns the sandbox of each.
func library(t *testing.T, exec func(r protocol.ExecRequest)) func(user, grant, session, command string) (box string, err error) {
	w := servicetest.New(t, time.Now)
	w.Attach(service.Running{Pool: servicetest.Pool(t, func(_ context.Context, b servicetest.Box, r protocol.ExecRequest) (protocol.ExecResult, error) {
		exec(r)
		return protocol.ExecResult{Stdout: protocol.Output{Head: fmt.Append(nil, b.N)}}, nil
	})})
	return func(user, grant, session, command string) (string, error) {
		a := service.Client(auth.Principal{User: space.UserID(user), Grant: space.GrantID(grant), Scopes: []space.Scope{space.ScopeRead}}, "api")
		r, err := w.RunLibraryCommand(t.Context(), a, service.RunLibraryCommandInput{Session: session, Command: command})
		return r.Stdout.Text, err
	}
}

func TestLibraryCommandsAreReadOnlyAndShort(t *testing.T) {
	var asked protocol.ExecRequest
	run := library(t, func(r protocol.ExecRequest) { asked = r })
	if _, err := run("u", "g", "a", "ls"); err != nil || !asked.ReadOnly || asked.Background || asked.DetachAfter != 0 || asked.WallTime != 2*time.Minute || asked.Command != "cd /library; ls" {
		t.Errorf("%+v %v", asked, err)
	}
}

// A session name means a different sandbox for each grant and user. No name reaches
// another grant's sandbox.
func TestAttackSessionsOfTwoGrantsNeverMeet(t *testing.T) {
	run := library(t, func(protocol.ExecRequest) {})
	seen := map[string]bool{}
	for _, at := range [][3]string{
		{"u", "g1", "s"}, {"u", "g2", "s"}, {"v", "g1", "s"}, {"u", "g1", "t"}, {"u", "g1", ""},
		{"u", "g", "1s"}, {"ug", "1", "s"}, {"u", "", "g1s"},
	} {
		box, err := run(at[0], at[1], at[2], "true")
		if err != nil || seen[box] {
			t.Errorf("%v shares the sandbox %s: %v", at, box, err)
		}
		seen[box] = true
		if again, err := run(at[0], at[1], at[2], "true"); err != nil || again != box {
			t.Errorf("%v: %s and then %s: %v", at, box, again, err)
		}
	}
}

func TestTheOldestSessionGivesWay(t *testing.T) {
	begun, hold := make(chan struct{}), make(chan struct{})
	run := library(t, func(r protocol.ExecRequest) {
		if strings.HasSuffix(r.Command, "wait") {
			begun <- struct{}{}
			<-hold
		}
	})
	must := func(session string) string {
		t.Helper()
		box, err := run("u", "g", session, "true")
		if err != nil {
			t.Fatal(err)
		}
		return box
	}
	boxes := map[string]string{}
	for i := range 8 {
		name := fmt.Sprint(i)
		boxes[name] = must(name)
	}
	must("0")
	must("") // an unnamed session does not count
	if _, err := run("u", "other", "new", "true"); err != nil {
		t.Errorf("another grant's: %v", err)
	}
	must("new") // ends "1", the least recently used
	if must("0") != boxes["0"] {
		t.Error("a session that was just used gave way")
	}
	if must("1") == boxes["1"] {
		t.Error("the oldest session did not give way")
	}
	// A session with a command does not.
	kept := []string{"0", "1", "new", "3", "4", "5", "6", "7"}
	must("3") // "1" has replaced "2"
	done := make(chan struct{})
	for _, name := range kept {
		go func() {
			_, _ = run("u", "g", name, "wait")
			done <- struct{}{}
		}()
		<-begun
	}
	if _, err := run("u", "g", "more", "true"); fault.CodeOf(err) != fault.Limited {
		t.Errorf("%v", err)
	}
	close(hold)
	for range kept {
		<-done
	}
	must("more")
}
