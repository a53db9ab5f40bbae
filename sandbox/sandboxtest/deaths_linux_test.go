package sandboxtest_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// deaths are the ways in which a sandbox can go under a running command.
var deaths = []struct {
	name   string
	kill   func(*cell)
	memory bool
}{
	{"kill -9 of the sentry", func(c *cell) { c.signal("runsc-sandbox", unix.SIGKILL) }, false},
	{"kill -9 of the gofer", func(c *cell) { c.signal("runsc-gofer", unix.SIGKILL) }, false},
	{"kill -9 of the runtime child", func(c *cell) {
		pid, err := strconv.Atoi(c.child())
		if err != nil {
			c.t.Fatal(err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			c.t.Fatal(err)
		}
	}, false},
	{"the end of the agent", func(c *cell) { // it ends when nobody speaks to it any more
		all := c.Runtime.Started()
		all[len(all)-1].Conn().Close()
	}, false},
	{"out of memory", nil, true},
}

// takeMemory takes 2 GiB at once, where a pipe into tail takes
// ten times as long.
const takeMemory = `python3 -c 'b"x" * (2 << 30)'`

// TestDeathUnderACommandOverGVisor: whatever part dies, the answer has no exit
// code, says what is gone and what is safe, and the next command works in a new
// sandbox that says so too.
func TestDeathUnderACommandOverGVisor(t *testing.T) {
	t.Parallel()
	for _, how := range boundings() {
		for _, d := range deaths {
			t.Run(how.name+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				c := newCell(t, func(o *sandbox.Options) {
					o.Limits = sandbox.DefaultLimits()
					o.Limits.Memory = 192 << 20
				}, how.gvisor)
				c.must("echo safe > safe; echo x > /tmp/x")
				command := "echo lost > lost; (sleep 300 &); echo started; sleep 300"
				if d.memory {
					command = "echo lost > lost; " + takeMemory
				}
				var o outcome
				if d.memory {
					o.res, o.err = c.exec(c.request(command))
				} else {
					done := c.begun(c.request(command))
					d.kill(c)
					o = <-done
				}
				if !errors.Is(o.err, space.ErrSandboxEnded) || errors.Is(o.err, space.ErrOutOfMemory) != d.memory || fault.CodeOf(o.err) != fault.Unavailable {
					t.Errorf("%+v, %v", o.res, o.err)
				}
				for _, text := range []string{"changes are lost", "background processes and /tmp", "committed is safe", "next command starts a fresh sandbox"} {
					if !strings.Contains(fault.PublicOf(o.err), text) {
						t.Errorf("%q does not say %q", fault.PublicOf(o.err), text)
					}
				}
				r := c.must("cat safe; ls lost /tmp/x 2>/dev/null")
				if r.Generation != 2 || !r.Restarted || r.Stdout.Text != "safe\n" || !says(r, "its earlier background processes, jobs and /tmp are gone") {
					t.Errorf("the next: %+v", r)
				}
				if n := len(c.processes("runsc-sandbox")); n != 1 {
					t.Errorf("%d sentries run", n)
				}
			})
		}
	}
}

// dying kills the sandbox when its changes are about to be collected.
type dying struct {
	sandbox.Agent
	kill func()
}

func (d dying) Collect(ctx context.Context, l protocol.CollectLimits) (protocol.Batch, error) {
	d.kill()
	return d.Agent.Collect(ctx, l)
}

// TestDeathBeforeTheSaveOverGVisor: the command ended well and its sandbox died
// before its changes were committed. Its exit code alone would be a lie.
func TestDeathBeforeTheSaveOverGVisor(t *testing.T) {
	t.Parallel()
	var c *cell
	armed := false
	c = newCell(t, func(o *sandbox.Options) {
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, b protocol.Boot) (sandbox.Agent, error) {
			a, err := protocol.Connect(ctx, conn, b)
			return dying{a, func() {
				if armed {
					armed = false
					c.signal("runsc-sandbox", unix.SIGKILL)
				}
			}}, err
		}
	}, nil)
	c.must("echo safe > safe")
	armed = true
	r := c.must("echo lost > lost")
	if r.NotSaved == nil || !errors.Is(r.NotSaved, space.ErrSandboxEnded) || len(r.Commits) != 0 {
		t.Errorf("%+v", r)
	}
	if r := c.must("ls"); r.Stdout.Text != "docs\nf\nsafe\n" || !r.Restarted {
		t.Errorf("the next: %+v", r)
	}
}
