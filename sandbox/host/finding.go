package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Finding is the result of one check of a runtime's Diagnose.
type Finding struct {
	Name   string // what was looked at, such as "platform systrap"
	OK     bool
	Detail string // what was found
	Remedy string // what to do about it; empty if OK
}

// LookAtRootfs reports whether dir is a usable root file system; "" means the host's own. The
// finding does not contain dir, because clients that call the bash tool see the finding.
func LookAtRootfs(dir string) Finding {
	f := Finding{Name: "root file system", OK: true, Detail: "the host's /usr"}
	if dir == "" {
		return f
	}
	f.Detail = "the directory that sandbox.rootfs names"
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.Detail = "the directory that sandbox.rootfs names does not exist"
	case err != nil:
		f.Detail = "the directory that sandbox.rootfs names cannot be looked at: " + rootCause(err).Error()
	case !st.IsDir():
		f.Detail = "what sandbox.rootfs names is a file"
	default:
		if usr, err := os.Stat(filepath.Join(dir, "usr")); err == nil && usr.IsDir() {
			return f
		}
		f.Detail = "the directory that sandbox.rootfs names has no /usr"
	}
	f.OK, f.Remedy = false, "Make a root file system as docs/rootfs.md says, set sandbox.rootfs to a directory that holds one, or leave sandbox.rootfs empty to use the host's /usr."
	return f
}

// rootCause returns the system's error text, without a path.
func rootCause(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// LookForTool looks for a program in the bin directories of the sandboxes' PATH. rootfs is their
// root file system; "" means the host's.
func LookForTool(rootfs, name string) Finding {
	f := Finding{Name: name}
	if rootfs == "" {
		rootfs = "/"
	}
	for _, d := range []string{"usr/local/bin", "usr/bin", "bin"} {
		p := filepath.Join(rootfs, d, name)
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			f.OK, f.Detail = true, p
			return f
		}
	}
	pkg := map[string]string{"rg": "ripgrep"}[name]
	if pkg == "" {
		pkg = name
	}
	f.Detail = "not in the sandboxes' root file system"
	f.Remedy = fmt.Sprintf("Install it (Debian and Ubuntu: apt install %s).", pkg)
	return f
}

// FirstLine returns the first line of an error's text, cut if it is long, for the operator.
func FirstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	const most = 300
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}
