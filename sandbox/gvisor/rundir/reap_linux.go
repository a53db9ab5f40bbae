package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"satchel/internal/procmem"
	"satchel/internal/space"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

// State returns the directory of gVisor's state files in a run directory.
func State(runDir string) string { return filepath.Join(runDir, "state") }

// NullNamespace is the name, in State, of the empty network namespace that gVisor shares
// among all sandboxes.
const NullNamespace = "null-netns"

// Bundles returns the directory in a run directory with the bundles of sandboxes, each
// named after its sandbox.
func Bundles(runDir string) string { return filepath.Join(runDir, "bundles") }

// Reap destroys every sandbox that an earlier process left behind under runDir, and returns
// how many there were. The caller holds the lock of runDir, so nobody owns any of them.
//
// A sandbox ends with the child process that owns it, which removes its files and cgroups. Only a
// child process that was killed, or that could not remove everything, leaves remains.
func Reap(runDir string, timeout time.Duration) (int, error) {
	n, err := ReapUnowned(runDir, timeout, func(string) bool { return false })
	if err != nil {
		return 0, err
	}
	for _, d := range []string{Bundles(runDir), State(runDir)} {
		if err := os.RemoveAll(d); err != nil {
			return 0, fmt.Errorf("removing earlier sandboxes: %w", err)
		}
	}
	return n, nil
}

// ReapUnowned removes the processes, cgroups and files of the sandboxes under runDir for which
// owned returns false. It returns the number of these sandboxes. It removes a bundle last,
// because a later attempt finds the rest through the bundle.
func ReapUnowned(runDir string, timeout time.Duration, owned func(id string) bool) (int, error) {
	ids := map[string]bool{}
	procs, err := Processes(Bundles(runDir))
	if err != nil {
		return 0, err
	}
	var orphans []Process
	for _, p := range procs {
		if owned(p.Sandbox) {
			p.Close()
			continue
		}
		ids[p.Sandbox] = true
		orphans = append(orphans, p)
		p.Kill()
	}
	deadline := time.Now().Add(timeout)
	for _, p := range orphans {
		ok := p.WaitUntil(deadline)
		p.Close()
		if !ok {
			err = errors.Join(err, fmt.Errorf("process %d of an earlier sandbox cannot be ended", p.PID))
		}
	}
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(Bundles(runDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("looking for earlier sandboxes: %w", err)
	}
	for _, e := range entries {
		if id := e.Name(); oci.ValidID(space.SandboxID(id)) && !owned(id) {
			ids[id] = true
		}
	}
	// An interrupted start may have left state without a bundle.
	states, err := os.ReadDir(State(runDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("looking for the state of earlier sandboxes: %w", err)
	}
	for _, e := range states {
		if id := idInName().FindString(e.Name()); id != "" && !owned(id) {
			ids[id] = true
		}
	}
	n, err := 0, error(nil)
	for id := range ids {
		if rerr := removeRemains(runDir, id); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		n++
	}
	return n, err
}

// idInName matches the sandbox's ID in the name of a state file.
var idInName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]{64}`) })

// removeRemains removes the remains of a sandbox without processes. It checks the ID,
// because another text could lead to any path.
func removeRemains(runDir, id string) error {
	if !oci.ValidID(space.SandboxID(id)) {
		return fmt.Errorf("%q is not a sandbox id", id)
	}
	bundle := filepath.Join(Bundles(runDir), id)
	if err := host.FindCgroups(false).Find(bundle, space.SandboxID(id)).Remove(); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(State(runDir), "*"+id+"*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.RemoveAll(f); err != nil {
			return fmt.Errorf("removing the state of an earlier sandbox: %w", err)
		}
	}
	if err := os.RemoveAll(bundle); err != nil {
		return fmt.Errorf("removing an earlier sandbox: %w", err)
	}
	return nil
}

// Process is a sentry or gofer of a sandbox.
type Process struct {
	*host.Process
	Sandbox string
}

// Processes finds the sentries and gofers whose bundle is in dir. It uses their command
// lines, never a pid from a file, which may belong to another process by now.
func Processes(dir string) ([]Process, error) {
	pids, err := procmem.PIDs()
	if err != nil {
		return nil, err
	}
	var out []Process
	for _, pid := range pids {
		if bundleOf(pid, dir) == "" {
			continue
		}
		p, err := host.OpenProcess(pid)
		if err != nil {
			continue // it has ended
		}
		// Check again, because another process may have had the pid until OpenProcess held it.
		id := bundleOf(pid, dir)
		if id == "" {
			p.Close()
			continue
		}
		out = append(out, Process{p, id})
	}
	return out, nil
}

// bundleOf returns the ID of the sandbox of a sentry or gofer whose bundle is in dir, or "" for
// other processes.
func bundleOf(pid int, dir string) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.HasPrefix(b, []byte("runsc-")) {
		return ""
	}
	args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	if args[0] != "runsc-sandbox" && args[0] != "runsc-gofer" {
		return ""
	}
	for i, a := range args {
		bundle, ok := strings.CutPrefix(a, "--bundle=")
		if !ok && a == "--bundle" && i+1 < len(args) {
			bundle, ok = args[i+1], true
		}
		// Any process on the machine can use this name and any arguments, so check the path.
		if id := filepath.Base(bundle); ok && filepath.Dir(bundle) == dir && oci.ValidID(space.SandboxID(id)) {
			return id
		}
	}
	return ""
}
