package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// gitFiles are the settings that say which files of a git repository a source takes.
type gitFiles struct {
	Branch string `json:"branch,omitempty"`
	// ContentPath is the directory whose files are taken; empty for the whole repository.
	ContentPath string `json:"content_path,omitempty"`
	// OutputPath is the directory of the source that gets the files; empty for its root.
	OutputPath string `json:"output_path,omitempty"`
	// ReadmeOnly takes only the README of ContentPath.
	ReadmeOnly bool `json:"readme_only,omitempty"`
}

func (g *gitFiles) validate() (err error) {
	if g.ContentPath, err = cleanDir(g.ContentPath, "content_path"); err != nil {
		return err
	}
	if g.OutputPath, err = cleanDir(g.OutputPath, "output_path"); err != nil {
		return err
	}
	if g.Branch = strings.TrimSpace(g.Branch); g.Branch != "" {
		if err := transport.CheckBranch(g.Branch); err != nil {
			return err
		}
	}
	return nil
}

// fetchedRef is the ref of the fetched commit in the scratch repository.
const fetchedRef = "refs/heads/fetched"

// gitBlob is a regular file of a tree.
type gitBlob struct{ path, hash string }

// scratchRepo is a repository for one fetch.
type scratchRepo struct {
	dir string
	env *Env
}

func newScratchRepo(env *Env) (*scratchRepo, error) {
	dir, err := os.MkdirTemp(env.Scratch, "git-")
	if err != nil {
		return nil, err
	}
	r := &scratchRepo{dir, env}
	return r, r.clear()
}

// clear makes the repository empty. It starts no git process, because starting processes takes
// most of the time of a first sync of a small repository.
func (r *scratchRepo) clear() error {
	if err := r.remove(); err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(r.dir, "objects"), 0o700), os.MkdirAll(filepath.Join(r.dir, "refs"), 0o700),
		os.WriteFile(filepath.Join(r.dir, "HEAD"), []byte("ref: "+fetchedRef+"\n"), 0o600),
		os.WriteFile(filepath.Join(r.dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = true\n"), 0o600),
	)
}

// tip returns the fetched commit.
func (r *scratchRepo) tip() (State, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(fetchedRef)))
	return State(bytes.TrimSpace(b)), err
}

func (r *scratchRepo) remove() error { return os.RemoveAll(r.dir) }

// fetch gives the files at the tip of the branch to the sink. It does not fetch the history. If the
// server can send single files, fetch leaves out those that the source does not take or already
// has.
func (g *gitFiles) fetch(ctx context.Context, env *Env, e transport.Endpoint, address func(string) string, sink Sink) (State, error) {
	r, err := newScratchRepo(env)
	if r != nil {
		defer func() { _ = r.remove() }() // if this fails, the caller still removes all of env.Scratch
	}
	if err != nil {
		return "", err
	}
	whole := env.First && g.ContentPath == "" && !g.ReadmeOnly
	if whole {
		err = env.Remotes.FetchTip(ctx, e, r.dir, g.Branch, fetchedRef, env.MaxBytes)
	} else {
		whole, err = env.Remotes.FetchTrees(ctx, e, r.dir, g.Branch, fetchedRef, env.MaxBytes)
	}
	if err != nil {
		return "", gitFault(err)
	}
	state, err := r.tip()
	if err != nil {
		return "", err
	}
	blobs, err := g.list(ctx, r)
	if err != nil {
		return "", err
	}
	sink.Expect(len(blobs))
	changed, err := g.keep(ctx, blobs, address, sink)
	if err != nil || len(changed) == 0 {
		return state, err
	}
	if !whole {
		if err := g.fetchContents(ctx, r, e, changed, state); err != nil {
			return "", err
		}
	}
	return state, r.read(ctx, changed, func(b gitBlob, content []byte, large bool) error {
		f := g.file(b, address)
		switch {
		case large:
			return sink.Skip(ctx, f.URL, TooLarge)
		case bytes.HasPrefix(content, []byte(lfsPointer)):
			return sink.Skip(ctx, f.URL, LFS)
		}
		return sink.Put(ctx, f, content)
	})
}

// lfsPointer begins a file whose content is in Git LFS, outside of the repository.
const lfsPointer = "version https://git-lfs.github.com/spec/v1\n"

// list returns the files of the branch that the source takes.
func (g *gitFiles) list(ctx context.Context, r *scratchRepo) ([]gitBlob, error) {
	args := []string{"ls-tree", "-r", "-z", "--full-tree", fetchedRef}
	if g.ContentPath != "" {
		args = append(args, "--", g.ContentPath)
	}
	out, err := r.env.Git.Run(ctx, gitcmd.Cmd{GitDir: r.dir, Args: args})
	if err != nil {
		return nil, err
	}
	return g.choose(out)
}

// keep keeps the files that have not changed since the last sync, skips those with an invalid
// path, and returns the others.
func (g *gitFiles) keep(ctx context.Context, blobs []gitBlob, address func(string) string, sink Sink) (changed []gitBlob, err error) {
	for _, b := range blobs {
		f := g.file(b, address)
		old, known := sink.Known(f.URL)
		switch _, invalid := space.ParsePath(string(f.Path)); {
		case invalid != nil:
			err = sink.Skip(ctx, f.URL, BadName)
		case known && old.Tag == b.hash && old.Path == f.Path:
			err = sink.Keep(ctx, old)
		default:
			changed = append(changed, b)
		}
		if err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// fetchContents fetches the contents of files into r, which already has the trees. If the server
// does not send single contents, fetchContents fetches the whole tip.
func (g *gitFiles) fetchContents(ctx context.Context, r *scratchRepo, e transport.Endpoint, files []gitBlob, tip State) error {
	var blobs []space.BlobID
	seen := map[string]bool{}
	for _, b := range files {
		if !seen[b.hash] {
			seen[b.hash] = true
			blobs = append(blobs, space.BlobID(b.hash))
		}
	}
	err := r.env.Remotes.FetchBlobs(ctx, e, r.dir, blobs, r.env.MaxBytes)
	if problem, ok := errors.AsType[*transport.Error](err); !ok || problem.Problem != transport.Unknown && problem.Problem != transport.Malformed {
		return gitFault(err)
	}
	if err := r.clear(); err != nil {
		return err
	}
	if err := r.env.Remotes.FetchTip(ctx, e, r.dir, g.Branch, fetchedRef, r.env.MaxBytes); err != nil {
		return gitFault(err)
	}
	if now, err := r.tip(); err != nil || now != tip {
		return errors.Join(err, fault.New(fault.Unavailable, "The repository changed during the update."))
	}
	return nil
}

// file returns the file of a blob. A git server can send a name such as ../x. file does not
// resolve the name, because that could lead out of OutputPath. The path stays invalid, so that
// keep skips the file.
func (g *gitFiles) file(b gitBlob, address func(string) string) File {
	p, _ := under(g.ContentPath, b.path)
	if g.OutputPath != "" {
		p = g.OutputPath + "/" + p
	}
	return File{Path: space.Path(p), URL: address(b.path), Tag: b.hash}
}

// choose returns the regular files of ls-tree's output that the source takes.
func (g *gitFiles) choose(out []byte) ([]gitBlob, error) {
	var blobs []gitBlob
	for row := range bytes.SplitSeq(out, []byte{0}) {
		if len(row) == 0 {
			continue
		}
		head, name, ok := strings.Cut(string(row), "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 3 {
			return nil, fmt.Errorf("unexpected output of git ls-tree: %q", row)
		}
		if mode := fields[0]; mode != "100644" && mode != "100755" {
			continue // a submodule is another repository, and a link could lead out of the source
		}
		rest, ok := under(g.ContentPath, name)
		if !ok || g.ReadmeOnly && !isReadme(rest) {
			continue
		}
		blobs = append(blobs, gitBlob{path: name, hash: fields[2]})
	}
	return blobs, nil
}

func isReadme(p string) bool {
	return slices.Contains([]string{"readme", "readme.md", "readme.mdx", "readme.markdown", "readme.rst", "readme.txt", "readme.adoc"}, strings.ToLower(p))
}

// read calls put for each blob. If the content is too large for a file, large is set, and content
// is nil.
func (r *scratchRepo) read(ctx context.Context, blobs []gitBlob, put func(b gitBlob, content []byte, large bool) error) error {
	var names strings.Builder
	for _, b := range blobs {
		names.WriteString(b.hash + "\n")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := r.env.Git.Run(ctx, gitcmd.Cmd{GitDir: r.dir, Args: []string{"cat-file", "--batch"}, Stdin: strings.NewReader(names.String()), Stdout: w})
		w.CloseWithError(err)
		done <- err
	}()
	err := readBatch(bufio.NewReader(in), blobs, r.env.MaxFileBytes, put)
	if err != nil {
		cancel(err)
	}
	in.CloseWithError(err)
	if ran := <-done; err == nil {
		err = ran
	}
	return err
}

// readBatch reads the output of git cat-file --batch for blobs, in their order.
func readBatch(r *bufio.Reader, blobs []gitBlob, limit int64, put func(b gitBlob, content []byte, large bool) error) error {
	for _, b := range blobs {
		head, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read git cat-file: %w", err)
		}
		text, ok := strings.CutPrefix(head, b.hash+" blob ")
		size, err := strconv.ParseInt(strings.TrimSuffix(text, "\n"), 10, 64)
		if !ok || err != nil {
			return fmt.Errorf("git cat-file answered %q for %s", head, b.hash)
		}
		var content []byte
		large := size > limit
		if large {
			_, err = io.CopyN(io.Discard, r, size+1)
		} else {
			content = make([]byte, size+1)
			_, err = io.ReadFull(r, content)
			content = content[:size]
		}
		if err != nil {
			return fmt.Errorf("read git cat-file: %w", err)
		}
		if err := put(b, content, large); err != nil {
			return err
		}
	}
	return nil
}
