package crun

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// idRanges gives out ranges of the host's ids.
type idRanges struct {
	first uint32

	mu    sync.Mutex
	taken map[int]bool
}

func newIDRanges(first uint32) *idRanges {
	return &idRanges{first: first, taken: map[int]bool{}}
}

// get takes the lowest free range.
func (r *idRanges) get() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for slot := range maxSlots {
		if !r.taken[slot] {
			r.taken[slot] = true
			return slot, nil
		}
	}
	return 0, errors.New("all ranges of user ids are taken by running sandboxes")
}

func (r *idRanges) put(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, slot)
}

// start is the first id of a range.
func (r *idRanges) start(slot int) uint32 { return r.first + uint32(slot)*idsEach }

// mappings are the id mappings of a sandbox's user namespace.
func (r *idRanges) mappings(slot int) (uids, gids []specs.LinuxIDMapping) {
	own := specs.LinuxIDMapping{ContainerID: 0, HostID: r.start(slot), Size: idsEach}
	return []specs.LinuxIDMapping{own}, []specs.LinuxIDMapping{own,
		{ContainerID: firstMark, HostID: r.first + maxSlots*idsEach, Size: marks}}
}

// userNamespace opens a user namespace with the mappings of a range, by which
// the kernel maps the owners of a mount's files.
//
// A namespace lives as long as something is in it or has it open. What is in it
// here is a copy of this program that is never run: it waits, as one that is
// traced does, before its first instruction.
func (r *idRanges) userNamespace(slot int) (*os.File, error) {
	own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(r.start(slot)), Size: idsEach}}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"satchel", "user-namespace"}, &syscall.ProcAttr{
		Env:   []string{},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd()},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: own, GidMappings: own,
			Ptrace: true, Pdeathsig: unix.SIGKILL,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making a user namespace: %w", err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
	_ = unix.Kill(pid, unix.SIGKILL)
	for {
		var status unix.WaitStatus
		_, werr := unix.Wait4(pid, &status, 0, nil)
		if werr != nil && !errors.Is(werr, unix.EINTR) || status.Exited() || status.Signaled() {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening a user namespace: %w", err)
	}
	return f, nil
}
