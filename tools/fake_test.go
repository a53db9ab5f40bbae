package tools_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth"
	"satchel/gitstore/remotes"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/sandbox/agent"
	"satchel/tools"
	"satchel/tools/index"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with testdata/name, which must exist.
func golden(t *testing.T, name, got string) {
	t.Helper()
	p := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(p)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update and look at the change)\n--- got\n%s\n--- want\n%s", p, got, want)
	}
}

const (
	ann   = space.SpaceID("s_ann")
	other = space.SpaceID("s_other")
)

// treeSpace is a Workspace over maps: the files of each space, a symbolic link
// as "-> target".
type treeSpace struct {
	mu     sync.Mutex
	spaces map[space.SpaceID]map[string]string
	reads  int // of Content

	blobs    map[string]space.BlobID
	contents map[space.BlobID]string
}

func (w *treeSpace) Head(_ context.Context, id space.SpaceID) (space.CommitID, error) {
	if _, ok := w.spaces[id]; !ok {
		return "", fault.New(fault.NotFound, "There is no such space.")
	}
	return "c0ffee0000000000000000000000000000000001", nil
}

func blobOf(content string) space.BlobID {
	sum := sha1.Sum([]byte(content))
	return space.BlobID(hex.EncodeToString(sum[:]))
}

// blob remembers, since a test may list thousands of files again and again.
func (w *treeSpace) blob(content string) space.BlobID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blobs == nil {
		w.blobs, w.contents = map[string]space.BlobID{}, map[space.BlobID]string{}
	}
	b, ok := w.blobs[content]
	if !ok {
		b = blobOf(content)
		w.blobs[content], w.contents[b] = b, content
	}
	return b
}

func (w *treeSpace) entry(id space.SpaceID, p string) (space.Entry, bool) {
	content, ok := w.spaces[id][p]
	if ok {
		e := space.Entry{Path: space.Path(p), Blob: w.blob(content), Size: int64(len(content))}
		if strings.HasPrefix(content, "-> ") {
			e.Mode = space.Symlink
		}
		return e, true
	}
	for f := range w.spaces[id] {
		if p == "" || strings.HasPrefix(f, p+"/") {
			return space.Entry{Path: space.Path(p), Dir: true, Size: -1}, true
		}
	}
	return space.Entry{}, false
}

func (w *treeSpace) Lookup(_ context.Context, id space.SpaceID, _ space.CommitID, p space.Path) (space.Entry, error) {
	e, ok := w.entry(id, string(p))
	if !ok {
		return e, fault.New(fault.NotFound, "There is no %q.", p)
	}
	return e, nil
}

func (w *treeSpace) Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	if e, ok := w.entry(id, string(dir)); !ok || !e.Dir {
		return nil, fault.New(fault.NotFound, "There is no directory %q.", dir)
	}
	files, _ := w.Files(ctx, id, at, dir)
	var list []space.Entry
	for _, f := range files {
		rest := strings.TrimPrefix(strings.TrimPrefix(string(f.Path), string(dir)), "/")
		name, _, _ := strings.Cut(rest, "/")
		full := strings.TrimPrefix(string(dir)+"/"+name, "/")
		e, _ := w.entry(id, full)
		if len(list) == 0 || list[len(list)-1].Path != e.Path {
			list = append(list, e)
		}
	}
	return list, nil
}

func (w *treeSpace) Files(_ context.Context, id space.SpaceID, _ space.CommitID, dir space.Path) ([]space.Entry, error) {
	var list []space.Entry
	for p := range w.spaces[id] {
		if dir == "" || strings.HasPrefix(p, string(dir)+"/") {
			e, _ := w.entry(id, p)
			e.Size = -1
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b space.Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return list, nil
}

func (w *treeSpace) ReadBlob(_ context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	w.mu.Lock()
	w.reads++
	content, ok := w.contents[b]
	w.mu.Unlock()
	for _, c := range w.spaces[id] {
		if ok && c == content {
			return []byte(strings.TrimPrefix(content, "-> ")), nil
		}
	}
	return nil, errors.New("no such blob")
}

// fixedRun answers every command alike and keeps the last one.
type fixedRun struct {
	result agent.ExecResult
	err    error
	last   agent.ExecRequest
	runs   int
	hold   chan struct{} // if set, a command ends when it is closed
}

func (f *fixedRun) exec(_ context.Context, _ servicetest.Box, r agent.ExecRequest) (agent.ExecResult, error) {
	f.last = r
	f.runs++
	if f.hold != nil {
		<-f.hold
	}
	return f.result, f.err
}

// withoutCommands is a service that runs none.
func withoutCommands() *service.Service {
	return service.New(service.Options{Remotes: remotes.New(remotes.Options{})})
}

func openIndex(t testing.TB) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// searching is a service that searches an index, and runs no commands.
func searching(x *index.Index, o service.Options) *service.Service {
	o.Remotes = remotes.New(remotes.Options{})
	s := service.New(o)
	s.Attach(service.Running{Index: x})
	return s
}

// bench is a Set with its fakes.
type bench struct {
	*tools.Registry
	ws  *treeSpace
	run *fixedRun
}

func newBench(t testing.TB, files map[string]string, change func(*tools.Options)) *bench {
	t.Helper()
	b := &bench{
		ws:  &treeSpace{spaces: map[space.SpaceID]map[string]string{ann: files, other: {"secret.md": "the other's\n"}}},
		run: &fixedRun{},
	}
	o := tools.Options{
		Workspace: b.ws,
		PublicURL: func() string { return "https://satchel.example" },
		Now:       func() time.Time { return time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC) },
	}
	if change != nil {
		change(&o)
	}
	if o.Service == nil {
		o.Service = withoutCommands()
		o.Service.Attach(service.Running{Pool: servicetest.Pool(t, b.run.exec), Index: openIndex(t)})
	}
	set, err := tools.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.Registry = set
	return b
}

// annIs is a grant of Ann's, which a test may change.
func annIs(scopes []space.Scope, change ...func(*auth.Principal)) tools.Caller {
	p := auth.Principal{
		User: "u_ann", Display: "Ann Example", Email: "ann@example.com",
		Space: ann, SpaceName: "Ann's space", Role: space.Owner, Scopes: scopes,
	}
	for _, f := range change {
		f(&p)
	}
	return tools.Caller{Actor: service.Client(p, "mcp").Labelled("claude-code/2.1")}
}

func editor(change ...func(*auth.Principal)) tools.Caller {
	return annIs([]space.Scope{space.ScopeRead, space.ScopeWrite}, change...)
}

func reader() tools.Caller { return annIs([]space.Scope{space.ScopeRead}) }

// in is a caller in another space.
func in(id space.SpaceID) func(*auth.Principal) { return func(p *auth.Principal) { p.Space = id } }

// call runs a tool as the editor; args are JSON.
func (b *bench) call(t testing.TB, name, args string) tools.Result {
	t.Helper()
	return b.callAs(t, editor(), name, args)
}

func (b *bench) callAs(t testing.TB, c tools.Caller, name, args string) tools.Result {
	t.Helper()
	r, err := b.Call(t.Context(), c, name, json.RawMessage(args), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return r
}

// textOf joins an answer's parts.
func textOf(r tools.Result) string {
	var parts []string
	for _, c := range r.Content {
		if c.Image != nil {
			parts = append(parts, fmt.Sprintf("<image %s, %d bytes>", c.MIME, len(c.Image)))
			continue
		}
		parts = append(parts, c.Text)
	}
	return strings.Join(parts, "\n")
}

// check reports what is wrong with an answer's text.
func check(t *testing.T, r tools.Result, isError bool, wants ...string) {
	t.Helper()
	text := textOf(r)
	if r.IsError != isError {
		t.Errorf("IsError is %v:\n%s", r.IsError, text)
	}
	for _, w := range wants {
		if not, ok := strings.CutPrefix(w, "!"); ok {
			if strings.Contains(text, not) {
				t.Errorf("the answer holds %q:\n%s", not, text)
			}
		} else if !strings.Contains(text, w) {
			t.Errorf("the answer lacks %q:\n%s", w, text)
		}
	}
}

func codeOf(err error) string { return string(fault.CodeOf(err)) }

func writeFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
