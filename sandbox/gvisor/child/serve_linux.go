package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"satchel/sandbox/gvisor/link"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/log"
)

// The files that the Runtime gives its child.
const (
	childSocketFD = 3
	childLockFD   = 4 // keeps RunDir locked until the child has ended too
)

// drainTimeout is how long the child waits for its containers to end when its Runtime is
// gone. They die with the child in any case.
const drainTimeout = 5 * time.Second

// ownSandboxes is the main function of a Runtime's child process. It returns when the Runtime
// ends for any reason, because the kernel then closes the socket's other end.
func ownSandboxes() int {
	if _, err := unix.GetsockoptInt(childSocketFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		fmt.Fprintln(os.Stderr, "satchel-sandbox is started by the server only")
		return 2
	}
	// Neither the socket nor the lock may pass to a gofer or a sentry.
	unix.CloseOnExec(childSocketFD)
	unix.CloseOnExec(childLockFD)
	// gVisor's packages log to standard error, of which the server keeps little.
	log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: io.Discard}})

	l, err := link.New(os.NewFile(childSocketFD, "runtime"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer l.Close()
	m, files, err := l.Receive()
	link.CloseAll(files)
	if errors.Is(err, io.EOF) {
		return 0 // the server ended before it sent the configuration
	}
	if err == nil && (m.Op != link.Configure || m.Config == nil) {
		err = errors.New("the first message is not a configuration")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	own, err := newOwner(*m.Config, l)
	reply := link.Message{ID: m.ID, Op: m.Op}
	if err != nil {
		reply.Error = err.Error()
		_ = l.Send(reply) // a Runtime that is gone needs no answer
		return 1
	}
	returnMemory(1)
	reply.Ready = &link.ReadyInfo{Cgroups: own.cgroups.Describe()}
	if err := l.Send(reply); err != nil {
		return 1
	}
	own.serve()
	own.drain(drainTimeout)
	return 0
}

// serve answers requests until the Runtime is gone.
func (o *owner) serve() {
	var wg sync.WaitGroup
	for {
		m, files, err := o.link.Receive()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "receiving from the server:", err)
			}
			break
		}
		reply := link.Message{ID: m.ID, Op: m.Op, Sandbox: m.Sandbox}
		var b *ownedContainer
		if m.Op == link.Start {
			if b, err = o.admit(m.Sandbox); err != nil {
				link.CloseAll(files)
				reply.Error = err.Error()
				_ = o.link.Send(reply)
				continue
			}
		}
		wg.Go(func() {
			defer link.CloseAll(files)
			if err := o.handle(m, b, files, &reply); err != nil {
				reply.Error = err.Error()
				if b != nil {
					reply.Killed = b.killed
				}
			}
			_ = o.link.Send(reply)
		})
	}
	o.stopAll()
	wg.Wait()
}

// handle performs the request m; b is the admitted container of a start.
func (o *owner) handle(m link.Message, b *ownedContainer, files []*os.File, reply *link.Message) error {
	switch m.Op {
	case link.Start:
		return o.start(b, m.Start, files)
	case link.Attach:
		return o.attach(m.Sandbox, m.Attach)
	case link.Stop:
		return o.stop(m.Sandbox)
	case link.Reap:
		n, err := o.reap()
		reply.Reaped = n
		return err
	case link.Stats:
		s, err := o.stats(m.Sandbox)
		reply.Stats = &s
		return err
	}
	return fmt.Errorf("no such request: %q", m.Op)
}
