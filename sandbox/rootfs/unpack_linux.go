package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// unpack writes a tar into an empty directory, with everything in the caller's
// name: files, directories and links, and nothing through a link. Devices and
// sockets are left out.
func unpack(r io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	type later struct {
		name string
		mode fs.FileMode
	}
	var dirs []later
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading what was built: %w", err)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if name == "" {
			continue
		}
		mode := fs.FileMode(h.Mode) & fs.ModePerm
		switch h.Typeflag {
		case tar.TypeDir:
			if err = root.Mkdir(name, 0o755); errors.Is(err, fs.ErrExist) {
				err = nil
			}
			dirs = append(dirs, later{name, mode})
		case tar.TypeReg:
			err = unpackFile(root, name, mode, in)
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		case tar.TypeLink:
			err = root.Link(strings.TrimPrefix(path.Clean("/"+h.Linkname), "/"), name)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("unpacking what was built: %w", err)
		}
		if h.Typeflag == tar.TypeReg {
			if err := root.Chtimes(name, h.ModTime, h.ModTime); err != nil {
				return fmt.Errorf("unpacking what was built: %w", err)
			}
		}
	}
	// A directory that cannot be written could not have been filled.
	for _, d := range dirs {
		if err := root.Chmod(d.name, d.mode|0o700); err != nil {
			return fmt.Errorf("unpacking what was built: %w", err)
		}
	}
	return nil
}

func unpackFile(root *os.Root, name string, mode fs.FileMode, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(mode), f.Close())
}
