package server

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
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// addConnect gives the pages of the first steps what they need.
func (s *Server) addConnect(o *web.Options) {
	dir := filepath.Dir(SocketPath(s.Config.DataDir))
	removeImports(dir)
	if exe, err := os.Executable(); err == nil && s.Local() {
		o.Stdio = []string{exe, "stdio", "--data", s.Config.DataDir}
	}
	s.imports = &setup{
		git: s.Git, remotes: s.remotes, log: s.Log.With("part", "import"),
		transport: s.transport, run: gitcmd.Runner{Program: "git", Memory: s.Config.Remotes.GitMemory}, dir: dir, limit: s.Config.Space.MaxHistory(), caFile: s.Config.Remotes.CAFile,
		every: s.Config.Remotes.PollEvery, told: reachable(s.issuer),
		ctx: s.ctx, work: &s.work, now: time.Now, by: map[space.SpaceID]*importing{},
		may: s.mayWrite, audit: s.auditPage,
	}
	o.Setup = s.imports
}

const (
	// maxImports bounds the imports that people run at once by the pages.
	maxImports = 4
	// importKept is how long the pages know how an import went.
	importKept = 24 * time.Hour
)

// importer is what imports need of the store of spaces.
type importer interface {
	Import(ctx context.Context, id space.SpaceID, src gitstore.ImportSource, m space.Meta, progress func(string)) (gitstore.ImportResult, error)
}

// setup implements web.Setup. Imports are the server's own work: they go on when
// the browser has gone, and end with ctx.
type setup struct {
	git     importer
	remotes *remotes.Manager
	log     *slog.Logger

	// People name the addresses, so that these are reached as remotes are: by the
	// transport, whose rules say where it may go.
	transport *transport.Client
	run       gitcmd.Runner
	dir       string // for what is fetched
	limit     int64  // of that, in bytes
	caFile    string

	// every is how often remotes are asked; told, that GitHub can tell of pushes.
	every time.Duration
	told  bool

	ctx  context.Context
	work *sync.WaitGroup
	now  func() time.Time

	// may reports whether a person may change a space now; audit notes what they did.
	may   func(ctx context.Context, user space.UserID, id space.SpaceID) error
	audit func(ctx context.Context, by space.UserID, action string, id space.SpaceID, detail map[string]any)

	mu sync.Mutex
	by map[space.SpaceID]*importing
}

// importing is an import that runs or ran.
type importing struct {
	web.ImportState
	user space.UserID
	end  context.CancelCauseFunc
}

// mayWrite reports why a person may not change a space.
func (s *Server) mayWrite(ctx context.Context, user space.UserID, id space.SpaceID) error {
	all, err := s.Accounts.SpacesOf(ctx, user)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(m store.Membership) bool { return m.ID == id && m.Role != space.Reader }) {
		return errImportRight()
	}
	return nil
}

func errImportRight() error {
	return fault.New(fault.Forbidden, "The import was ended, because who began it may not change this space any more.")
}

// end ends the imports of a person into a space, or with "" into all.
func (s *setup) end(user space.UserID, id space.SpaceID) {
	if s == nil { // nobody can have begun one yet
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, i := range s.by {
		if i.user == user && (id == "" || id == of) {
			i.end(errImportRight())
		}
	}
}

// forget ends an import into a space that was deleted, and forgets how one went.
func (s *setup) forget(id space.SpaceID) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.by[id]; i != nil && i.Running {
		i.end(errImportRight())
	} else {
		delete(s.by, id)
	}
}

var _ web.Setup = (*setup)(nil)

func (s *setup) Fetch(id space.SpaceID) { s.remotes.Notify(id) }

func (s *setup) Push(ctx context.Context, id space.SpaceID) (web.PushState, error) {
	if !s.remotes.Has(id) {
		return web.PushState{State: string(remotes.Local)}, nil
	}
	st, err := s.remotes.Status(ctx, id)
	if err != nil {
		return web.PushState{}, err
	}
	out := web.PushState{Every: max(0, s.every), Told: s.told && st.Remote != nil && st.Remote.Kind == remotes.GitHub, State: string(st.State), Detail: st.Detail, Remedy: st.Remedy, LastSync: st.LastSync}
	if st.Remote != nil {
		out.Remote = st.Remote.URL
	}
	return out, nil
}

func (s *setup) Import(_ context.Context, by space.UserID, id space.SpaceID, url string, m space.Meta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The server is about to stop. Try again in a moment.")
	}
	running, own := 0, false
	maps.DeleteFunc(s.by, func(_ space.SpaceID, i *importing) bool {
		if i.Running {
			running++
			own = own || i.user == by
		}
		return !i.Running && s.now().Sub(i.Ended) > importKept
	})
	if i := s.by[id]; i != nil && i.Running {
		return fault.New(fault.Conflict, "An import into this space is under way already.")
	}
	if own {
		return fault.New(fault.Limited, "An import of yours into another space is under way. Begin this one when that is done.")
	}
	if running >= maxImports {
		return fault.New(fault.Limited, "Other imports are under way. Try again in a few minutes.")
	}
	ctx, end := context.WithCancelCause(s.ctx)
	s.by[id] = &importing{ImportState: web.ImportState{From: url, Running: true, Began: s.now()}, user: by, end: end}
	s.work.Go(func() {
		defer end(nil)
		s.finish(ctx, by, id, url, m)
	})
	return nil
}

func (s *setup) finish(ctx context.Context, by space.UserID, id space.SpaceID, url string, m space.Meta) {
	tell := func(line string) { s.change(id, func(i *web.ImportState) { i.Line = line }) }
	// They may have lost the right just before the import was noted.
	err := s.may(ctx, by, id)
	var res gitstore.ImportResult
	if err == nil {
		res, err = s.fetch(ctx, by, id, url, m, tell)
	}
	if err == nil {
		s.audit(ctx, by, "space.import", id, map[string]any{"from": admin.PlaceOf(url), "files": res.Files, "commit": res.Commit.ID})
	} else {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		s.log.Warn("an import failed", "space", id, "error", err)
	}
	s.change(id, func(i *web.ImportState) {
		i.Running, i.Ended = false, s.now()
		switch {
		case errors.Is(err, context.Canceled):
			i.Problem = "The server was stopped meanwhile. Start the import again."
		case err != nil:
			i.Problem = whyNotImported(err)
		default:
			i.Files, i.Left, i.Replaced = res.Files, res.Noted, len(res.Replaced)
			if i.Warnings = len(res.Commit.Warnings); i.Warnings > 0 {
				i.Warning = res.Commit.Warnings[0]
			}
		}
	})
}

// fetch brings the repository here, by itself first, and from there into the space.
func (s *setup) fetch(ctx context.Context, by space.UserID, id space.SpaceID, url string, m space.Meta, tell func(string)) (res gitstore.ImportResult, err error) {
	dir, err := os.MkdirTemp(s.dir, importPrefix)
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
	if err := s.transport.Fetch(ctx, transport.Endpoint{URL: url, CAFile: s.caFile}, dir, "", "refs/heads/main", s.limit, tell); err != nil {
		return res, err
	}
	tell("The repository is here. Its files are being read.")
	r, w := io.Pipe()
	var bundling sync.WaitGroup
	bundling.Go(func() {
		_, err := s.run.Run(ctx, gitcmd.Cmd{Dir: dir, GitDir: dir, Stdout: w, Args: []string{"bundle", "create", "--quiet", "-", "HEAD", "refs/heads/main"}})
		w.CloseWithError(err)
	})
	res, err = s.git.Import(ctx, id, gitstore.CheckedBefore(gitstore.FromBundle(r), func() error { return s.may(ctx, by, id) }), m, tell)
	_ = r.CloseWithError(io.ErrClosedPipe) // so that git ends where the import did not want it all
	bundling.Wait()
	return res, err
}

const importPrefix = "import-"

// removeImports removes what a process left that was killed.
func removeImports(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, importPrefix+"*"))
	for _, d := range left {
		_ = os.RemoveAll(d) // the next start tries again
	}
}

// whyNotImported says it to somebody who gave an address alone, and no token.
func whyNotImported(err error) string {
	var e *transport.Error
	if !errors.As(err, &e) {
		return fault.PublicOf(err)
	}
	switch e.Problem {
	case transport.Auth, transport.Forbidden, transport.Gone:
		return "There is no public git repository at this address. A private one is brought by connecting GitHub, or with the command satchel space import."
	case transport.BadURL, transport.BlockedAddress:
		return "This server does not fetch from such an address. It takes public ones that begin with https://."
	}
	return e.Public()
}

func (s *setup) change(id space.SpaceID, f func(*web.ImportState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.by[id].ImportState)
}

func (s *setup) Imported(id space.SpaceID) (web.ImportState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.by[id]; i != nil {
		return i.ImportState, true
	}
	return web.ImportState{}, false
}
