package packfile

import (
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// Disk writes files durably. Step is for tests. A disk for temporary files need not sync.
type Disk struct {
	Sync func(*os.File) error
	Step func(name string) // called after each step, with its name
	// Deflaters holds compressors for the next packs. It may be nil.
	Deflaters *sync.Pool
}

// deflater returns a compressor for a pack. A new compressor takes 1.2 MB, most of which
// a commit of small files does not use.
func (d Disk) deflater() *zlib.Writer {
	if d.Deflaters != nil {
		if z, ok := d.Deflaters.Get().(*zlib.Writer); ok {
			return z
		}
	}
	z, _ := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed) // fails only for an unknown level
	return z
}

// keepDeflater keeps a compressor for the next pack.
func (d Disk) keepDeflater(z *zlib.Writer) {
	if d.Deflaters != nil && z != nil {
		z.Reset(io.Discard)
		d.Deflaters.Put(z)
	}
}

// SyncFile makes a file or a directory durable.
func SyncFile(f *os.File) error {
	err := f.Sync()
	if err != nil && runtime.GOOS == "windows" {
		// Windows cannot flush a directory handle; NTFS journals its entries.
		if st, serr := f.Stat(); serr == nil && st.IsDir() {
			return nil
		}
	}
	return err
}

// SyncDir makes the entries of a directory durable.
func (d Disk) SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.Sync(f); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// writeDurable writes a new file and makes it durable, except for its directory entry.
func (d Disk) writeDurable(name string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm) // regardless of the umask
	}
	if err == nil {
		err = d.Sync(f)
	}
	return errors.Join(err, f.Close())
}

// ReplaceDurable replaces a file atomically and durably: after a crash, the old or the new
// file is there, complete.
func (d Disk) ReplaceDurable(name string, data []byte, perm fs.FileMode) error {
	tmp := name + ".tmp"
	err := d.writeDurable(tmp, data, perm)
	if err == nil {
		d.Step("file written")
		err = os.Rename(tmp, name)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	d.Step("file renamed")
	return d.SyncDir(filepath.Dir(name))
}

// ReplaceFile replaces a file atomically but not durably, for derived data.
func ReplaceFile(name string, data []byte, perm fs.FileMode) error {
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

// MkdirMode creates a directory with exactly this mode, regardless of the umask.
func MkdirMode(name string, perm fs.FileMode) error {
	if err := os.Mkdir(name, perm); err != nil {
		return err
	}
	return os.Chmod(name, perm)
}
