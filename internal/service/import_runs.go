package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

const (
	// maxImports limits the imports that run at once.
	maxImports = 4
	// importKept is how long the result of an import is kept.
	importKept = 24 * time.Hour
)

// ImportOptions configure imports from URLs.
type ImportOptions struct {
	// Transport fetches repositories. It refuses addresses that the server must not reach.
	Transport *transport.Client
	CAFile    string
	Git       gitcmd.Runner
	Dir       string // the directory for fetched repositories
	Limit     int64  // the maximum size of a fetched repository, in bytes
}

// ImportState describes an import from a URL.
type ImportState struct {
	From    string
	Running bool
	Line    string // the latest step
	Problem string // why the import failed
	Files   int    // number of files that were read from the source
	Left    int    // number of files that were not imported
	// Replaced counts the unchanged initial files of the space that were replaced.
	Replaced int
	// Warnings counts the files that need a look. Warning is the first of them.
	Warnings int
	Warning  space.Warning
	Began    time.Time
	Ended    time.Time
}

// importRuns holds the imports that people start on the pages. An import continues after
// its request, but ends with the server.
type importRuns struct {
	ImportOptions
	into   func(ctx context.Context, id space.SpaceID, src gitstore.ImportSource, m space.Meta, progress func(string)) (gitstore.ImportResult, error)
	may    func(ctx context.Context, user space.UserID, id space.SpaceID) error // returns nil if the person may change the space
	record func(ctx context.Context, by space.UserID, id space.SpaceID, detail map[string]any)
	now    func() time.Time
	log    *slog.Logger

	mu sync.Mutex
	by map[space.SpaceID]*importRun
}

type importRun struct {
	ImportState
	user space.UserID
	end  context.CancelCauseFunc
}

// StartImportInput names a public git repository.
type StartImportInput struct {
	Space SpaceRef `json:"space"`
	URL   string   `json:"url"`
}

// StartImport starts an import from a public https URL in the background. The import
// ends if the person loses the right to change the space.
func (s *Service) StartImport(ctx context.Context, a Actor, in StartImportInput) (None, error) {
	m, err := s.authorizeSpace(ctx, a, "StartImport", in.Space)
	if err != nil {
		return None{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return None{}, err
	}
	if s.running.Background == nil {
		return None{}, fault.New(fault.Unavailable, "Only a running server can import from an address. Start it, or use satchel space import.")
	}
	meta := space.Meta{Author: who.author, Tool: ToolImport, Client: space.ClientBrowser, Message: "Import " + oneLine(in.URL)}
	return None{}, s.imports.start(s.running.Background, who.user, m.ID, in.URL, meta)
}

// GetImportInput names a space.
type GetImportInput struct {
	Space SpaceRef `json:"space"`
}

// GetImport returns the state of the last import from a URL into a space, or nil if there
// was none.
func (s *Service) GetImport(ctx context.Context, a Actor, in GetImportInput) (*ImportState, error) {
	m, err := s.authorizeSpace(ctx, a, "GetImport", in.Space)
	if err != nil {
		return nil, err
	}
	return s.imports.state(m.ID), nil
}

// EndImports ends a person's imports into a space, or into all spaces if id is empty.
func (s *Service) EndImports(user space.UserID, id space.SpaceID) { s.imports.end(user, id) }

// ForgetImport ends the import into a deleted space. If no import is running, it deletes the
// result of the last import.
func (s *Service) ForgetImport(id space.SpaceID) { s.imports.forget(id) }

func (s *Service) newImportRuns() *importRuns {
	return &importRuns{
		ImportOptions: s.o.Imports, now: s.o.Now, log: s.log, by: map[space.SpaceID]*importRun{},
		into: s.git.Import,
		may: func(ctx context.Context, user space.UserID, id space.SpaceID) error {
			all, err := s.accounts.SpacesOf(ctx, user)
			if err == nil && !slices.ContainsFunc(all, func(m store.Membership) bool { return m.ID == id && m.Role != space.Reader }) {
				err = errImportRight()
			}
			return err
		},
		record: func(ctx context.Context, by space.UserID, id space.SpaceID, detail map[string]any) {
			s.record(ctx, Person(store.User{ID: by}), "space.import", string(id), detail)
		},
	}
}

func errImportRight() error {
	return fault.New(fault.Forbidden, "The import was stopped because the person who started it can no longer change this space.")
}

func (r *importRuns) end(user space.UserID, id space.SpaceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, i := range r.by {
		if i.user == user && (id == "" || id == of) {
			i.end(errImportRight())
		}
	}
}

func (r *importRuns) forget(id space.SpaceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.by[id]; i != nil && i.Running {
		i.end(errImportRight())
	} else {
		delete(r.by, id)
	}
}

func (r *importRuns) state(id space.SpaceID) *ImportState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.by[id]; i != nil {
		st := i.ImportState
		return &st
	}
	return nil
}

func (r *importRuns) start(background func(func(context.Context)) error, by space.UserID, id space.SpaceID, url string, m space.Meta) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	running, own := 0, false
	maps.DeleteFunc(r.by, func(_ space.SpaceID, i *importRun) bool {
		if i.Running {
			running++
			own = own || i.user == by
		}
		return !i.Running && r.now().Sub(i.Ended) > importKept
	})
	if i := r.by[id]; i != nil && i.Running {
		return fault.New(fault.Conflict, "An import into this space is already running.")
	}
	if own {
		return fault.New(fault.Limited, "Your import into another space is still running. Wait until it finishes.")
	}
	if running >= maxImports {
		return fault.New(fault.Limited, "Too many imports are running. Try again in a few minutes.")
	}
	stopped, end := context.WithCancelCause(context.Background())
	err := background(func(ctx context.Context) {
		defer end(nil)
		defer context.AfterFunc(ctx, func() { end(context.Canceled) })()
		r.run(stopped, by, id, url, m)
	})
	if err == nil {
		r.by[id] = &importRun{ImportState: ImportState{From: url, Running: true, Began: r.now()}, user: by, end: end}
	}
	return err
}

func (r *importRuns) run(ctx context.Context, by space.UserID, id space.SpaceID, url string, m space.Meta) {
	r.change(id, func(*ImportState) {}) // waits until start has added the import
	// The person may have lost the right before start added the import.
	err := r.may(ctx, by, id)
	var res gitstore.ImportResult
	if err == nil {
		res, err = r.fetch(ctx, by, id, url, m, func(line string) { r.change(id, func(i *ImportState) { i.Line = line }) })
	}
	if err == nil {
		r.record(ctx, by, id, map[string]any{"from": PublicURL(url), "files": res.Files, "commit": res.Commit.ID})
	} else {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		r.log.Warn("an import failed", "space", id, "err", err)
	}
	r.change(id, func(i *ImportState) {
		i.Running, i.Ended = false, r.now()
		switch {
		case errors.Is(err, context.Canceled):
			i.Problem = "The server was stopped during the import. Start the import again."
		case err != nil:
			i.Problem = importProblem(err)
		default:
			i.Files, i.Left, i.Replaced = res.Files, res.Noted, len(res.Replaced)
			if i.Warnings = len(res.Commit.Warnings); i.Warnings > 0 {
				i.Warning = res.Commit.Warnings[0]
			}
		}
	})
}

func (r *importRuns) change(id space.SpaceID, f func(*ImportState)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.by[id].ImportState)
}

// fetch fetches the repository into a temporary directory and imports it from there.
func (r *importRuns) fetch(ctx context.Context, by space.UserID, id space.SpaceID, url string, m space.Meta, progress func(string)) (res gitstore.ImportResult, err error) {
	dir, err := os.MkdirTemp(r.Dir, importPrefix)
	if err != nil {
		return res, fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return res, fmt.Errorf("import: %w", err)
		}
	}
	for name, data := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			return res, fmt.Errorf("import: %w", err)
		}
	}
	if err := r.Transport.Fetch(ctx, transport.Endpoint{URL: url, CAFile: r.CAFile}, dir, "", "refs/heads/main", r.Limit, progress); err != nil {
		return res, err
	}
	progress("The repository was fetched. Reading its files.")
	out, in := io.Pipe()
	var bundling sync.WaitGroup
	bundling.Go(func() {
		_, err := r.Git.Run(ctx, gitcmd.Cmd{Dir: dir, GitDir: dir, Stdout: in, Args: []string{"bundle", "create", "--quiet", "-", "HEAD", "refs/heads/main"}})
		in.CloseWithError(err)
	})
	res, err = r.into(ctx, id, gitstore.CheckedBefore(gitstore.FromBundle(out), func() error { return r.may(ctx, by, id) }), m, progress)
	_ = out.CloseWithError(io.ErrClosedPipe) // ends git if the import did not read everything
	bundling.Wait()
	return res, err
}

const importPrefix = "import-"

// removeLeftImports removes the directories and files that a killed process left.
func removeLeftImports(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, importPrefix+"*"))
	for _, d := range left {
		_ = os.RemoveAll(d) // the next start tries again
	}
}

// importProblem explains a failure to a person who gave only an address.
func importProblem(err error) string {
	var e *transport.Error
	if !errors.As(err, &e) {
		return fault.PublicOf(err)
	}
	switch e.Problem {
	case transport.Auth, transport.Forbidden, transport.Gone:
		return "There is no public git repository at this address. To import a private one, connect GitHub, or use the command satchel space import."
	case transport.BadURL, transport.BlockedAddress:
		if e.Problem == transport.BadURL && !transport.NeedsTrust(err) {
			return "This is not an address of a git repository. Use one such as https://github.com/you/notes."
		}
		return "This is not a public address. Use the address of a public repository, such as https://github.com/you/notes."
	}
	return e.Public()
}
