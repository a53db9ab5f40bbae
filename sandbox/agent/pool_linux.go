package agent

import (
	"maps"
	"sync"

	"golang.org/x/sys/unix"

	"satchel/sandbox/protocol"
)

// warmShells is how many shells of each kind, read-only or not, wait for commands. One is enough
// for sequential commands. In a burst, the other commands wait until a shell has started. An
// earlier command cannot write into the memory of a waiting shell, because gVisor does not let
// /proc/PID/mem be written.
const warmShells = 1

// pool starts shells ahead of the commands.
type pool struct {
	boot   protocol.Boot
	reaper *reaper

	// starting is held for reading while a command is given its shell, and for
	// writing by pause.
	starting sync.RWMutex

	mu       sync.Mutex
	mark     uint32
	idle     map[bool][]*shell // by readOnly: the shells that wait for commands
	filling  map[bool]bool
	spawners map[bool]*spawner
	marks    map[uint32]bool // the marks of the shells that run commands
	stopped  bool
}

func newPool(b protocol.Boot) (*pool, error) {
	p := &pool{
		boot: b, reaper: newReaper(), mark: firstMark,
		idle: make(map[bool][]*shell), filling: make(map[bool]bool),
		spawners: make(map[bool]*spawner), marks: make(map[uint32]bool),
	}
	if _, err := p.spawner(false); err != nil {
		return nil, err
	}
	p.refill(false)
	return p, nil
}

// spawner returns the spawner of a kind of shells. It creates the read-only spawner when
// it is first needed.
func (p *pool) spawner(readOnly bool) (*spawner, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.spawners[readOnly]; s != nil {
		return s, nil
	}
	s, err := newSpawner(p.boot, p.reaper, readOnly)
	if err == nil {
		p.spawners[readOnly] = s
	}
	return s, err
}

func (p *pool) spawn(readOnly bool) (*shell, error) {
	s, err := p.spawner(readOnly)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.mark++
	mark := p.mark
	p.mu.Unlock()
	return s.spawn(mark)
}

// take returns a shell that no other command gets.
func (p *pool) take(readOnly bool) (*shell, error) {
	p.starting.RLock()
	defer p.starting.RUnlock()
	sh, err := p.takeIdle(readOnly)
	if err == nil && sh == nil {
		sh, err = p.spawn(readOnly)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.marks[sh.mark] = true
	stopped := p.stopped
	p.mu.Unlock()
	if stopped {
		p.discard(sh)
		p.release(sh)
		return nil, protocol.ErrStopping
	}
	// Another command of the same user may have stopped the shell.
	_ = unix.Kill(sh.pid, unix.SIGCONT)
	return sh, nil
}

// takeIdle returns a waiting shell that still lives, or nil.
func (p *pool) takeIdle(readOnly bool) (*shell, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, protocol.ErrStopping
	}
	for len(p.idle[readOnly]) > 0 {
		sh := p.idle[readOnly][0]
		p.idle[readOnly] = p.idle[readOnly][1:]
		select {
		case <-sh.exited: // another command of the same user killed it
			sh.close(false)
		default:
			return sh, nil
		}
	}
	return nil, nil
}

// release records that the shell and all processes of its command have ended.
func (p *pool) release(sh *shell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.marks, sh.mark)
}

// refill starts shells of a kind in the background, until warmShells of them wait.
func (p *pool) refill(readOnly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filling[readOnly] || p.stopped {
		return
	}
	p.filling[readOnly] = true
	go func() {
		for {
			p.mu.Lock()
			if p.stopped || len(p.idle[readOnly]) >= warmShells {
				p.filling[readOnly] = false
				p.mu.Unlock()
				return
			}
			p.mu.Unlock()
			sh, err := p.spawn(readOnly)
			p.mu.Lock()
			if err != nil {
				// The next command tries again, and reports the error.
				p.filling[readOnly] = false
				p.mu.Unlock()
				return
			}
			stopped := p.stopped
			if !stopped {
				p.idle[readOnly] = append(p.idle[readOnly], sh)
			}
			p.mu.Unlock()
			if stopped {
				p.discard(sh)
			}
		}
	}()
}

// discard ends a shell that was given no command.
func (p *pool) discard(sh *shell) {
	sh.close(false)
	killTree(sh)
}

// stop ends the waiting shells, and prevents the start of others.
func (p *pool) stop() {
	p.mu.Lock()
	p.stopped = true
	idle := append(p.idle[false], p.idle[true]...)
	clear(p.idle)
	p.mu.Unlock()
	for _, sh := range idle {
		p.discard(sh)
	}
}

// pause blocks the start of commands until release is called, unless a command runs. In
// that case quiet is false, and release does nothing.
func (p *pool) pause() (release func(), quiet bool) {
	p.starting.Lock()
	if len(p.running()) > 0 {
		p.starting.Unlock()
		return func() {}, false
	}
	return p.starting.Unlock, true
}

// running returns the marks of the commands that run.
func (p *pool) running() map[uint32]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.marks)
}
