package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/container"

	"satchel/internal/procmem"
	"satchel/internal/space"
	"satchel/sandbox/gvisor/link"
	"satchel/sandbox/gvisor/rundir"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

// owner owns the containers of the child process: only it starts, waits for and ends them.
type owner struct {
	conf    link.Config
	runsc   *config.Config
	root    string // the assembled root file system
	cgroups host.Cgroups
	link    *link.Link

	// booting is held while a container boots: gVisor opens control sockets without close-on-exec,
	// so a sentry that is started meanwhile would inherit the socket of another sandbox.
	booting sync.Mutex

	mu     sync.Mutex
	live   map[space.SandboxID]*ownedContainer
	ending bool // no more starts
}

// ownedContainer is one container. After started is closed, only its keeper goroutine uses
// c.
type ownedContainer struct {
	id      space.SandboxID
	bundle  string
	started chan struct{} // closed when the start has succeeded or failed
	gone    chan struct{} // closed when everything is removed

	c      *container.Container
	sentry *host.Process
	gofer  *host.Process
	group  *host.Cgroup // nil if there is none
	limit  int64        // bytes, for the watchdog; 0: none

	places   sync.Mutex // held while the directories are attached or removed
	attached bool       // the directories were attached or removed

	mu      sync.Mutex
	stopped bool        // a stop was requested
	oom     bool        // the watchdog killed the container, which used too much memory
	killed  link.Killed // whether a failed start was killed; set before started is closed
}

func newOwner(conf link.Config, l *link.Link) (*owner, error) {
	root, err := assembleRoot(conf)
	if err != nil {
		return nil, err
	}
	if err := mountPlaces(conf.RunDir); err != nil {
		return nil, err
	}
	for _, d := range []string{rundir.State(conf.RunDir), rundir.Bundles(conf.RunDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("making the run directory: %w", err)
		}
	}
	// gVisor creates a socket in its state directory. The path must be short: gVisor opens
	// a longer one in a way that lets other sandboxes inherit it.
	if err := os.Chdir(rundir.State(conf.RunDir)); err != nil {
		return nil, fmt.Errorf("entering the state directory: %w", err)
	}
	if err := keepDescriptorsFree(); err != nil {
		return nil, err
	}
	openFiles, err := limitOpenFiles(uint64(conf.OpenFiles))
	if err != nil {
		return nil, err
	}
	rc, err := runscConfig(conf, openFiles)
	if err != nil {
		return nil, err
	}
	return &owner{
		conf: conf, runsc: rc, root: root, link: l,
		cgroups: host.FindCgroups(conf.NoCgroups),
		live:    map[space.SandboxID]*ownedContainer{},
	}, nil
}

// admit registers a container that start will boot. It is called in the order of the requests, so
// that a later stop finds its container.
func (o *owner) admit(id space.SandboxID) (*ownedContainer, error) {
	if !oci.ValidID(id) {
		return nil, fmt.Errorf("%q is not a sandbox id", id)
	}
	b := &ownedContainer{
		id:      id,
		bundle:  filepath.Join(rundir.Bundles(o.conf.RunDir), string(id)),
		started: make(chan struct{}),
		gone:    make(chan struct{}),
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending {
		return nil, errors.New("the runtime is ending")
	}
	if _, ok := o.live[id]; ok {
		return nil, fmt.Errorf("sandbox %s runs already", id)
	}
	o.live[id] = b
	return b, nil
}

// start boots an admitted container whose process 1 has stdio as its standard streams. If
// the boot fails, start removes everything.
func (o *owner) start(b *ownedContainer, req *link.StartRequest, stdio []*os.File) error {
	err := o.boot(b, req, stdio)
	if err != nil {
		b.killed = b.whetherKilled(err)
		o.clean(b)
		o.forget(b)
		close(b.started)
		return err
	}
	close(b.started)
	go o.keep(b)
	return nil
}

// boot starts the container. If it fails, clean removes the remains.
func (o *owner) boot(b *ownedContainer, req *link.StartRequest, stdio []*os.File) error {
	if req == nil || len(stdio) != 3 {
		return errors.New("a start request is incomplete")
	}
	spec := oci.Spec{ID: b.id, Root: o.root, Args: o.conf.Args}
	spec.Lower, spec.Git, spec.Library = o.places(b.id)
	if err := o.makePlaces(b.id); err != nil {
		return err
	}
	cfg, err := oci.Config(spec)
	if err != nil {
		return err
	}
	inUserNamespace(cfg)
	raw, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	runAs(cfg)
	if err := os.Mkdir(b.bundle, 0o700); err != nil {
		return fmt.Errorf("making the bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.bundle, "config.json"), raw, 0o600); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := writeShown(b.bundle, req.Limits); err != nil {
		return err
	}
	if err := o.cgroups.Note(b.bundle, b.id); err != nil {
		return err
	}
	o.booting.Lock()
	defer o.booting.Unlock()
	if b.stopAsked() {
		return errCanceled
	}
	pass := map[int]*os.File{}
	for i, f := range stdio {
		pass[i] = f // the caller closes f
	}
	b.c, err = container.New(o.runsc, container.Args{
		ID: string(b.id), Spec: cfg, BundleDir: b.bundle,
		Attached:  true, // the sentry and the gofer die with this process
		PassFiles: pass,
	})
	if err != nil {
		return fmt.Errorf("creating the container: %w", err)
	}
	if b.stopAsked() {
		return errCanceled
	}
	if b.sentry, err = host.OpenProcess(b.c.SandboxPid()); err != nil {
		return err
	}
	if b.gofer, err = host.OpenProcess(b.c.GoferPid.Load()); err != nil {
		return err
	}
	// No program of the sandbox has run yet, so the limits apply to all of them.
	b.limit = req.Limits.Memory
	if b.group, err = o.makeGroup(b.id, req.Limits); err != nil {
		return err
	}
	if b.group != nil {
		if err := b.group.Add(append(procmem.Descendants(b.sentry.PID), b.sentry.PID, b.gofer.PID)); err != nil {
			return err
		}
	}
	if err := b.c.Start(o.runsc); err != nil {
		return fmt.Errorf("starting the container: %w", err)
	}
	return nil
}

// makeGroup creates the cgroup of a sandbox. It returns nil if cgroups cannot be used or if
// there are no limits.
func (o *owner) makeGroup(id space.SandboxID, lim space.Limits) (*host.Cgroup, error) {
	if o.cgroups.Version == 0 || lim.Memory == 0 && lim.Processes == 0 && lim.CPUs == 0 {
		return nil, nil
	}
	if lim.Processes > 0 {
		lim.Processes = hostTasks(lim.Processes)
	}
	return o.cgroups.Create(id, lim)
}

// hostTasks returns how many host threads a sandbox may have: those of the sentry and the
// gofer, and a few for each process inside.
func hostTasks(processes int) int { return 512 + 8*processes }

// whetherKilled reports whether something outside ended a failed boot. Call it before
// clean, which kills and reaps what is left.
func (b *ownedContainer) whetherKilled(err error) link.Killed {
	switch {
	case b.group != nil && b.group.OOMKilled():
		return "" // the sandbox was killed, because its limit is too low for a start
	case b.c == nil && endedEarly(err):
		return link.KilledPerhaps
	}
	deadline := time.Now().Add(dyingTime)
	for _, p := range []*host.Process{b.gofer, b.sentry} {
		if p != nil && p.WaitUntil(deadline) && p.Killed() {
			return link.KilledSeen
		}
	}
	return ""
}

// dyingTime is how long the end of a process may take to become visible, after its broken
// connections have made the start fail.
const dyingTime = 250 * time.Millisecond

// endedEarly reports whether gVisor could not create a container because its sentry or
// gofer ended too early. It compares texts, because gVisor's errors have lost their types.
func endedEarly(err error) bool {
	return strings.Contains(err.Error(), io.EOF.Error()) || strings.Contains(err.Error(), "unexpected end of JSON input")
}

// inUserNamespace puts the sentry and the gofer into their own user namespace if the child is not
// root, as gVisor requires. The namespace has only the child's own user.
func inUserNamespace(cfg *specs.Spec) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		return
	}
	cfg.Linux.Namespaces = append(cfg.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	cfg.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: uint32(uid), HostID: uint32(uid), Size: 1}}
	cfg.Linux.GIDMappings = []specs.LinuxIDMapping{{ContainerID: uint32(gid), HostID: uint32(gid), Size: 1}}
}

// runAs puts this process's user into cfg. If the user is not root, gVisor runs the sentry and
// the gofer as this user. The sentry reads the user of process 1 from the bundle instead.
func runAs(cfg *specs.Spec) {
	cfg.Process.User.UID, cfg.Process.User.GID = uint32(os.Geteuid()), uint32(os.Getegid())
}

// keep waits for the container's end, removes the remains and notifies the Runtime.
func (o *owner) keep(b *ownedContainer) {
	goferGone := make(chan struct{})
	go func() {
		// Without its gofer a sandbox is useless, so end it too.
		defer close(goferGone)
		b.gofer.Wait()
		b.sentry.Kill()
	}()
	watched := make(chan struct{})
	stopWatch := make(chan struct{})
	go func() {
		defer close(watched)
		if b.group == nil && b.limit > 0 {
			o.watch(b, stopWatch)
		}
	}()
	b.sentry.Wait()
	close(stopWatch)
	<-watched
	how, wasKilled := b.sentry.Status(), b.sentry.Killed() || b.gofer.Killed()
	b.gofer.Kill()
	<-goferGone

	e := &link.End{Detail: how}
	b.mu.Lock()
	e.Stopped = b.stopped
	e.OutOfMemory = b.oom
	b.mu.Unlock()
	if b.group != nil && b.group.OOMKilled() {
		e.OutOfMemory = true
	}
	e.Killed = wasKilled && !e.Stopped && !e.OutOfMemory
	o.clean(b)
	// Send the message before forget, which lets a waiting stop return. The Runtime must know
	// of the end when it gets the answer to the stop.
	_ = o.link.Send(link.Message{Op: link.Ended, Sandbox: b.id, End: e})
	o.forget(b)
}

func (b *ownedContainer) stopAsked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

// clean removes everything of a container.
func (o *owner) clean(b *ownedContainer) {
	if b.sentry != nil {
		b.sentry.Kill()
	}
	if b.gofer != nil {
		b.gofer.Kill()
	}
	whole := true
	if b.c != nil {
		if err := b.c.Destroy(); err != nil {
			fmt.Fprintf(os.Stderr, "destroying sandbox %s: %v\n", b.id, err)
			whole = false
		}
	}
	if b.sentry != nil {
		b.sentry.Close()
	}
	if b.gofer != nil {
		b.gofer.Close()
	}
	if b.group != nil {
		if err := b.group.Remove(); err != nil {
			fmt.Fprintf(os.Stderr, "removing the cgroup of sandbox %s: %v\n", b.id, err)
			whole = false
		}
	}
	b.places.Lock()
	b.attached = true
	err := o.removePlaces(b.id)
	b.places.Unlock()
	if err != nil {
		fmt.Fprintf(os.Stderr, "detaching sandbox %s: %v\n", b.id, err)
		whole = false
	}
	if !whole {
		return // the next reap finds the remains by the bundle
	}
	if err := os.RemoveAll(b.bundle); err != nil {
		fmt.Fprintf(os.Stderr, "removing the bundle of sandbox %s: %v\n", b.id, err)
	}
}

func (o *owner) forget(b *ownedContainer) {
	o.mu.Lock()
	delete(o.live, b.id)
	o.mu.Unlock()
	close(b.gone)
}

func (o *owner) find(id space.SandboxID) *ownedContainer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.live[id]
}

// stop ends a container and returns when everything of it is removed.
func (o *owner) stop(id space.SandboxID) error {
	b := o.find(id)
	if b == nil {
		return nil
	}
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	o.abort(b)
	select {
	case <-b.gone:
	default:
		b.sentry.Kill()
	}
	<-b.gone
	return nil
}

// abort ends a boot in progress and returns when it has ended: gVisor waits for ever for a
// sentry that hangs, as on a broken kvm, and no other sandbox can boot meanwhile.
func (o *owner) abort(b *ownedContainer) {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-b.started:
			return
		case <-t.C:
		}
		procs, err := rundir.Processes(rundir.Bundles(o.conf.RunDir))
		if err != nil {
			continue
		}
		for _, p := range procs {
			if p.Sandbox == string(b.id) {
				p.Kill()
			}
			p.Close()
		}
	}
}

// stopAll prevents further starts and begins to end all containers.
func (o *owner) stopAll() {
	o.mu.Lock()
	o.ending = true
	var ids []space.SandboxID
	for id := range o.live {
		ids = append(ids, id)
	}
	o.mu.Unlock()
	for _, id := range ids {
		go o.stop(id)
	}
}

// drain waits until all containers are gone, but not longer than timeout.
func (o *owner) drain(timeout time.Duration) {
	deadline := time.After(timeout)
	for {
		o.mu.Lock()
		var b *ownedContainer
		for _, b = range o.live {
			break
		}
		o.mu.Unlock()
		if b == nil {
			return
		}
		select {
		case <-b.gone:
		case <-deadline:
			return
		}
	}
}

func (o *owner) stats(id space.SandboxID) (space.SandboxStats, error) {
	b := o.find(id)
	if b == nil {
		return space.SandboxStats{}, errNoSandbox
	}
	<-b.started
	if b.sentry == nil || b.gofer == nil {
		return space.SandboxStats{}, errNoSandbox
	}
	return b.measure(), nil
}

var (
	errNoSandbox = errors.New("no such sandbox")
	errCanceled  = errors.New("the start was canceled")
)

// measure returns the memory of the container's processes, including the shared memory that
// the sentry holds for its programs, mapped or not.
func (b *ownedContainer) measure() space.SandboxStats {
	u := procmem.Of(append([]int{b.gofer.PID, b.sentry.PID}, procmem.Descendants(b.sentry.PID)...)...)
	return space.SandboxStats{
		Memory:    u.PSS - u.Shmem + memfdBytes(b.sentry.PID),
		Processes: u.Spaces,
	}
}

// watch kills the sandbox when it uses more memory than its limit.
func (o *owner) watch(b *ownedContainer, stop <-chan struct{}) {
	t := time.NewTicker(time.Duration(o.conf.WatchInterval))
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		if b.measure().Memory > b.limit {
			b.mu.Lock()
			b.oom = true
			b.mu.Unlock()
			b.sentry.Kill()
			return
		}
	}
}
