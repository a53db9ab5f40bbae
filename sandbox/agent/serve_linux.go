package agent

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Serve runs process 1 of a sandbox: it speaks the protocol over in and out until in
// ends, and returns the exit status.
func Serve(in io.Reader, out io.Writer) int {
	s := &server{
		out:     &sender{w: out},
		cancels: make(map[uint32]chan struct{}),
	}
	if err := s.serve(in); err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	return 0
}

// server is the agent. It trusts its host, but not the commands.
type server struct {
	out   *sender
	boot  Boot
	shell *pool
	space *spaceView
	jobs  *jobs
	rest  *time.Timer // until the agent gives memory back

	mu      sync.Mutex
	cancels map[uint32]chan struct{} // of the running Execs, closed once
	booted  bool
}

// errStopping is the error of commands during shutdown.
var errStopping = errors.New("the sandbox is being stopped")

// refusal is a failure that the host distinguishes.
type refusal struct {
	code failure
	text string
}

func (r *refusal) Error() string { return r.text }

func (s *server) serve(in io.Reader) error {
	r := newRequestReader(in)
	for {
		k, id, body, err := r.next()
		if err != nil {
			return err
		}
		if err := s.dispatch(k, id, body); err != nil {
			return err
		}
	}
}

// dispatch answers a request on a goroutine of its own; its error ends the
// agent.
func (s *server) dispatch(k kind, id uint32, body []byte) error {
	d := &decoder{b: body}
	if k == kindBoot {
		var b Boot
		b.decode(d)
		if err := d.done(); err != nil {
			return err
		}
		return s.handleBoot(id, b)
	}
	if !s.booted {
		return fmt.Errorf("%w: a request before the boot", ErrProtocol)
	}
	s.rest.Reset(restAfter(s.boot))
	var answer func(*encoder) error
	switch k {
	case kindExec:
		var r ExecRequest
		r.decode(d)
		if err := d.done(); err != nil {
			return err
		}
		s.startExec(id, r)
		return nil
	case kindCancel:
		s.cancel(id)
		return d.done()
	case kindCollect:
		var l CollectLimits
		l.decode(d)
		if err := d.done(); err != nil {
			return err
		}
		go s.collect(id, l)
		return nil
	case kindAck:
		var a ackRequest
		a.decode(d)
		answer = func(*encoder) error { return s.space.ack(a) }
	case kindApply:
		entries := decodeApply(d)
		answer = func(e *encoder) error {
			encodeApplied(e, s.space.apply(entries))
			return nil
		}
	case kindJobs:
		answer = func(e *encoder) error { s.jobs.encode(e); return nil }
	case kindKill:
		var r killRequest
		r.decode(d)
		answer = func(*encoder) error { return s.jobs.kill(r.job, r.signal) }
	case kindShutdown:
		var r shutdownRequest
		r.decode(d)
		answer = func(*encoder) error { s.shutdown(r.grace); return nil }
	default:
		return fmt.Errorf("%w: a request of kind %d", ErrProtocol, k)
	}
	if err := d.done(); err != nil {
		return err
	}
	go s.answer(id, answer)
	return nil
}

func (s *server) answer(id uint32, f func(*encoder) error) {
	var e encoder
	if err := f(&e); err != nil {
		s.fail(id, err)
		return
	}
	s.out.message(kindReply, id, e.b)
}

func (s *server) fail(id uint32, err error) {
	code, text := failed, err.Error()
	var r *refusal
	if errors.As(err, &r) {
		code = r.code
	} else if errors.Is(err, errStopping) {
		code = failedBusy
	}
	var e encoder
	e.byte(byte(code))
	e.string(text[:min(len(text), maxShort)])
	s.out.message(kindFailure, id, e.b)
}

// handleBoot mounts and starts everything. A second or failed boot ends the agent, because
// the sandbox is then useless.
func (s *server) handleBoot(id uint32, b Boot) error {
	if s.booted {
		return fmt.Errorf("%w: a second boot", ErrProtocol)
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
		s.fail(id, err)
		return err
	}
	s.jobs = newJobs(b.Output)
	s.booted = true
	s.rest = restTimer(restAfter(b))
	s.out.message(kindReply, id, nil)
	return nil
}

// defaultOutput is how many bytes of each stream are kept by default.
const defaultOutput = 16 << 20

// sender writes frames. If the host does not read, replies wait and live output is dropped.
type sender struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sender) message(k kind, id uint32, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The reader notices if the host is gone.
	_, _ = s.w.Write(appendMessage(nil, k, id, body))
}

// part sends one frame of a longer message. Frames of other messages may come in between.
func (s *sender) part(k kind, id uint32, body []byte, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.w.Write(appendFrame(nil, frame{kind: k, id: id, more: more, payload: body}))
}

// output sends live output, which it requests when it can send. If wait is false, it gives
// up while something else is being sent. It reports whether it could send.
func (s *sender) output(id uint32, from Stream, wait bool, take func() []byte) bool {
	if wait {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if p := take(); len(p) > 0 {
		_, _ = s.w.Write(appendFrame(nil, frame{kind: kindOutput, id: id, payload: append([]byte{byte(from)}, p...)}))
	}
	return true
}
