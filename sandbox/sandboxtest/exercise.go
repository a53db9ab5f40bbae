package sandboxtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/pending"
)

// Harness is a pool under test with its surroundings. The pool uses Runtime as its runtime, and
// Store as its Checkouts and Committer.
type Harness struct {
	Pool    *sandbox.Pool
	Store   *Store
	Runtime *Recorder
}

// NewHarness creates a pool, and closes the pool when the test ends. The function change
// modifies the pool's Options first.
type NewHarness func(t testing.TB, change func(*sandbox.Options)) *Harness

// Exercise runs all checks of a Pool, over a fake runtime. Its commands need only bash,
// coreutils, find and grep, and name files of the space by relative paths.
func Exercise(t *testing.T, newHarness NewHarness) { runChecks(t, newHarness, false) }

// ExerciseReal runs the checks of Exercise that a fake runtime cannot prove:
// they depend on mounts, processes, signals or open files inside a sandbox.
func ExerciseReal(t *testing.T, newHarness NewHarness) { runChecks(t, newHarness, true) }

func runChecks(t *testing.T, newHarness NewHarness, realOnly bool) {
	for _, group := range [][]check{commandChecks, treeChecks, lifeChecks, updateChecks, pendingChecks} {
		for _, c := range group {
			if realOnly && !c.real {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(testenv.Context(t))
				defer cancel()
				e := &exercise{T: t, ctx: ctx, user: "u_one"}
				e.Harness = newHarness(t, func(o *sandbox.Options) {
					o.Grace = 5 * time.Minute
					if c.pending {
						e.pending = openPending(t)
						o.Pending = e.pending
					}
					if c.options != nil {
						c.options(o)
					}
					e.options = *o
				})
				e.space = e.Store.Space(Tree{
					"readme.md":    {Content: "hello\n"},
					"docs/a.md":    {Content: "a\n"},
					"docs/b.md":    {Content: "b\n"},
					"bin/tool":     {Mode: space.Executable, Content: "#!/bin/sh\necho tool\n"},
					"link":         {Mode: space.Symlink, Content: "readme.md"},
					"deep/x/y/z.t": {Content: "z\n"},
				})
				c.run(e)
			})
		}
	}
}

type check struct {
	name    string
	real    bool // ExerciseReal runs the check too, because a fake runtime cannot prove it
	pending bool // the pool has Options.Pending
	options func(*sandbox.Options)
	run     func(*exercise)
}

// exercise is one check that runs.
type exercise struct {
	*testing.T
	*Harness
	ctx   context.Context
	user  space.UserID
	space space.SpaceID

	options sandbox.Options
	pending *pending.Store
}

func (e *exercise) request(command string) sandbox.Request {
	return sandbox.Request{
		User: e.user, Space: e.space, Command: command, Comment: "Do: " + firstWord(command),
		Author: space.Person{Name: "One", Email: "one@example.org"}, Tool: "bash", Client: "test",
	}
}

func firstWord(s string) string {
	s, _, _ = strings.Cut(s, " ")
	return s
}

func (e *exercise) jobOwner(readOnly bool) sandbox.JobOwner {
	return sandbox.JobOwner{User: e.user, Space: e.space, ReadOnly: readOnly}
}

// exec runs a command. An error of Exec ends the test.
func (e *exercise) exec(command string) sandbox.Result {
	e.Helper()
	return e.do(e.request(command))
}

func (e *exercise) do(r sandbox.Request) sandbox.Result {
	e.Helper()
	res, err := e.Pool.Exec(e.ctx, r)
	if err != nil {
		e.Fatalf("%s: %v", r.Command, err)
	}
	return res
}

// sh runs a command that must succeed, and whose changes must be saved.
func (e *exercise) sh(command string) sandbox.Result {
	e.Helper()
	r := e.request(command)
	r.WallTime = time.Hour // not the pool's time limit, which may be short
	res := e.do(r)
	if res.ExitCode != 0 || res.NotSaved != nil {
		e.Fatalf("%s: exit code %d, not saved: %v\nstdout: %s\nstderr: %s\nnotes: %q",
			command, res.ExitCode, res.NotSaved, res.Stdout.Text, res.Stderr.Text, res.Notes)
	}
	return res
}

// start runs a command in the background of the test.
func (e *exercise) start(r sandbox.Request) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		res, err := e.Pool.Exec(e.ctx, r)
		done <- outcome{res, err}
	}()
	return done
}

type outcome struct {
	res sandbox.Result
	err error
}

// started runs a command and returns once it has printed the word "started".
func (e *exercise) started(r sandbox.Request) <-chan outcome {
	e.Helper()
	seen := make(chan struct{}, 1)
	r.OnProgress = func(p sandbox.Progress) {
		if p.Line == "started" {
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	}
	done := e.start(r)
	select {
	case <-seen:
	case o := <-done:
		e.Fatalf("%s: ended before it started: %+v, %v", r.Command, o.res, o.err)
	case <-e.ctx.Done():
		e.Fatalf("%s: never started", r.Command)
	}
	return done
}

func (e *exercise) wait(done <-chan outcome) outcome {
	e.Helper()
	select {
	case o := <-done:
		return o
	case <-e.ctx.Done():
		e.Fatal("the command never ended")
		panic("unreachable")
	}
}

// wantFile checks one file of the space's head. If want is nil, there must be no such file.
func (e *exercise) wantFile(p space.Path, want *Entry) {
	e.Helper()
	got, ok := e.Store.Tree(e.space)[p]
	switch {
	case want == nil && ok:
		e.Errorf("%s is in the space, and should not be: %+v", p, got)
	case want != nil && (!ok || got != *want):
		e.Errorf("%s in the space is %+v (there: %v), want %+v", p, got, ok, *want)
	}
}

func (e *exercise) wantTree(want Tree) {
	e.Helper()
	if got := e.Store.Tree(e.space); !maps.Equal(got, want) {
		e.Errorf("the space holds\n%v\nwant\n%v", got, want)
	}
}

// wantNote checks that a note contains a text.
func (e *exercise) wantNote(r sandbox.Result, text string) {
	e.Helper()
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, text) }) {
		e.Errorf("no note says %q; notes: %q", text, r.Notes)
	}
}

func paths(commits []space.Commit) []space.Path {
	var list []space.Path
	for _, c := range commits {
		for _, f := range c.Files {
			list = append(list, f.Path)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
