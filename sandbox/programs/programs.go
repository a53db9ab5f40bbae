// Package programs embeds the two programs that run sandboxes. Install writes them to disk.
//
// Before the server is built, scripts/programs puts them into the directory named built. They are
// separate from the server's binary because each sandbox takes memory for everything that its
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

// sums is the name of the file with the SHA-256 sum of each program, in the format of sha256sum,
// and the processor that they are for.
const sums = "SHA256SUMS"

//go:embed built
var built embed.FS

// Programs holds the paths of the two programs.
type Programs struct{ Sandbox, Agent string }

// In returns the programs in a directory that has both.
func In(dir string) Programs {
	return Programs{Sandbox: filepath.Join(dir, Sandbox), Agent: filepath.Join(dir, Agent)}
}

// Install writes the programs to dir, an absolute path, and creates dir if it is missing.
// It keeps a file with the right content and replaces any other. Processes that run an
// old file continue with it.
//
// The error is a fault.Unavailable if the programs are missing, are for another processor, or
// cannot be written.
func Install(dir string) (Programs, error) { return install(built, dir) }

func install(built fs.FS, dir string) (Programs, error) {
	list, err := fs.ReadFile(built, "built/"+sums)
	if errors.Is(err, fs.ErrNotExist) {
		return Programs{}, fault.New(fault.Unavailable, "This satchel was built without the sandbox programs, so bash cannot run. Run scripts/build.")
	}
	if err != nil {
		return Programs{}, fmt.Errorf("reading the sandbox programs: %w", err)
	}
	if arch := sumOf(list, "arch"); arch != runtime.GOARCH {
		return Programs{}, fault.New(fault.Unavailable, "The sandbox programs in this build are for %s, but this machine is %s. Run scripts/build.", arch, runtime.GOARCH)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Programs{}, unwritten(err)
	}
	for _, name := range []string{Sandbox, Agent} {
		if err := installOne(built, dir, name, sumOf(list, name)); err != nil {
			if fault.CodeOf(err) == fault.Unavailable {
				return Programs{}, err
			}
			return Programs{}, unwritten(fmt.Errorf("installing %s: %w", name, err))
		}
	}
	return In(dir), nil
}

func unwritten(err error) error {
	return fault.Wrap(err, fault.Unavailable, "Satchel cannot write the sandbox programs to the data directory. Free space there, and make it writable for the server's user.")
}

func damaged(name string, err error) error {
	return fault.Wrap(fmt.Errorf("unpacking %s: %w", name, err), fault.Unavailable, "The sandbox programs in this build are damaged. Run scripts/build.")
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

// installOne writes a program to dir, unless the file there has the right sum. In that case it does
// not read the embedded program, because reading the server's own binary takes memory.
func installOne(built fs.FS, dir, name, sum string) error {
	target := filepath.Join(dir, name)
	if has, err := fileSum(target); err == nil && has == sum {
		return os.Chmod(target, 0o755)
	}
	packed, err := built.Open("built/" + name + ".gz") // read in parts, to take little memory
	if err != nil {
		return err
	}
	defer packed.Close()
	program, err := gzip.NewReader(packed)
	if err != nil {
		return damaged(name, err)
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
		return damaged(name, fmt.Errorf("its sum is %s instead of %q", has, sum))
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
