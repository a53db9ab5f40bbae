package gitstore

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"satchel/gitstore/commits"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// walkRoot visits the files below a directory. It reads through the directory's handle,
// so that it cannot leave the directory, even if entries are replaced meanwhile.
func walkRoot(ctx context.Context, root *os.Root, prefix string, visit func(importFile) error, refuse func(string, error), depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > space.MaxPathDepth {
		refuse(prefix, fault.New(fault.Invalid, "The directory %q is nested too deep.", prefix))
		return nil
	}
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	es, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range es {
		name := e.Name()
		full := prefix + name
		switch {
		case name == ".git":
			// Skip the history of the source or of a nested repository.
		case e.IsDir():
			sub, err := root.OpenRoot(name)
			if err != nil {
				refuse(full, fault.Wrap(err, fault.Invalid, "The directory %q cannot be read.", full))
				continue
			}
			err = errors.Join(walkRoot(ctx, sub, full+"/", visit, refuse, depth+1), sub.Close())
			if err != nil {
				return err
			}
		case e.Type()&fs.ModeSymlink != 0:
			target, err := root.Readlink(name)
			if err != nil {
				refuse(full, fault.Wrap(err, fault.Invalid, "The link %q cannot be read.", full))
				continue
			}
			if err := visit(bytesFile(full, space.Symlink, []byte(target))); err != nil {
				return err
			}
		default:
			if err := visitRegular(root, name, full, visit, refuse); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitRegular opens a file without blocking and then checks its type, so that a FIFO
// that replaces the file does not block the import.
func visitRegular(root *os.Root, name, full string, visit func(importFile) error, refuse func(string, error)) error {
	st, err := root.Lstat(name)
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var f *os.File
	if err == nil {
		f, err = root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err == nil {
		if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() {
			err = errors.Join(errors.New("not a regular file"), f.Close())
		}
	}
	if err != nil {
		refuse(full, fault.Wrap(err, fault.Invalid, "%q is not a file that can be read.", full))
		return nil
	}
	defer f.Close()
	mode := space.Regular
	if st.Mode()&0o100 != 0 {
		mode = space.Executable
	}
	return visit(importFile{path: full, mode: mode, size: st.Size(), open: func() (io.ReadCloser, error) { return io.NopCloser(f), nil }})
}

func bytesFile(path string, mode space.Mode, data []byte) importFile {
	return importFile{path: path, mode: mode, size: int64(len(data)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}

// FromTar returns a source with the regular files and symlinks of a tar stream, such as
// [WriteTar] writes. It skips directories. It leaves out other entries and reports them.
// The stream may come from anyone.
func FromTar(r io.Reader) ImportSource { return tarSource{r} }

type tarSource struct{ r io.Reader }

func (t tarSource) begin(context.Context, *Store, func(string)) (importReader, error) { return t, nil }
func (t tarSource) Name() string                                                      { return "files" }
func (t tarSource) history() *quarantine                                              { return nil }
func (t tarSource) Close()                                                            {}

func (t tarSource) files(ctx context.Context, visit func(importFile) error, refuse func(string, error)) error {
	tail := &zeroTail{r: t.r}
	in := tar.NewReader(tail)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := in.Next()
		if err == io.EOF && tail.zeros >= 1024 {
			return nil
		}
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "The stream of files is damaged.")
		}
		name := strings.TrimPrefix(h.Name, "./")
		switch h.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
		case tar.TypeSymlink:
			err = visit(bytesFile(name, space.Symlink, []byte(h.Linkname)))
		case tar.TypeReg:
			mode := space.Regular
			if h.Mode&0o100 != 0 {
				mode = space.Executable
			}
			err = visit(importFile{path: name, mode: mode, size: h.Size, open: func() (io.ReadCloser, error) {
				return io.NopCloser(damagedTar{in}), nil
			}})
		default:
			why := commits.OneLine(h.PAXRecords[refusedRecord], 300)
			if why == "" {
				why = fmt.Sprintf("%q is neither a file nor a symbolic link.", name)
			}
			refuse(name, fault.New(fault.Invalid, "%s", why))
		}
		if err != nil {
			return err
		}
	}
}

// zeroTail counts the zero bytes at the end of what was read. A complete tar ends in 1,024
// zero bytes, but archive/tar accepts a stream without them.
type zeroTail struct {
	r     io.Reader
	zeros int
}

func (z *zeroTail) Read(p []byte) (int, error) {
	n, err := z.r.Read(p)
	kept := bytes.TrimRight(p[:n], "\x00")
	if len(kept) > 0 {
		z.zeros = 0
	}
	z.zeros += n - len(kept)
	return n, err
}

// damagedTar turns an error of the stream, such as an early end, into a fault.
type damagedTar struct{ r io.Reader }

func (d damagedTar) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && err != io.EOF {
		err = fault.Wrap(err, fault.Invalid, "The stream of files is damaged.")
	}
	return n, err
}

// refusedRecord is the PAX record with the reason why [WriteTar] left a file out.
const refusedRecord = "SATCHEL.refused"

// WriteTar writes the files of a directory as a tar stream that [FromTar] can read. The command
// line sends the stream to a server. For a file of more than maxFile bytes, or one that cannot
// be read, it writes only the name and the reason, so that the receiver can report the
// file. A maxFile of 0 is no limit.
func WriteTar(ctx context.Context, dir string, w io.Writer, maxFile int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "The directory %s cannot be read: %v.", dir, errors.Unwrap(err))
	}
	defer root.Close()
	out := tar.NewWriter(w)
	var werr error
	refuse := func(name string, why error) {
		if werr == nil {
			werr = out.WriteHeader(&tar.Header{Name: path.Clean(name), Typeflag: tar.TypeFifo, Format: tar.FormatPAX,
				PAXRecords: map[string]string{refusedRecord: fault.PublicOf(why)}})
		}
	}
	visit := func(f importFile) error {
		if maxFile > 0 && f.size > maxFile {
			refuse(f.path, tooLarge(f.path, maxFile))
			return nil
		}
		in, err := f.open()
		if err != nil {
			return err
		}
		defer in.Close()
		h := &tar.Header{Name: f.path, Typeflag: tar.TypeReg, Mode: 0o644, Size: f.size, Format: tar.FormatPAX}
		switch f.mode {
		case space.Executable:
			h.Mode = 0o755
		case space.Symlink:
			target, err := io.ReadAll(in)
			if err != nil {
				return err
			}
			h.Typeflag, h.Size, h.Linkname = tar.TypeSymlink, 0, string(target)
			return out.WriteHeader(h)
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		// A file that shrinks meanwhile is an error, because the stream becomes
		// invalid. A file that grows is cut at the announced size.
		if _, err := io.CopyN(out, in, f.size); err != nil {
			return fmt.Errorf("%s changed while it was read: %w", f.path, err)
		}
		return nil
	}
	if err := walkRoot(ctx, root, "", visit, refuse, 0); err != nil {
		return err
	}
	return errors.Join(werr, out.Close())
}
