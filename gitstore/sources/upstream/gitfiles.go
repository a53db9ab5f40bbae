package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// gitFiles are the files of a git repository that a source takes.
type gitFiles struct {
	Branch string `json:"branch,omitempty"`
	// ContentPath is the directory of the repository; empty for all.
	ContentPath string `json:"content_path,omitempty"`
	// OutputPath is the directory of the source; empty for its root.
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
type gitBlob struct {
	path, hash string
	size       int64
}

// fetch fetches the tip of the branch without its history, and gives its files to the sink. A
// file with the hash of the last sync is kept without being read.
func (g *gitFiles) fetch(ctx context.Context, env *Env, e transport.Endpoint, address func(string) string, sink Sink) (State, error) {
	dir, err := os.MkdirTemp(env.Scratch, "git-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	git := func(c gitcmd.Cmd) ([]byte, error) {
		c.GitDir = dir
		return env.Git.Run(ctx, c)
	}
	if _, err := git(gitcmd.Cmd{Args: []string{"init", "--quiet", "--bare", dir}}); err != nil {
		return "", err
	}
	if err := env.Remotes.FetchTip(ctx, e, dir, g.Branch, fetchedRef, env.MaxBytes, nil); err != nil {
		return "", gitFault(err)
	}
	out, err := git(gitcmd.Cmd{Args: []string{"rev-parse", fetchedRef}})
	if err != nil {
		return "", err
	}
	state := State(bytes.TrimSpace(out))
	args := []string{"ls-tree", "-r", "-l", "-z", "--full-tree", fetchedRef}
	if g.ContentPath != "" {
		args = append(args, "--", g.ContentPath)
	}
	if out, err = git(gitcmd.Cmd{Args: args}); err != nil {
		return "", err
	}
	blobs, err := g.choose(out)
	if err != nil {
		return "", err
	}
	sink.Expect(len(blobs))
	var changed []gitBlob
	for _, b := range blobs {
		f := g.file(b, address)
		if _, err := space.ParsePath(string(f.Path)); err != nil {
			if err := sink.Skip(ctx, f.URL, Unreadable); err != nil {
				return "", err
			}
			continue
		}
		if b.size > env.MaxFileBytes {
			if err := sink.Skip(ctx, f.URL, TooLarge); err != nil {
				return "", err
			}
			continue
		}
		if old, ok := sink.Known(f.URL); ok && old.Tag == b.hash && old.Path == f.Path {
			if err := sink.Keep(ctx, old); err != nil {
				return "", err
			}
			continue
		}
		changed = append(changed, b)
	}
	return state, g.read(ctx, env, dir, changed, func(b gitBlob, content []byte) error {
		return sink.Put(ctx, g.file(b, address), content)
	})
}

func (g *gitFiles) file(b gitBlob, address func(string) string) File {
	p, _ := under(g.ContentPath, b.path)
	return File{Path: space.Path(path.Join(g.OutputPath, p)), URL: address(b.path), Tag: b.hash}
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
		if !ok || len(fields) != 4 {
			return nil, fmt.Errorf("unexpected output of git ls-tree: %q", row)
		}
		if mode := fields[0]; mode != "100644" && mode != "100755" {
			continue // links could lead out of the source
		}
		rest, ok := under(g.ContentPath, name)
		if !ok || g.ReadmeOnly && !isReadme(rest) {
			continue
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("unexpected output of git ls-tree: %q", row)
		}
		blobs = append(blobs, gitBlob{path: name, hash: fields[2], size: size})
	}
	return blobs, nil
}

func isReadme(p string) bool {
	return slices.Contains([]string{"readme", "readme.md", "readme.mdx", "readme.markdown", "readme.rst", "readme.txt", "readme.adoc"}, strings.ToLower(p))
}

// read calls put with the content of each blob.
func (g *gitFiles) read(ctx context.Context, env *Env, dir string, blobs []gitBlob, put func(gitBlob, []byte) error) error {
	if len(blobs) == 0 {
		return nil
	}
	var names strings.Builder
	for _, b := range blobs {
		names.WriteString(b.hash + "\n")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := env.Git.Run(ctx, gitcmd.Cmd{GitDir: dir, Args: []string{"cat-file", "--batch"}, Stdin: strings.NewReader(names.String()), Stdout: w})
		w.CloseWithError(err)
		done <- err
	}()
	err := readBatch(bufio.NewReader(r), blobs, put)
	if err != nil {
		cancel(err)
	}
	r.CloseWithError(err)
	if ran := <-done; err == nil {
		err = ran
	}
	return err
}

// readBatch reads the output of git cat-file --batch for blobs, in their order.
func readBatch(r *bufio.Reader, blobs []gitBlob, put func(gitBlob, []byte) error) error {
	for _, b := range blobs {
		head, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read git cat-file: %w", err)
		}
		if want := fmt.Sprintf("%s blob %d\n", b.hash, b.size); head != want {
			return fmt.Errorf("git cat-file answered %q instead of %q", head, want)
		}
		content := make([]byte, b.size+1)
		if _, err := io.ReadFull(r, content); err != nil {
			return fmt.Errorf("read git cat-file: %w", err)
		}
		if err := put(b, content[:b.size]); err != nil {
			return err
		}
	}
	return nil
}
