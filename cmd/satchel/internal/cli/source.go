package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/service"
)

// source is what `space import` reads: a git URL, a local git repository, a git
// bundle or a plain directory. The command opens it with the rights and the git configuration
// of the person who typed it. The server only gets a stream of content, never a path or a URL.
type source struct {
	arg     string
	environ []string
	stdin   io.Reader
	log     io.Writer // git's messages
	// watched reports whether a person reads log. Only then does git print its progress.
	watched bool
	// maxFile returns the size limit of a file, in bytes. Only the import of a plain directory
	// calls it, at the first read of the stream.
	maxFile func() int64
}

// scpLike is git's short form of an ssh URL: [user@]host:path.
var scpLike = regexp.MustCompile(`^([\w.-]+@)?[\w.-]+:[^\\]`)

func isURL(arg string) bool {
	if strings.Contains(arg, "://") {
		return true
	}
	if _, err := os.Stat(arg); err == nil {
		return false
	}
	return scpLike.MatchString(arg)
}

// check rejects invalid sources early.
func (s source) check() error {
	if s.arg == "" || strings.HasPrefix(s.arg, "-") {
		return fault.New(fault.Invalid, "%q is not a git URL or a directory.", s.arg)
	}
	if isURL(s.arg) {
		return nil
	}
	switch info, err := os.Stat(s.arg); {
	case errors.Is(err, os.ErrNotExist):
		return fault.New(fault.NotFound, "There is no directory %q, and it is not a git URL either.", s.arg)
	case err != nil:
		return fault.Wrap(err, fault.Unavailable, "%q cannot be read: %s.", s.arg, cause(err))
	case !info.IsDir() && !isBundle(s.arg):
		return fault.New(fault.Invalid, "%q is a file, but not a git bundle. Name its directory, or a git repository.", s.arg)
	}
	return nil
}

// isBundle reports whether a path is a file that begins as a git bundle does
// (gitformat-bundle(5)).
func isBundle(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var begin [16]byte
	if _, err := io.ReadFull(f, begin[:]); err != nil {
		return false
	}
	return string(begin[:]) == "# v2 git bundle\n" || string(begin[:]) == "# v3 git bundle\n"
}

// cause returns the system's own message for an error with a file, without the path.
func cause(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// open starts to stream the source. kind is the format of the stream. The stream's Read fails if
// the source cannot be read. The caller must call Close, which ends a git process or goroutine
// that still runs. Close may be called during a Read.
func (s source) open(ctx context.Context) (kind string, stream io.ReadCloser, err error) {
	if isURL(s.arg) {
		stream, err := s.clone(ctx)
		return service.ImportBundle, stream, err
	}
	if isBundle(s.arg) {
		stream, err := os.Open(s.arg)
		return service.ImportBundle, stream, err
	}
	if gitstore.IsGitRepository(s.arg) {
		switch has, err := s.hasCommit(ctx); {
		case err != nil:
			return "", nil, err
		case has:
			stream, err := s.bundle(ctx, s.arg, func() {})
			return service.ImportBundle, stream, err
		}
		// Nothing was committed yet, so only the files can be imported.
		if _, err := os.Stat(filepath.Join(s.arg, ".git")); err != nil {
			return "", nil, fault.New(fault.Invalid, "The repository %q has no commit yet.", s.arg)
		}
	}
	return service.ImportTar, tarOf(ctx, s.arg, s.maxFile), nil
}

func (s source) clone(ctx context.Context) (io.ReadCloser, error) {
	dir, err := os.MkdirTemp("", "satchel-import-")
	if err != nil {
		return nil, err
	}
	cleanup := func() { os.RemoveAll(dir) }
	progress := "--quiet"
	if s.watched {
		progress = "--progress"
	}
	clone := s.git(ctx, "clone", "--bare", "--single-branch", "--no-tags", "--template=", progress, "--", s.arg, dir)
	clone.Stdin, clone.Stderr = s.stdin, s.log
	if err := clone.Run(); err != nil {
		cleanup()
		return nil, gitFault(ctx, err, "git could not clone the repository; its message is above.")
	}
	return s.bundle(ctx, dir, cleanup)
}

// notOfCaller are variables that a git hook has. If a hook calls satchel, they would direct
// git to another repository.
var notOfCaller = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"}

// git returns a git command with the caller's own configuration. The command does not
// fetch objects that a repository lacks (see offline).
func (s source) git(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = slices.DeleteFunc(slices.Clone(s.environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(notOfCaller, name)
	})
	cmd.Env = append(cmd.Env, "GIT_NO_LAZY_FETCH=1")
	return cmd
}

// offline keeps a command that only reads a repository from fetching missing objects, even if
// git is too old for GIT_NO_LAZY_FETCH. The repository's own configuration names the program
// that fetches (remote.<name>.uploadpack of a partial clone), and the repository may be
// anyone's.
func (s source) offline(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL=")
	return cmd
}

// gitFault returns the error for a git command that failed with err. otherwise is its message
// unless ctx has ended or git is not installed.
func gitFault(ctx context.Context, err error, otherwise string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return fault.Wrap(err, fault.Unavailable, "git is not installed; satchel reads repositories with it.")
	}
	return fault.Wrap(err, fault.Unavailable, "%s", otherwise)
}

// hasCommit reports whether a repository has a commit to import.
func (s source) hasCommit(ctx context.Context) (bool, error) {
	cmd := s.offline(s.git(ctx, "-C", s.arg, "rev-parse", "--verify", "--quiet", "HEAD"))
	var diag bytes.Buffer
	cmd.Stderr = &diag
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && diag.Len() == 0: // with --quiet, a missing commit prints nothing
		return false, nil
	}
	return false, gitFault(ctx, err, fmt.Sprintf("git cannot read the repository %q: %s", s.arg, firstLine(diag.String())))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// bundle streams the repository's HEAD with its history. cleanup is called when
// nothing reads the repository any more, also if bundle fails.
func (s source) bundle(ctx context.Context, dir string, cleanup func()) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &processStream{cmd: s.offline(s.git(ctx, "-C", dir, "bundle", "create", "--quiet", "-", "HEAD")), cancel: cancel, cleanup: cleanup}
	p.cmd.Stderr = &p.diag
	// A pipe from cmd.StdoutPipe does not allow Wait during a Read, but Close may call Wait during
	// a Read.
	r, w, err := os.Pipe()
	if err == nil {
		p.out, p.cmd.Stdout = r, w
		if err = p.cmd.Start(); err != nil {
			r.Close()
		}
		w.Close()
	}
	if err != nil {
		cancel()
		cleanup()
		return nil, gitFault(ctx, err, "git could not be started.")
	}
	return p, nil
}

// processStream is the standard output of a program. It ends with an error if
// the program fails.
type processStream struct {
	out     *os.File
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	cleanup func()
	diag    bytes.Buffer // the program's standard error, which is read after the program has ended

	ended sync.Once
	err   error
}

func (p *processStream) wait() error {
	p.ended.Do(func() {
		if err := p.cmd.Wait(); err != nil {
			p.err = fault.Wrap(err, fault.Unavailable, "git cannot read the repository: %s", firstLine(p.diag.String()))
		}
	})
	return p.err
}

func (p *processStream) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if errors.Is(err, io.EOF) {
		if failed := p.wait(); failed != nil {
			return n, failed
		}
	}
	return n, err
}

func (p *processStream) Close() error {
	p.cancel()
	_ = p.wait() // cancel kills the program, so its failure says nothing
	err := p.out.Close()
	p.cleanup()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// tarOf streams the files of a directory: regular files and symbolic links, without .git
// directories. Links are written as links, never followed. maxFile is called when the first
// byte is read.
func tarOf(ctx context.Context, dir string, maxFile func() int64) io.ReadCloser {
	r, w := io.Pipe()
	t := &tarStream{PipeReader: r, done: make(chan struct{})}
	t.write = func() {
		defer close(t.done)
		w.CloseWithError(gitstore.WriteTar(ctx, filepath.Clean(dir), w, maxFile()))
	}
	return t
}

type tarStream struct {
	*io.PipeReader
	begun sync.Once
	write func()
	done  chan struct{}
}

// Read starts the goroutine that writes the stream, at the first call.
func (t *tarStream) Read(b []byte) (int, error) {
	t.begun.Do(func() { go t.write() })
	return t.PipeReader.Read(b)
}

// Close ends the stream and waits for the goroutine that writes it.
func (t *tarStream) Close() error {
	err := t.PipeReader.Close()
	t.begun.Do(func() { close(t.done) })
	<-t.done
	return err
}
