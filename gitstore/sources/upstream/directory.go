package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Directory is the kind of sources that are directories of the server's machine.
const Directory = "directory"

// directory is a directory of the server's machine. Only the operator can add one.
type directory struct {
	Path string `json:"path"`
}

func directoryKind() Kind {
	return Kind{Name: Directory, Title: "Directory of the server", New: func() Upstream { return &directory{} }}
}

func (d *directory) Validate() error {
	if !filepath.IsAbs(d.Path) {
		return fault.New(fault.Invalid, "A directory source needs the absolute path of a directory of the server, such as /srv/docs.").In("path")
	}
	d.Path = filepath.Clean(d.Path)
	return nil
}

// maxEntries limits the files and directories that a sync of a directory looks at.
const maxEntries = 200_000

// localFile is a file of a directory.
type localFile struct {
	name, tag string
	size      int64
}

// Check returns a hash over the names, sizes and modification times of the files.
func (d *directory) Check(ctx context.Context, env *Env) (State, error) {
	root, err := d.open(env)
	if err != nil {
		return "", err
	}
	defer root.Close()
	_, state, err := d.list(ctx, root)
	return state, err
}

func (d *directory) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	root, err := d.open(env)
	if err != nil {
		return "", err
	}
	defer root.Close()
	files, state, err := d.list(ctx, root)
	if err != nil {
		return "", err
	}
	sink.Expect(len(files))
	for _, f := range files {
		if err := d.give(ctx, env, root, f, sink); err != nil {
			return "", err
		}
	}
	return state, nil
}

// open opens the directory. It refuses a directory that the operator does not trust, or that
// overlaps with the server's data directory.
func (d *directory) open(env *Env) (*os.Root, error) {
	if env.Trusted == nil || !env.Trusted(d.Path) {
		return nil, fault.New(fault.Forbidden, "Only the operator of this server can add a directory.").In("path")
	}
	if env.DataDir != "" && Overlap(d.Path, env.DataDir) {
		return nil, fault.New(fault.Invalid, "A source may neither be in the data directory of this server nor contain it.").In("path")
	}
	root, err := os.OpenRoot(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(err, fault.NotFound, "The server has no directory %s.", d.Path).In("path")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.Wrap(err, fault.Forbidden, "Satchel may not read the directory %s. Allow its user to read the directory.", d.Path).In("path")
	case err != nil:
		return nil, fault.Wrap(err, fault.Invalid, "%s is not a directory that can be read.", d.Path).In("path")
	}
	return root, nil
}

// Overlap reports whether two directories are the same, or one of them contains the other.
func Overlap(a, b string) bool {
	for _, p := range []*string{&a, &b} {
		if real, err := filepath.EvalSymlinks(*p); err == nil {
			*p = real
		}
	}
	within := func(dir, p string) bool {
		rel, err := filepath.Rel(dir, p)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	}
	return within(a, b) || within(b, a)
}

// list returns the regular files below a directory, and the state of Check. It leaves out links,
// which could lead out of the directory, hidden files such as .git, files that Satchel may not
// read, and files that are nested too deeply.
func (d *directory) list(ctx context.Context, root *os.Root) ([]localFile, State, error) {
	var files []localFile
	h := sha256.New()
	seen := 0
	err := fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		seen++
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case seen > maxEntries:
			return fault.New(fault.TooLarge, "The directory has more than %d files and directories. Name a smaller one.", maxEntries).In("path")
		case p == ".":
			return err
		case strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)):
			return nil // the file vanished, or Satchel may not read it
		case err != nil:
			return err
		case e.IsDir() && strings.Count(p, "/")+1 >= space.MaxPathDepth:
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		f := localFile{name: p, size: info.Size(), tag: fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())}
		fmt.Fprintf(h, "%q %s\n", f.name, f.tag)
		files = append(files, f)
		return nil
	})
	if err != nil && ctx.Err() == nil && fault.CodeOf(err) == fault.Internal {
		err = fault.Wrap(err, fault.Unavailable, "The directory %s cannot be read.", d.Path)
	}
	return files, State(hex.EncodeToString(h.Sum(nil))), err
}

// give gives the page of a file to the sink. It keeps the page of an unchanged file.
func (d *directory) give(ctx context.Context, env *Env, root *os.Root, f localFile, sink Sink) error {
	if old, ok := sink.Known(f.name); ok && old.Tag == f.tag {
		return sink.Keep(ctx, old)
	}
	content, err := readLimited(root, f.name, env.limitOf(f.name))
	if err == nil {
		err = givePage(ctx, env, File{Path: space.Path(f.name), URL: f.name, Tag: f.tag}, content, sink)
	}
	if r, ok := errors.AsType[*Refusal](err); ok {
		if env.Logger != nil {
			env.Logger.InfoContext(ctx, "a file of a directory was left out", "file", f.name, "reason", r.Reason, "error", r.Err)
		}
		return sink.Skip(ctx, f.name, r.Reason)
	}
	return err
}

func readLimited(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, &Refusal{Failed, err}
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, &Refusal{Failed, err}
	}
	if int64(len(content)) > limit {
		return nil, refuse(TooLarge, "The file %s is larger than a file of a source may be.", name)
	}
	return content, nil
}
