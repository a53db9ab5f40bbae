package gitstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"satchel/internal/fault"
)

// Lock is a process's sole use of a directory.
type Lock struct{ f *os.File }

// LockDir takes the lock of a data directory for this process, by an flock on
// dir/.lock that ends with the process. Where another process holds it, the
// error is a fault.Conflict that names it. Open calls it for its own directory;
// the server may call it for the directory above.
func LockDir(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		b, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		who := "another process"
		if pid, perr := strconv.Atoi(strings.TrimSpace(string(b))); perr == nil {
			who = fmt.Sprintf("process %d", pid)
		}
		return nil, fault.Wrap(err, fault.Conflict,
			"The data directory %s is in use by %s. Stop it first, or choose another directory with --data.", dir, who)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f: f}, nil
}

// Close gives the directory up.
func (l *Lock) Close() error { return l.f.Close() }
