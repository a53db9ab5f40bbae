package gitstore

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// FromBundle returns a source that reads a git bundle. It takes the bundle's HEAD, else
// main, else the first branch, with its history. The bundle may come from anyone.
func FromBundle(r io.Reader) ImportSource { return bundleSource{r} }

type bundleSource struct{ r io.Reader }

// quarantine is a repository for foreign objects. git's fsck checks them before any of
// them reaches a space.
type quarantine struct {
	s     *Store
	dir   string // removed by Close
	label string
	r     *repo // opened once the objects are there
	head  *headState
}

func (q *quarantine) Name() string         { return q.label }
func (q *quarantine) history() *quarantine { return q }
func (q *quarantine) repoDir() string      { return filepath.Join(q.dir, "repo.git") }

func (q *quarantine) Close() {
	if q.r != nil {
		q.r.db.Close()
	}
	if err := removeTree(q.dir); err != nil {
		q.s.o.Logger.Warn("A quarantine could not be removed.", "error", err)
	}
}

func (s *Store) newQuarantine(label string) (*quarantine, error) {
	dir, err := os.MkdirTemp(filepath.Join(s.o.Dir, quarantineDir), "import-")
	if err != nil {
		return nil, err
	}
	q := &quarantine{s: s, dir: dir, label: label}
	if err := initQuarantine(q.repoDir()); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// initQuarantine creates a bare repository with the minimum that git needs, because
// every fetch and merge creates one.
func initQuarantine(dir string) error {
	for _, d := range []string{"", "objects", "objects/pack", "objects/info", "refs"} {
		if err := packfile.MkdirMode(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	for name, data := range map[string]string{
		"HEAD":   "ref: " + branch + "\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (b bundleSource) begin(ctx context.Context, s *Store, progress func(string)) (importReader, error) {
	q, err := s.newQuarantine("a git repository")
	if err != nil {
		return nil, err
	}
	if err := q.receiveBundle(ctx, b.r, progress); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

func (q *quarantine) receiveBundle(ctx context.Context, in io.Reader, progress func(string)) error {
	name := filepath.Join(q.dir, "bundle")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(in, q.s.o.Limits.Repository+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if n > q.s.o.Limits.Repository {
		return tooMuchHistory(q.s.o.Limits.Repository)
	}
	if _, err := q.git(ctx, gitcmd.Cmd{Args: []string{"bundle", "verify", "-q", name}}); err != nil {
		return q.explain(ctx, err)
	}
	out, err := q.git(ctx, gitcmd.Cmd{Args: []string{"bundle", "list-heads", name}})
	if err != nil {
		return q.explain(ctx, err)
	}
	ref := ""
	for line := range strings.Lines(string(out)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "HEAD" || ref == "" && strings.HasPrefix(name, "refs/heads/") || name == branch && ref != "HEAD" {
			ref = name
		}
	}
	if ref == "" {
		return fault.New(fault.Invalid, "The bundle has no branch.")
	}
	return q.receive(ctx, name, ref, progress)
}

func (q *quarantine) git(ctx context.Context, c gitcmd.Cmd) ([]byte, error) {
	c.Dir, c.GitDir = q.dir, q.repoDir()
	return q.s.git.Run(ctx, c)
}

// receive fetches a branch, checks every object, and leaves one pack with everything
// that the branch reaches.
func (q *quarantine) receive(ctx context.Context, from, ref string, progress func(string)) error {
	args := []string{"fetch", "--progress", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
		"--no-auto-maintenance", "--end-of-options", from, "+" + ref + ":refs/heads/main"}
	if _, err := q.git(ctx, gitcmd.Cmd{Protocols: "file", Progress: onlyProgress(progress), Config: gitcmd.FsckConfig("fetch.fsck"), Args: args}); err != nil {
		return q.explain(ctx, err)
	}
	// Not every version of git checks the objects of a bundle during a fetch.
	if _, err := q.git(ctx, gitcmd.Cmd{Config: gitcmd.FsckConfig("fsck"), Args: []string{"fsck", "--strict", "--no-dangling", "--no-progress"}}); err != nil {
		return q.explain(ctx, err)
	}
	if _, err := q.git(ctx, gitcmd.Cmd{Args: []string{"repack", "-a", "-d", "-q"}}); err != nil {
		return q.explain(ctx, err)
	}
	q.r = &repo{s: q.s, id: "quarantine", dir: q.repoDir()}
	var err error
	if q.r.db, err = packfile.Open(filepath.Join(q.repoDir(), "objects"), q.s.cache); err != nil {
		q.r = nil
		return err
	}
	if q.head, err = q.r.state(q.r.readRef()); err != nil {
		return err
	}
	l, err := newScales(q.r, true).tree(ctx, q.head.tree)
	if err != nil {
		return err
	}
	if lim := q.s.o.Limits; l.files > lim.Files || l.bytes > lim.Space || !l.fitsWalk(q.r.trees().Budget()) {
		return overLimits(l.totals, lim)
	}
	return nil
}

// gitProgress matches the lines of git that users may see. Other lines may name paths on the
// host.
var gitProgress = regexp.MustCompile(`^(Receiving objects|Resolving deltas|Unpacking objects): +\d+%`)

func onlyProgress(progress func(string)) func(string) {
	return func(line string) {
		if gitProgress.MatchString(line) {
			progress(line)
		}
	}
}

func tooMuchHistory(limit int64) error {
	return fault.New(fault.TooLarge, "The repository is larger than the %s that a space may have.", bytesize.Text(limit))
}

func tooMuchMemory(err error) error {
	return fault.Wrap(err, fault.TooLarge, "To import the repository, git would need more memory than this server allows: a file in it, or a version of one, is too large.")
}

// explain turns git's error into an error that the caller can act on. git's message may
// name paths on the host, so only the log gets the whole message.
func (q *quarantine) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var g *gitcmd.Error
	if !errors.As(err, &g) || isDiskFull(err) {
		return explainDisk(err)
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(g.Stderr, w) {
				return true
			}
		}
		return false
	}
	switch {
	case gitcmd.OutOfMemory(err):
		return tooMuchMemory(err)
	case has("shallow"):
		return fault.Wrap(err, fault.Invalid, "The repository is a shallow clone. Run git fetch --unshallow in it first.")
	case has("fsck", "error in tree", "error in commit", "error in blob", "error in tag", "invalid", "corrupt"):
		return fault.Wrap(err, fault.Invalid, "The repository holds an object that git refuses as malformed or dangerous (%s).", fsckReason(g.Stderr))
	}
	return fault.Wrap(err, fault.Invalid, "The stream is not a complete git bundle.")
}

// fsckReason picks the part of git's message that names the defect, such as hasDotgit.
func fsckReason(stderr string) string {
	for line := range strings.Lines(stderr) {
		if _, rest, ok := strings.Cut(line, "error in "); ok {
			return commits.OneLine(rest, 120)
		}
	}
	return "see the server's log"
}

// files visits the files of the quarantined head, for a space that has its own history.
func (q *quarantine) files(ctx context.Context, visit func(importFile) error, refuse func(string, error)) error {
	return q.r.trees().Walk(ctx, q.head.tree, "", func(path string, e packfile.TreeEntry) error {
		if !e.IsFile() {
			refuse(path, fault.New(fault.Invalid, "%q is a submodule; its files are in another repository.", path))
			return nil
		}
		n, err := q.r.db.Size(e.Hash)
		if err != nil {
			return err
		}
		return visit(importFile{path: path, mode: e.FileMode(), size: n, open: func() (io.ReadCloser, error) {
			data, err := q.r.db.Blob(e.Hash)
			if err != nil {
				return nil, err
			}
			return io.NopCloser(strings.NewReader(string(data))), nil
		}})
	})
}

// IsGitRepository reports whether a directory looks like a git repository, bare or
// with a working tree.
func IsGitRepository(dir string) bool {
	for _, name := range []string{".git", "HEAD"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			continue
		}
		if name == ".git" {
			return true
		}
		st, err := os.Stat(filepath.Join(dir, "objects"))
		return err == nil && st.IsDir()
	}
	return false
}

// reasonOf returns a fault that says which rule a path of a foreign history breaks, or nil.
// size is the size of the file. A file of more than fileLimit bytes breaks a rule too.
func (r *repo) reasonOf(path string, e packfile.TreeEntry, size, fileLimit int64) (reason error, err error) {
	if !e.IsFile() {
		return nil, nil
	}
	p, reason := space.ParsePath(path)
	if reason == nil && e.IsLink() {
		if reason = r.checkLink(p, e.Hash); reason != nil && !isFault(reason) {
			return nil, reason
		}
	}
	if reason == nil && size > fileLimit {
		reason = fault.New(fault.TooLarge, "The file %q has %s, more than the %s that a changed file can have here.", path, bytesize.Text(size), bytesize.Text(fileLimit))
	}
	return reason, nil
}
