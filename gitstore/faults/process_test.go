//go:build unix

package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"satchel/internal/testenv"
)

// process is a writer as its schedule sees it. What it acknowledged stays known
// when it is killed and started again.
type process struct {
	setup
	ctx context.Context // ends every wait for the writer

	mu  sync.Mutex // held to start and to kill
	cmd *exec.Cmd
	in  *json.Encoder
	end chan struct{} // closed when the process has ended and all that it said was read

	eventsMu sync.Mutex
	changed  *sync.Cond
	events   []event // of all its lives
	log      bytes.Buffer
	kills    int
	started  int
}

func newProcess(t testing.TB, s setup) *process {
	p := &process{setup: s, ctx: testenv.Context(t), end: make(chan struct{})}
	close(p.end)
	p.changed = sync.NewCond(&p.eventsMu)
	return p
}

// start runs the writer and waits until it is ready, or was killed on its way.
func (p *process) start() error {
	p.mu.Lock()
	exe, err := os.Executable()
	if err != nil {
		p.mu.Unlock()
		return err
	}
	p.started++
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), writerEnv+"=1")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		p.mu.Unlock()
		return errors.Join(err1, err2)
	}
	cmd.Stderr = &logOf{p}
	fmt.Fprintf(cmd.Stderr, "--- start %d\n", p.started)
	if err := cmd.Start(); err != nil {
		p.mu.Unlock()
		return err
	}
	p.cmd, p.in, p.end = cmd, json.NewEncoder(in), make(chan struct{})
	at := p.seen()
	go p.read(cmd, bufio.NewReader(out), p.end)
	p.in.Encode(p.setup)
	p.mu.Unlock()
	_, err = p.await(at, "ready", "")
	return err
}

// read takes in what the process says, and its end.
func (p *process) read(cmd *exec.Cmd, out *bufio.Reader, end chan struct{}) {
	dec := json.NewDecoder(out)
	for {
		var e event
		if dec.Decode(&e) != nil {
			break
		}
		p.note(e)
	}
	err := cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && !s.Signaled() && err != nil {
		p.note(event{Is: "crashed", Why: err.Error()})
	}
	p.note(event{Is: "gone", Why: fmt.Sprint(err)})
	close(end)
}

func (p *process) note(e event) {
	p.eventsMu.Lock()
	defer p.eventsMu.Unlock()
	p.events = append(p.events, e)
	p.changed.Broadcast()
}

func (p *process) seen() int {
	p.eventsMu.Lock()
	defer p.eventsMu.Unlock()
	return len(p.events)
}

// await waits for an event after the first at of them, of one kind and for one
// order: errGone reports that the process ended before, and an event "failed"
// takes the place of an acknowledgement.
func (p *process) await(at int, is, op string) (event, error) {
	defer context.AfterFunc(p.ctx, func() { p.note(event{Is: "late"}) })()
	p.eventsMu.Lock()
	defer p.eventsMu.Unlock()
	for ; ; at++ {
		for at >= len(p.events) {
			p.changed.Wait()
		}
		switch e := p.events[at]; {
		case e.Is == is && e.Op == op, is == "acked" && e.Is == "failed" && e.Op == op:
			return e, nil
		case e.Is == "gone":
			return e, errGone
		case e.Is == "late":
			return e, fmt.Errorf("writer %s says no %q %q in the time of the test", p.Name, is, op)
		}
	}
}

var errGone = errors.New("the writer is gone")

// send gives an order; it is lost where the process is gone.
func (p *process) send(o order) (at int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.seen()
	select {
	case <-p.end:
		p.note(event{Is: "gone", Why: "before the order"})
	default:
		p.in.Encode(o)
	}
	return at
}

// kill ends the process as a lost machine would, and returns when it has ended;
// false if it had ended before.
func (p *process) kill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.end:
		return false
	default:
	}
	p.kills++
	p.cmd.Process.Kill()
	<-p.end
	return true
}

// quit ends the process well.
func (p *process) quit() error {
	p.send(order{Do: "quit"})
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.end:
	case <-p.ctx.Done():
		p.cmd.Process.Kill()
		<-p.end
		return fmt.Errorf("writer %s does not end", p.Name)
	}
	return nil
}

// alive reports whether the process runs.
func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.end:
		return false
	default:
		return true
	}
}

// said returns the events so far.
func (p *process) said() []event {
	p.eventsMu.Lock()
	defer p.eventsMu.Unlock()
	return append([]event(nil), p.events...)
}

type logOf struct{ p *process }

func (l *logOf) Write(b []byte) (int, error) {
	l.p.eventsMu.Lock()
	defer l.p.eventsMu.Unlock()
	if l.p.log.Len() < 1<<20 {
		l.p.log.Write(b)
	}
	return len(b), nil
}

func (p *process) logged() string {
	p.eventsMu.Lock()
	defer p.eventsMu.Unlock()
	return p.log.String()
}
