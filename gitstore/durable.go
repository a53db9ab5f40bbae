package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// syncFile is the default of Options.Sync.
func syncFile(f *os.File) error {
	err := f.Sync()
	if err != nil && runtime.GOOS == "windows" {
		// A directory handle cannot be flushed there; NTFS journals its entries.
		if st, serr := f.Stat(); serr == nil && st.IsDir() {
			return nil
		}
	}
	return err
}

// syncDir makes the entries of a directory durable.
func (o *Options) syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := o.Sync(d); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// writeDurable writes a new file and makes it durable, but for its directory
// entry.
func (o *Options) writeDurable(name string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm) // whatever the umask
	}
	if err == nil {
		err = o.Sync(f)
	}
	return errors.Join(err, f.Close())
}

// replaceDurable replaces a file in one step and durably: a crash leaves the old
// one whole, or the new one.
func (o *Options) replaceDurable(name string, data []byte, perm fs.FileMode) error {
	tmp := name + ".tmp"
	err := o.writeDurable(tmp, data, perm)
	if err == nil {
		o.probe("file written")
		err = os.Rename(tmp, name)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	o.probe("file renamed")
	return o.syncDir(filepath.Dir(name))
}

// replaceFile replaces a file in one step, without making it durable: for what
// can be derived again.
func replaceFile(name string, data []byte, perm fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// mkdirMode makes a directory with exactly this mode, whatever the umask.
func mkdirMode(name string, perm fs.FileMode) error {
	if err := os.Mkdir(name, perm); err != nil {
		return err
	}
	return os.Chmod(name, perm)
}
