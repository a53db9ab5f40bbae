package tools_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
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
	ann   = space.SpaceID("s_annaaaaaaaaaaaaaaaaaaaaaaa")
	other = space.SpaceID("s_otheraaaaaaaaaaaaaaaaaaaaa")
)

func now() time.Time { return time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC) }

// spaces are spaces in git. They count the files that are read.
type spaces struct {
	*gitstore.Store
	reads atomic.Int64
}

func newSpaces(t testing.TB) *spaces {
	t.Helper()
	git, err := gitstore.Open(gitstore.Options{Dir: t.TempDir(), Limits: gitstore.Limits{File: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = git.Close() })
	return &spaces{Store: git}
}

// create makes a space with files. A text that begins with "-> " is a symbolic link;
// "-> outside" leads out of the space, as only a remote can bring it into a space.
func (s *spaces) create(t testing.TB, id space.SpaceID, files map[string]string) space.CommitID {
	t.Helper()
	var cs space.ChangeSet
	for p, text := range files {
		c := space.Change{Path: p, Content: []byte(text)}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			c.Mode, c.Content = space.Symlink, []byte(target)
		}
		cs.Changes = append(cs.Changes, c)
	}
	c, err := s.Create(t.Context(), id, cs, space.Meta{Time: now()})
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func (s *spaces) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	s.reads.Add(1)
	text, err := s.Store.ReadBlob(ctx, id, b)
	if string(text) == "outside" {
		text = []byte("../../etc/passwd")
	}
	return text, err
}

// fixedRun answers every command alike and keeps the last one.
type fixedRun struct {
	result protocol.ExecResult
	err    error
	last   protocol.ExecRequest
	runs   int
	hold   chan struct{} // if set, a command ends when it is closed
}

func (f *fixedRun) exec(_ context.Context, _ servicetest.Box, r protocol.ExecRequest) (protocol.ExecResult, error) {
	f.last = r
	f.runs++
	if f.hold != nil {
		<-f.hold
	}
	return f.result, f.err
}

// withoutCommands is a service over the spaces of o that runs no commands.
func withoutCommands(o *tools.Options) *service.Service {
	return service.New(service.Options{Git: o.Workspace.(*spaces).Store, Now: o.Now, Remotes: remotes.New(remotes.Options{})})
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

// bench is a Registry over real spaces, of which ann's has files. Its sandboxes answer as run
// says.
type bench struct {
	*tools.Registry
	spaces *spaces
	run    *fixedRun
}

func newBench(t testing.TB, files map[string]string, change func(*tools.Options)) *bench {
	t.Helper()
	b := &bench{spaces: newSpaces(t), run: &fixedRun{}}
	b.spaces.create(t, ann, files)
	o := tools.Options{
		Workspace: b.spaces,
		PublicURL: func() string { return "https://satchel.example" },
		Now:       now,
	}
	if change != nil {
		change(&o)
	}
	if o.Service == nil {
		o.Service = service.New(service.Options{Git: b.spaces.Store, Remotes: remotes.New(remotes.Options{}), Now: o.Now})
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

// resultsOf returns the results of an answer of search.
func resultsOf(r tools.Result) []service.SearchResult {
	results, _ := r.Meta["results"].([]service.SearchResult)
	return results
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
