package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/egress"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// importWorld is a World with one space. If allow is set, the egress rules let imports
// reach the remote of the test.
type importWorld struct {
	*importRuns
	ctx   context.Context
	work  *sync.WaitGroup
	store *gitstore.Store
	id    space.SpaceID
}

func newImporting(t *testing.T, remote *remotetest.Server, allow bool) *importWorld {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	o := egress.Options{}
	if allow {
		_, port, _ := strings.Cut(remote.Host(), ":")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		o.Allow, o.Ports = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []uint16{uint16(n)}
	}
	proxy, err := egress.NewProxy(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	tr := transport.New(transport.Options{Egress: proxy})
	dir := t.TempDir()
	store, err := gitstore.Open(gitstore.Options{Dir: filepath.Join(dir, "spaces"), Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	s := &importWorld{store: store, id: space.NewSpaceID()}
	if _, err := store.Create(ctx, s.id, space.ChangeSet{Changes: []space.Change{{Path: "README.md", Content: []byte("begin")}}}, space.Meta{Author: space.Person{Name: "ada", Email: "a@x"}}); err != nil {
		t.Fatal(err)
	}
	s.ctx, s.work = ctx, &sync.WaitGroup{}
	s.importRuns = &importRuns{
		ImportOptions: ImportOptions{Transport: tr, Git: gitcmd.Runner{Program: "git"}, Dir: dir, Limit: 100 << 20, CAFile: remote.CAFile()},
		into:          store.Import, log: slog.New(slog.NewTextHandler(t.Output(), nil)), now: time.Now, by: map[space.SpaceID]*importRun{},
		may:    func(context.Context, space.UserID, space.SpaceID) error { return nil },
		record: func(context.Context, space.UserID, space.SpaceID, map[string]any) {},
	}
	t.Cleanup(func() {
		stop()
		s.work.Wait()
		for _, close := range []func() error{store.Close, tr.Close, proxy.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func (s *importWorld) begin(by space.UserID, id space.SpaceID, url string) error {
	m := space.Meta{Author: space.Person{Name: "ada", Email: "a@x"}, Tool: "import", Client: "browser", Message: "Import it"}
	return s.start(func(work func(context.Context)) error { s.work.Go(func() { work(s.ctx) }); return nil }, by, id, url, m)
}

// run runs an import to its end.
func (s *importWorld) run(t *testing.T, url string) ImportState {
	t.Helper()
	if err := s.begin("u_ada", s.id, url); err != nil {
		t.Fatal(err)
	}
	s.work.Wait()
	i := s.state(s.id)
	if i == nil || i.Running || i.Ended.IsZero() {
		t.Fatalf("%+v", i)
	}
	left, err := filepath.Glob(filepath.Join(s.Dir, importPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	return *i
}

func TestImportByThePages(t *testing.T) {
	remote := remotetest.New(t, remotetest.Options{TLS: true})
	remote.Create("notes")
	remote.Push("notes", "main", map[string]string{"tea.md": "Assam", "deep/milk.md": "none"})
	s := newImporting(t, remote, true)
	var noted []string
	s.record = func(_ context.Context, by space.UserID, id space.SpaceID, d map[string]any) {
		noted = append(noted, fmt.Sprint(by, " ", id, " ", d["from"]))
	}
	defer func() {
		if want := fmt.Sprint("u_ada ", s.id, " ", remote.URL("notes")); len(noted) != 1 || noted[0] != want {
			t.Errorf("the audit log has %q, want %q", noted, want)
		}
	}()
	if i := s.run(t, remote.URL("notes")); i.Problem != "" || i.Files == 0 || i.From != remote.URL("notes") {
		t.Fatalf("%+v", i)
	}
	head, err := s.store.Head(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []space.Path{"tea.md", "deep/milk.md", "README.md"} {
		if _, err := s.store.Lookup(t.Context(), s.id, head, p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if i := s.run(t, remote.URL("none")); !strings.Contains(i.Problem, "no public git repository") {
		t.Errorf("a repository that is none: %q", i.Problem)
	}
}

// Attack: an import from the server's own network. No request is sent there.
func TestAttackImportFromPrivateAddress(t *testing.T) {
	remote := remotetest.New(t, remotetest.Options{TLS: true})
	remote.Create("notes")
	remote.Push("notes", "main", map[string]string{"secret.md": "x"})
	remote.Forget()
	s := newImporting(t, remote, false)
	before, err := s.store.Head(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	for problem, urls := range map[string][]string{
		"This is not a public address.": {
			remote.URL("notes"), strings.Replace(remote.URL("notes"), "127.0.0.1", "localhost", 1), "https://localhost/x.git", "https://LOCALHOST/x.git", "https://127.0.0.1/x.git",
			"https://169.254.169.254/latest.git", "https://[::1]/x.git", "file:///etc", "/etc", "http://127.0.0.1/x.git",
		},
		"This is not an address of a git repository.": {"ext::sh -c id", "https://github.com", "https://github.com/a/../b", "https://ada:secret@example.com/x.git"},
	} {
		for _, url := range urls {
			if i := s.run(t, url); !strings.HasPrefix(i.Problem, problem) || strings.Contains(i.Problem, s.Dir) {
				t.Errorf("%s: %q", url, i.Problem)
			}
		}
	}
	if got := remote.Requests(); len(got) > 0 {
		t.Errorf("it asked %v", got)
	}
	if after, err := s.store.Head(t.Context(), s.id); err != nil || after != before {
		t.Errorf("the space has changed: %v", err)
	}
}

// slowImports is a World whose imports wait for a signal.
type slowImports struct{ release chan struct{} }

func (s slowImports) Import(ctx context.Context, _ space.SpaceID, _ gitstore.ImportSource, _ space.Meta, _ func(string)) (gitstore.ImportResult, error) {
	select {
	case <-s.release:
		return gitstore.ImportResult{Files: 1}, nil
	case <-ctx.Done():
		return gitstore.ImportResult{}, ctx.Err()
	}
}

// Attack: an import continues after its person lost the right to change the space.
func TestAttackImportEndsWithTheRight(t *testing.T) {
	remote := remotetest.New(t, remotetest.Options{TLS: true})
	remote.Create("notes")
	remote.Push("notes", "main", map[string]string{"a.md": "x"})
	t.Run("while it runs", func(t *testing.T) {
		s := newImporting(t, remote, true)
		s.into = slowImports{make(chan struct{})}.Import
		if err := s.begin("u_ada", s.id, remote.URL("notes")); err != nil {
			t.Fatal(err)
		}
		s.end("u_bob", "")
		s.end("u_ada", space.NewSpaceID())
		if i := s.state(s.id); !i.Running {
			t.Errorf("it ends with another's right: %+v", i)
		}
		s.end("u_ada", s.id)
		s.work.Wait()
		if i := s.state(s.id); !strings.Contains(i.Problem, "can no longer change") {
			t.Errorf("%+v", i)
		}
	})
	// The last check comes right before the commit, for imported histories and files.
	for name, begin := range map[string]func(s *importWorld){
		"into a new space": func(*importWorld) {},
		"into one with changes": func(s *importWorld) {
			cs := space.ChangeSet{Changes: []space.Change{{Path: "own.md", Content: []byte("own")}}}
			if _, err := s.store.Commit(t.Context(), s.id, cs, space.Meta{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newImporting(t, remote, true)
			begin(s)
			before, err := s.store.Head(t.Context(), s.id)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			s.may = func(context.Context, space.UserID, space.SpaceID) error {
				if asked++; asked > 1 {
					return errImportRight()
				}
				return nil
			}
			if i := s.run(t, remote.URL("notes")); !strings.Contains(i.Problem, "can no longer change") {
				t.Errorf("%+v", i)
			}
			if after, err := s.store.Head(t.Context(), s.id); err != nil || after != before || asked != 2 {
				t.Errorf("the space has changed after %d looks: %v", asked, err)
			}
		})
	}
}

func TestImportsAreBounded(t *testing.T) {
	remote := remotetest.New(t, remotetest.Options{TLS: true})
	remote.Create("notes")
	remote.Push("notes", "main", map[string]string{"a.md": "x"})
	s := newImporting(t, remote, true)
	slow := slowImports{make(chan struct{})}
	s.into = slow.Import
	url := remote.URL("notes")
	if err := s.begin("u_ada", s.id, url); err != nil {
		t.Fatal(err)
	}
	if err := s.begin("u_ada", s.id, url); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second one into the same space: %v", err)
	}
	var others []space.SpaceID
	// Attack: the imports of one person block everybody else's.
	if err := s.begin("u_ada", space.NewSpaceID(), url); fault.CodeOf(err) != fault.Limited || !strings.Contains(fault.PublicOf(err), "Your import") {
		t.Errorf("a second one of one person: %v", err)
	}
	for i := range maxImports - 1 {
		id := space.NewSpaceID()
		others = append(others, id)
		if err := s.begin(space.UserID(fmt.Sprint("u_", i)), id, url); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.begin("u_last", space.NewSpaceID(), url); fault.CodeOf(err) != fault.Limited {
		t.Errorf("one more than are allowed: %v", err)
	}
	close(slow.release)
	s.work.Wait()
	for _, id := range append(others, s.id) {
		if i := s.state(id); i == nil || i.Running || i.Problem != "" || i.Files != 1 {
			t.Errorf("%+v", i)
		}
	}
	// Old results are deleted, so that their number is limited.
	s.now = func() time.Time { return time.Now().Add(importKept + time.Hour) }
	if err := s.begin("u_ada", s.id, url); err != nil {
		t.Fatal(err)
	}
	s.work.Wait()
	if len(s.by) != 1 {
		t.Errorf("%d imports are known", len(s.by))
	}
}

// The next start removes what a killed process left, and nothing else.
func TestLeftImportsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{importPrefix + "1", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, d, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeLeftImports(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("%v %v", left, err)
	}
}
