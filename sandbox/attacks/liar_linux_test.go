package attacks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// liar speaks the protocol without a fault and lies in it.
type liar struct {
	sandbox.Agent
	batches chan protocol.Batch   // told instead of what changed; nil: the truth
	batch   func() protocol.Batch // likewise, without end
	result  func(protocol.ExecResult) protocol.ExecResult
	apply   func(context.Context, []protocol.ApplyEntry) ([]protocol.ApplyResult, error)
}

func (l *liar) Collect(ctx context.Context, limits protocol.CollectLimits) (protocol.Batch, error) {
	if l.batch != nil {
		return l.batch(), ctx.Err()
	}
	if l.batches != nil {
		select {
		case b := <-l.batches:
			return b, nil
		default:
			return protocol.Batch{}, nil
		}
	}
	return l.Agent.Collect(ctx, limits)
}

func (l *liar) Ack(ctx context.Context, batch uint64, except []string) error {
	if l.batch != nil || l.batches != nil {
		return nil
	}
	return l.Agent.Ack(ctx, batch, except)
}

func (l *liar) Exec(ctx context.Context, r protocol.ExecRequest, f func(protocol.Stream, []byte)) (protocol.ExecResult, error) {
	res, err := l.Agent.Exec(ctx, r, f)
	if l.result != nil && err == nil {
		res = l.result(res)
	}
	return res, err
}

func (l *liar) Apply(ctx context.Context, e []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
	if l.apply != nil {
		return l.apply(ctx, e)
	}
	return l.Agent.Apply(ctx, e)
}

// lying makes every agent of a pool a liar.
func lying(l liar) func(*sandbox.Options) {
	return func(o *sandbox.Options) {
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, b protocol.Boot) (sandbox.Agent, error) {
			c, err := protocol.Connect(ctx, conn, b)
			if err != nil {
				return nil, err
			}
			mine := l
			mine.Agent = c
			return &mine, nil
		}
	}
}

const lyingContent = "canary-of-a-liar"

// TestAttackLyingBatch: paths, links, modes, sizes and counts that no honest agent reports.
// The host treats them as data: it rejects invalid ones, contradictions cannot break the
// repository, and the content is only in its objects.
func TestAttackLyingBatch(t *testing.T) {
	t.Parallel()
	write := func(p string) protocol.Entry {
		return protocol.Entry{Path: p, Content: []byte(lyingContent), Size: int64(len(lyingContent))}
	}
	link := func(p, to string) protocol.Entry {
		return protocol.Entry{Path: p, Mode: space.Symlink, Content: []byte(to)}
	}
	batches := make(chan protocol.Batch, 1)
	w := newWorld(t, lying(liar{batches: batches}))
	a := w.tenant(map[string]string{"kept": "kept\n", "dir/one": "1\n", "dir/two": "2\n"})
	refusedAll := []protocol.Entry{}
	for _, p := range []string{
		"../escape", "../../../../../../tmp/satchel-escape", "/etc/satchel-escape", "dir/../../escape", "", ".", "..", "./x", "a//b", "a/", "a\x00b", "a\nb", "\xff",
		".git/hooks/post-commit", ".git/config", "sub/.git/config", "GIT~1/config", ".git", "refs\x00", strings.Repeat("d/", 60) + "x", strings.Repeat("x", 5000), "C:\\..\\x\x00",
	} {
		refusedAll = append(refusedAll, write(p))
	}
	for p, to := range map[string]string{"l1": "/etc/passwd", "l2": "../../x", "l3": "", "l4": ".git/config", "l5": "a\x00b", "dir/l6": "../../x"} {
		refusedAll = append(refusedAll, link(p, to))
	}
	refusedAll = append(refusedAll, protocol.Entry{Path: "mode", Mode: 77, Content: []byte(lyingContent)},
		protocol.Entry{Path: "size", Size: 1 << 62, Problem: "it is \x1b[2Jlarge\xff"}, protocol.Entry{Path: "negative", Size: -1, Problem: "x"})
	batches <- protocol.Batch{ID: 1, Entries: refusedAll}
	r := a.sh("true")
	if len(r.Commits) != 0 || r.NotSaved != nil || len(r.Refused) < 20 {
		t.Errorf("%d commits, %d refused, %v", len(r.Commits), len(r.Refused), r.NotSaved)
	}
	for _, f := range r.Refused {
		if !utf8.ValidString(f.Why) || strings.ContainsFunc(f.Why, func(c rune) bool { return unicode.IsControl(c) }) {
			t.Errorf("the reason is %q", f.Why)
		}
	}
	if got := a.files(); !slices.Equal(got, []string{"dir/one", "dir/two", "kept"}) {
		t.Errorf("the space has %q", got)
	}
	// Contradictions: a path twice, a file that is a directory, files under a link, a
	// deletion of a written file, empty and opaque directories.
	for i, entries := range [][]protocol.Entry{
		{write("twice"), {Path: "twice", Content: []byte("other")}, link("twice", "kept")},
		{write("file"), write("file/under"), write("file/under/that")},
		{link("link", "dir"), write("link/one"), write("link/new")},
		{{Path: "dir", Deleted: true}, write("dir/one"), {Path: "dir", Dir: true, Opaque: true}, {Path: "dir/one", Deleted: true}},
		{{Path: "kept", Dir: true}, {Path: "kept", Deleted: true}, write("kept"), write("kept/x")},
		{{Path: "nothing", Deleted: true}, {Path: "..", Deleted: true}, {Path: "/", Dir: true, Opaque: true}, {Path: "", Dir: true}},
		{{Path: "busy", Busy: true, Content: []byte("x")}, {Path: "busy", Deleted: true, Dir: true, Opaque: true, Busy: true, Mode: 9}},
	} {
		batches <- protocol.Batch{ID: uint64(i + 2), Entries: entries}
		a.sh("true")
		if out, err := gitIn(a.repository(), "fsck", "--full", "--strict", "--no-dangling"); err != nil {
			t.Errorf("%d: %s", i, out)
		}
	}
	// The checkout of what came of it, and nothing outside the repository.
	if err := w.pool.StopSpace(noContext(), a.id); err != nil {
		t.Fatal(err)
	}
	a.out("find . -path ./.git -prune -o -print")
	if out := hostSh(t, "ls /etc/satchel-escape /tmp/satchel-escape /escape 2>/dev/null; find '"+w.dir+"' -name 'post-commit' -o -name 'satchel-escape' -o -name 'escape'; grep -rlF "+lyingContent+" '"+w.dir+"' --include=config --include=HEAD --include=packed-refs --include=hooks"); strings.Contains(out, "/") {
		t.Errorf("on the host there is %s", out)
	}
}

// TestAttackLyingSizes: more entries, or more content, than was asked for ends
// the sandbox before anything of it is stored; batches without end are stopped.
func TestAttackLyingSizes(t *testing.T) {
	t.Parallel()
	small := func(o *sandbox.Options) {
		o.MaxFile, o.MaxChange, o.MaxChangeFiles, o.CollectTime, o.MaxPendingFile = 1000, 5000, 10, time.Second, 1000
	}
	many := make([]protocol.Entry, 11)
	for i := range many {
		many[i] = protocol.Entry{Path: fmt.Sprintf("f%d", i), Content: []byte("x")}
	}
	large := slices.Repeat([]protocol.Entry{{Path: "f", Content: make([]byte, 900)}}, 6)
	for name, entries := range map[string][]protocol.Entry{
		"entries": many, "content": large, "one file": {{Path: "f", Content: make([]byte, 2000)}},
		"one file, said to be small": {{Path: "f", Size: 1, Content: make([]byte, 2000)}},
	} {
		batches := make(chan protocol.Batch, 1)
		a := newWorld(t, small, lying(liar{batches: batches})).tenant(map[string]string{"kept": "kept\n"})
		batches <- protocol.Batch{ID: 1, Entries: entries}
		r := a.sh("true")
		if r.NotSaved == nil || !errors.Is(r.NotSaved, protocol.ErrProtocol) && fault.CodeOf(r.NotSaved) != fault.Unavailable || len(r.Commits) != 0 {
			t.Errorf("%s: %v", name, r.NotSaved)
		}
		if got := a.files(); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("%s: the space has %q", name, got)
		}
		if r := a.sh("cat kept"); !r.Restarted || r.Stdout.Text != "kept\n" {
			t.Errorf("%s: the next command: %+v", name, r)
		}
	}
	n := 0
	a := newWorld(t, small, lying(liar{batch: func() protocol.Batch {
		n++
		return protocol.Batch{ID: uint64(n), More: true, Entries: []protocol.Entry{{Path: "f", Content: fmt.Append(nil, n)}}}
	}})).tenant(nil)
	r := a.sh("true")
	if n > 1100 || r.End != protocol.Exited {
		t.Errorf("%d batches were taken; %+v", n, r.NotSaved)
	}
}

// TestAttackLyingResult: what an agent says of a command is shown to people and
// models, so it is cleaned and bounded like output.
func TestAttackLyingResult(t *testing.T) {
	t.Parallel()
	dirty := "\x1b[2J\x1b]0;x\x07../../etc\xff\x00"
	a := newWorld(t, lying(liar{result: func(r protocol.ExecResult) protocol.ExecResult {
		r.Signal, r.JobID, r.JobDir = dirty, dirty, dirty
		r.ExitCode, r.Leftover, r.Duration = 255, 1<<31-1, -time.Hour
		r.Stdout = protocol.Output{Head: []byte(dirty), Tail: []byte(dirty), Dropped: 1 << 62, Saved: dirty + strings.Repeat("x", 4000)}
		r.Stderr = r.Stdout
		return r
	}})).tenant(nil)
	r := a.sh("true")
	b, err := json.Marshal([]any{r.Stdout, r.Stderr, r.Signal, r.JobID, r.JobDir, r.Notes})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`\u001b`, `\u0000`, `\u0007`, "0;x"} {
		if strings.Contains(string(b), bad) {
			t.Errorf("%q is left in %s", bad, b)
		}
	}
	if n := utf8.RuneCount(b); n > 31_000 {
		t.Errorf("the answer has %d characters", n)
	}
}

// TestAttackLyingApply: an agent that does not put newer files in place, or never
// answers, keeps nobody waiting for ever and loses nobody's change.
func TestAttackLyingApply(t *testing.T) {
	t.Parallel()
	for name, apply := range map[string]func(context.Context, []protocol.ApplyEntry) ([]protocol.ApplyResult, error){
		"nothing is done": func(_ context.Context, e []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
			rs := make([]protocol.ApplyResult, len(e))
			for i := range e {
				rs[i].Path = e[i].Path
			}
			return rs, nil
		},
		"everything is dirty": func(_ context.Context, e []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
			rs := make([]protocol.ApplyResult, len(e))
			for i := range e {
				rs[i] = protocol.ApplyResult{Path: e[i].Path, Dirty: true}
			}
			return rs, nil
		},
		"a problem to show": func(_ context.Context, e []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
			rs := make([]protocol.ApplyResult, len(e))
			for i := range e {
				rs[i] = protocol.ApplyResult{Path: e[i].Path, Problem: "\x1b[2J\xff" + strings.Repeat("x", 3000)}
			}
			return rs, nil
		},
		"no answer": func(ctx context.Context, e []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWorld(t, func(o *sandbox.Options) { o.CollectTime = 2 * time.Second }, lying(liar{apply: apply})).tenant(map[string]string{"f": "old\n"})
			a.out("cat f")
			edit(t, a, map[string]string{"f": "new\n", "g": "new\n"})
			r := a.sh("cat f; echo mine > h")
			for _, n := range r.Notes {
				if strings.ContainsAny(n, "\x1b") || !utf8.ValidString(n) || len(n) > 4000 {
					t.Errorf("a note: %q", n)
				}
			}
			if got := a.git("show", "HEAD:f", "HEAD:g"); got != "new\nnew\n" {
				t.Errorf("the space has %q", got)
			}
		})
	}
}
