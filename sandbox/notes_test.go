//go:build unix

package sandbox_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// notesWith returns the notes of an answer that contain a text.
func notesWith(r sandbox.Result, text string) []string {
	return slices.DeleteFunc(slices.Clone(r.Notes), func(n string) bool { return !strings.Contains(n, text) })
}

func TestWhatNoSandboxCanHaveIsToldOnce(t *testing.T) {
	b := newBench(t, nil)
	b.must("a", "true")
	b.Store.Put(b.space, map[space.Path]*sandboxtest.Entry{
		"con\ntrol.md": {Content: "1"}, "x/.git/y": {Content: "1"}, "a\nb": {Content: "1"}, "c\nd": {Content: "1"}, "fine.md": {Content: "fine"},
	})
	r := b.must("a", "cat fine.md")
	want := `Some of the repository's files cannot be in a sandbox: "a\nb" (it has a control character (U+000A)), ` +
		`"c\nd" (it has a control character (U+000A)), "con\ntrol.md" (it has a control character (U+000A)), and 1 more. ` +
		`Only a person can fix this, in the repository.`
	if got := notesWith(r, "repository"); !slices.Equal(got, []string{want}) || r.Stdout.Text != "fine" || len(r.Applied) != 1 {
		t.Errorf("%q, applied %v, %q\nwant %q", r.Stdout.Text, r.Applied, r.Notes, want)
	}
	b.Store.Put(b.space, map[space.Path]*sandboxtest.Entry{"con\ntrol.md": {Content: "2"}, "a\nb": nil})
	for range 3 {
		if r := b.must("a", "echo x >> mine"); len(r.Notes) != 0 || len(r.Commits) != 1 || len(r.Pending) != 0 {
			t.Errorf("told again: %+v", r)
		}
	}
	for _, p := range []space.Path{"con\ntrol.md", "x/.git/y"} {
		if _, ok := b.Store.Tree(b.space)[p]; !ok {
			t.Errorf("the space has lost %q", p)
		}
	}
}

// full writes nothing of others into the sandbox.
type full struct {
	sandbox.Agent
	problem *string
}

func (f full) Apply(ctx context.Context, entries []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
	if *f.problem == "" {
		return f.Agent.Apply(ctx, entries)
	}
	var results []protocol.ApplyResult
	for _, e := range entries {
		results = append(results, protocol.ApplyResult{Path: e.Path, Problem: *f.problem})
	}
	return results, nil
}

func TestWhatCannotBeBroughtInIsToldOnce(t *testing.T) {
	problem := "no space left on device"
	b := newBench(t, func(o *sandbox.Options) {
		connect := o.Connect
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
			a, err := connect(ctx, conn, boot)
			return full{a, &problem}, err
		}
	})
	b.must("a", "true")
	b.Store.Put(b.space, map[space.Path]*sandboxtest.Entry{"f": {Content: "new"}})
	const text = `The newer version of "f" could not be copied into the sandbox: `
	for i, want := range []int{1, 0, 0} {
		if r := b.must("a", "true"); len(notesWith(r, text+"no space left on device.")) != want {
			t.Errorf("answer %d: %q", i, r.Notes)
		}
	}
	problem = "input/output error"
	if r := b.must("a", "true"); len(notesWith(r, text+"input/output error.")) != 1 {
		t.Errorf("another problem: %q", r.Notes)
	}
	problem = ""
	if r := b.must("a", "cat f"); r.Stdout.Text != "new" || len(r.Notes) != 0 {
		t.Errorf("%q, %q", r.Stdout.Text, r.Notes)
	}
}

func TestANewSandboxSaysWhyTheOldOneWasStopped(t *testing.T) {
	b := newBench(t, nil)
	b.must("a", "true")
	if err := b.Pool.StopSpace(t.Context(), b.space); err != nil {
		t.Fatal(err)
	}
	if r := b.must("a", "true"); !r.Restarted || len(notesWith(r, "because a person changed the space's history or its remote")) != 1 {
		t.Errorf("after StopSpace: %q", r.Notes)
	}
	if err := b.Pool.StopUser(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if r := b.must("a", "true"); !r.Restarted || len(notesWith(r, "history")) != 0 {
		t.Errorf("after StopUser: %q", r.Notes)
	}
}
