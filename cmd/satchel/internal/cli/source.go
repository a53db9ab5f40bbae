package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"satchel/cmd/satchel/internal/admin"
	"satchel/internal/fault"
)

// source is what `space import` reads: a git URL, a local git repository or a
// plain directory. It is opened here, by the person who typed the command and
// with their rights and git configuration; the server gets a stream of content
// and never a path or a URL.
type source struct {
	arg   string
	stdin io.Reader
	log   io.Writer // git's progress
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

// open starts streaming. The stream's Read fails where the source does; Close
// must be called and ends what still runs.
func (s source) open(ctx context.Context) (kind string, stream io.ReadCloser, err error) {
	if strings.HasPrefix(s.arg, "-") {
		return "", nil, fault.New(fault.Invalid, "%q is not a git URL or a directory.", s.arg)
	}
	if isURL(s.arg) {
		dir, err := os.MkdirTemp("", "satchel-import-")
		if err != nil {
			return "", nil, err
		}
		clone := exec.CommandContext(ctx, "git", "clone", "--bare", "--single-branch", "--no-tags", "--template=", "--progress", "--", s.arg, dir)
		clone.Stdin, clone.Stderr = s.stdin, s.log
		if err := clone.Run(); err != nil {
			os.RemoveAll(dir)
			return "", nil, fault.Wrap(err, fault.Unavailable, "git could not clone the repository; its message is above.")
		}
		stream, err := bundle(ctx, dir, s.log)
		if err != nil {
			os.RemoveAll(dir)
			return "", nil, err
		}
		return admin.KindBundle, withCleanup{stream, func() { os.RemoveAll(dir) }}, nil
	}
	info, err := os.Stat(s.arg)
	if err != nil || !info.IsDir() {
		return "", nil, fault.Wrap(err, fault.NotFound, "%q is not a directory, and not a git URL either.", s.arg)
	}
	if isRepository(ctx, s.arg) {
		stream, err := bundle(ctx, s.arg, s.log)
		return admin.KindBundle, stream, err
	}
	return admin.KindTar, tarOf(s.arg), nil
}

// isRepository tells whether dir itself is a git repository with a commit (and
// not merely somewhere below one).
func isRepository(ctx context.Context, dir string) bool {
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(abs))
	return cmd.Run() == nil
}

// bundle streams the repository's HEAD with its history.
func bundle(ctx context.Context, dir string, log io.Writer) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "bundle", "create", "--quiet", "-", "HEAD")
	var diag bytes.Buffer
	cmd.Stderr = io.MultiWriter(log, &diag)
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fault.Wrap(err, fault.Unavailable, "git could not be started; is it installed?")
	}
	return &processStream{ReadCloser: out, cmd: cmd, cancel: cancel}, nil
}

// processStream is a program's standard output that ends with an error where
// the program fails.
type processStream struct {
	io.ReadCloser
	cmd    *exec.Cmd
	cancel context.CancelFunc
	waited bool
}

func (p *processStream) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) && !p.waited {
		p.waited = true
		if werr := p.cmd.Wait(); werr != nil {
			return n, fmt.Errorf("%s: %w", p.cmd.Path, werr)
		}
	}
	return n, err
}

func (p *processStream) Close() error {
	p.cancel()
	if !p.waited {
		p.waited = true
		_ = p.cmd.Wait() // killed by cancel: its failure says nothing
	}
	return nil
}

type withCleanup struct {
	io.ReadCloser
	cleanup func()
}

func (w withCleanup) Close() error {
	defer w.cleanup()
	return w.ReadCloser.Close()
}

// tarOf streams the files of a directory: regular files and symbolic links,
// without .git directories. Links are told as links, never followed.
func tarOf(dir string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		err := writeTar(tw, dir)
		if err == nil {
			err = tw.Close()
		}
		w.CloseWithError(err)
	}()
	return r
}

func writeTar(tw *tar.Writer, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() && d.Type() != fs.ModeSymlink:
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			target, err := root.Readlink(name)
			if err != nil {
				return err
			}
			return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, Format: tar.FormatPAX})
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		mode := int64(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: mode, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err = io.CopyN(tw, f, info.Size())
		return err
	})
}
