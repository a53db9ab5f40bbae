// Package programs holds the two programs that sandboxes are made of, embedded in
// the server, and writes them to disk: call Install.
//
// scripts/programs puts them into the directory built before the server is built. They
// are not the server's own binary, because every sandbox takes memory for what its
// programs link.
package programs

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"satchel/internal/fault"
)

// Names of the programs.
const (
	Sandbox = "satchel-sandbox" // gVisor's sentry and gofer, and their owner
	Agent   = "satchel-agent"   // process 1 inside a sandbox
)

// sums has the SHA-256 sum of each program, as sha256sum prints them, and the processor that
// they are for.
const sums = "SHA256SUMS"

//go:embed built
var built embed.FS

// Programs are the absolute paths of the two programs.
type Programs struct{ Sandbox, Agent string }

// In returns the programs in a directory that has both.
func In(dir string) Programs {
	return Programs{Sandbox: filepath.Join(dir, Sandbox), Agent: filepath.Join(dir, Agent)}
}

// Install writes the programs to dir, an absolute path, and creates dir if it is missing.
// It keeps a file with the right content and replaces any other. Processes that run an
// old file continue with it.
//
// The error is a fault.Unavailable if this server was built without the programs.
func Install(dir string) (Programs, error) { return install(built, dir) }

func install(built fs.FS, dir string) (Programs, error) {
	list, err := fs.ReadFile(built, "built/"+sums)
	if errors.Is(err, fs.ErrNotExist) {
		return Programs{}, fault.New(fault.Unavailable, "This satchel was built without the programs of sandboxes, so bash cannot run. Run scripts/build.")
	}
	if err != nil {
		return Programs{}, fmt.Errorf("reading the programs of sandboxes: %w", err)
	}
	if arch := sumOf(list, "arch"); arch != runtime.GOARCH {
		return Programs{}, fault.New(fault.Unavailable, "This satchel has the programs of sandboxes for the processor %s, and this is %s. Run scripts/build.", arch, runtime.GOARCH)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Programs{}, unwritten(err)
	}
	for _, name := range []string{Sandbox, Agent} {
		if err := installOne(built, dir, name, sumOf(list, name)); err != nil {
			return Programs{}, unwritten(fmt.Errorf("installing %s: %w", name, err))
		}
	}
	return In(dir), nil
}

func unwritten(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The programs of sandboxes cannot be written to the data directory. Free space there, and make it writable for the server's user.")
}

// sumOf returns a program's sum in a list, or the processor under the name "arch"; "" if
// it is not there.
func sumOf(list []byte, name string) string {
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == name {
			return f[0]
		}
	}
	return ""
}

// installOne keeps the file if its sum is right. Only otherwise does it read the embedded
// program, because reading the server's own binary takes memory.
func installOne(built fs.FS, dir, name, sum string) error {
	target := filepath.Join(dir, name)
	if has, err := fileSum(target); err == nil && has == sum {
		return os.Chmod(target, 0o755)
	}
	packed, err := built.Open("built/" + name + ".gz") // never in memory as a whole
	if err != nil {
		return err
	}
	defer packed.Close()
	program, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unpacking the embedded program: %w", err)
	}
	f, err := os.CreateTemp(dir, name+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), program)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return err
	}
	if has := hex.EncodeToString(h.Sum(nil)); has != sum {
		return fmt.Errorf("the embedded program has the sum %s and should have %q: build satchel again", has, sum)
	}
	return os.Rename(f.Name(), target)
}

func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
