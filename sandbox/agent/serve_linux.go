package agent

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"satchel/sandbox/protocol"
)

// Serve runs process 1 of a sandbox: it speaks the protocol over in and out until in
// ends, and returns the exit status.
func Serve(in io.Reader, out io.Writer) int {
	s := &server{
		conn:    protocol.NewConn(in, out),
		cancels: make(map[uint32]chan struct{}),
	}
	if err := s.serve(); err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	return 0
}

// server is the agent. It trusts its host, but not the commands.
type server struct {
	conn  *protocol.Conn
	boot  protocol.Boot
	shell *pool
	space *spaceView
	jobs  *jobs
	rest  *time.Timer // fires when the agent should give memory back

	mu      sync.Mutex
	cancels map[uint32]chan struct{} // by the id of an Exec: a channel that is closed to cancel it
	booted  bool
}

func (s *server) serve() error {
	for {
		id, r, err := s.conn.Next()
		if err != nil {
			return err
		}
		if err := s.dispatch(id, r); err != nil {
			return err
		}
	}
}

// dispatch starts the answer to a request, if necessary on a goroutine. An error ends the agent.
func (s *server) dispatch(id uint32, r protocol.Request) error {
	if b, ok := r.(*protocol.Boot); ok {
		return s.handleBoot(id, *b)
	}
	if !s.booted {
		return fmt.Errorf("%w: a request before the boot", protocol.ErrProtocol)
	}
	s.rest.Reset(restAfter(s.boot))
	switch r := r.(type) {
	case *protocol.ExecRequest:
		s.startExec(id, *r)
	case *protocol.CancelRequest:
		s.cancel(id)
	case *protocol.CollectLimits:
		go s.collect(id, *r)
	case *protocol.AckRequest:
		go s.ack(id, *r)
	case *protocol.ApplyRequest:
		go func() { s.conn.ReplyApply(id, s.space.apply(r.Entries)) }()
	case *protocol.JobsRequest:
		go func() { s.conn.ReplyJobs(id, s.jobs.all()) }()
	case *protocol.KillRequest:
		go s.answer(id, func() error { return s.jobs.kill(r.JobID, r.Signal) })
	case *protocol.ShutdownRequest:
		go s.answer(id, func() error { s.shutdown(r.Grace); return nil })
	}
	return nil
}

func (s *server) answer(id uint32, f func() error) {
	if err := f(); err != nil {
		s.conn.Fail(id, err)
		return
	}
	s.conn.Reply(id)
}

// handleBoot mounts and starts everything. A second or failed boot ends the agent, because
// the sandbox is then useless.
func (s *server) handleBoot(id uint32, b protocol.Boot) error {
	if s.booted {
		return fmt.Errorf("%w: a second boot", protocol.ErrProtocol)
	}
	if b.Output <= 0 {
		b.Output = defaultOutput
	}
	lower, err := boot(b)
	if err == nil {
		s.boot = b
		s.shell, err = newPool(b)
	}
	if err == nil {
		s.space, err = newSpaceView(s.shell, lower)
	}
	if err == nil {
		err = hideOwn()
	}
	if err != nil {
		s.conn.Fail(id, err)
		return err
	}
	s.jobs = newJobs(b.Output)
	s.booted = true
	s.rest = restTimer(restAfter(b))
	s.conn.Reply(id)
	return nil
}

// defaultOutput is how many bytes of each stream are kept by default.
const defaultOutput = 16 << 20
