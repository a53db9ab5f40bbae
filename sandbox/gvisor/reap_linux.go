package gvisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

// reap destroys every sandbox that an earlier process left behind under runDir, and returns
// how many there were. The caller holds the lock of runDir, so nobody owns any of them.
//
// Sandboxes end with the child that owns them, which removes their files and cgroups. Only
// a killed child leaves remains.
func reap(runDir string, timeout time.Duration) (int, error) {
	n, err := reapUnowned(runDir, timeout, func(string) bool { return false })
	if err != nil {
		return 0, err
	}
	for _, d := range []string{bundleDir(runDir), stateDir(runDir)} {
		if err := os.RemoveAll(d); err != nil {
			return 0, fmt.Errorf("removing earlier sandboxes: %w", err)
		}
	}
	return n, nil
}

// orphanTime is how long the processes of the orphans found at once may take to end.
const orphanTime = 10 * time.Second

// reap destroys the remains of sandboxes that this owner does not have. An id is in live
// from before anything of its sandbox is created until everything is removed, so files with
// another id belong to nobody.
func (o *owner) reap() (int, error) {
	o.mu.Lock()
	before := maps.Clone(o.live) // sandboxes that end meanwhile may not be removed yet
	o.mu.Unlock()
	return reapUnowned(o.conf.RunDir, orphanTime, func(id string) bool {
		_, owned := before[space.SandboxID(id)]
		return owned || o.find(space.SandboxID(id)) != nil
	})
}

// reapUnowned removes the processes, cgroups and files of sandboxes under runDir that owned
// does not claim, and returns the number of these sandboxes. It removes a bundle last,
// because the rest is found by it.
func reapUnowned(runDir string, timeout time.Duration, owned func(id string) bool) (int, error) {
	ids := map[string]bool{}
	procs, err := leftProcesses(bundleDir(runDir))
	if err != nil {
		return 0, err
	}
	var orphans []left
	for _, p := range procs {
		if owned(p.sandbox) {
			p.Close()
			continue
		}
		ids[p.sandbox] = true
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
	entries, err := os.ReadDir(bundleDir(runDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("looking for earlier sandboxes: %w", err)
	}
	for _, e := range entries {
		if id := e.Name(); oci.ValidID(space.SandboxID(id)) && !owned(id) {
			ids[id] = true
		}
	}
	// An interrupted start may have left state without a bundle.
	states, err := os.ReadDir(stateDir(runDir))
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

// idInName is the sandbox's id in the name of a file of its state.
var idInName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]{64}`) })

// removeRemains removes the files and cgroups of a sandbox without processes. It only
// accepts an id, because another text could be any path.
func removeRemains(runDir, id string) error {
	if !oci.ValidID(space.SandboxID(id)) {
		return fmt.Errorf("%q is no sandbox id", id)
	}
	bundle := filepath.Join(bundleDir(runDir), id)
	if err := host.FindCgroups(false).Find(bundle, space.SandboxID(id)).Remove(); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(stateDir(runDir), "*"+id+"*"))
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

// left is a sentry or gofer of an earlier sandbox.
type left struct {
	*host.Process
	sandbox string
}

// leftProcesses finds the sentries and gofers whose bundle is in dir. It uses their command
// lines, never a pid from a file, which may belong to another process by now.
func leftProcesses(dir string) ([]left, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []left
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || bundleOf(pid, dir) == "" {
			continue
		}
		p, err := host.OpenProcess(pid)
		if err != nil {
			continue // it has ended
		}
		// Now that the number is held, look again.
		id := bundleOf(pid, dir)
		if id == "" {
			p.Close()
			continue
		}
		out = append(out, left{p, id})
	}
	return out, nil
}

// bundleOf returns the sandbox of a sentry or gofer whose bundle is in dir, or "".
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
		// Any process on the machine can have such a command line.
		if id := filepath.Base(bundle); ok && filepath.Dir(bundle) == dir && oci.ValidID(space.SandboxID(id)) {
			return id
		}
	}
	return ""
}
