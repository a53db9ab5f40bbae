package gitstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
)

// lockPatience is how long LockDir waits for a lock whose holder is gone. If the holder
// was killed while it started a child, the child keeps the lock for a moment.
const lockPatience = 5 * time.Second

// Lock is a process's exclusive use of a directory.
type Lock struct{ f *os.File }

// LockDir locks a data directory for this process, with a lock on dir/.lock that ends
// with the process. If another process holds the lock, the error is a fault.Conflict that
// names the process. Open locks Options.Dir; the server may lock the directory above it.
func LockDir(dir string) (*Lock, error) {
	return lockDir(dir, func() { time.Sleep(5 * time.Millisecond) })
}

// lockDir is like LockDir, but calls pause before each retry.
func lockDir(dir string, pause func()) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = tryLock(f)
	for until := time.Now().Add(lockPatience); err != nil && gone(lockHolder(f)) && time.Now().Before(until); err = tryLock(f) {
		pause()
	}
	if err != nil {
		who := "another process"
		if pid := lockHolder(f); pid != 0 {
			who = fmt.Sprintf("process %d", pid)
		}
		f.Close()
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

// lockHolder returns the process id that the last holder wrote, or 0 if it cannot be
// read.
func lockHolder(f *os.File) int {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// Close releases the lock, even if a child that this process is starting has the file open.
func (l *Lock) Close() error { return errors.Join(unlock(l.f), l.f.Close()) }
