package attacks_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/sandboxtest"
)

// The frames of the agent's protocol, as bytes: an attacker who controls the agent does not
// need our package.
const (
	frameVersion = 1
	frameBoot    = 1
	frameExec    = 2
	frameJobs    = 7 // which the pool asks for as a sign of life
	frameReply   = 32
	frameFailure = 33
	frameOutput  = 34
	frameJobEnd  = 35
	frameLargest = 256 << 10
)

func frame(kind, flags byte, id uint32, payload []byte) []byte {
	b := []byte{frameVersion, kind, flags, 0}
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// serveHostile is an agent in an attacker's hands. It boots as it should, and
// answers a command with the lie that the command's text names.
func serveHostile(in io.Reader, out io.Writer) int {
	head := make([]byte, 12)
	lively := false
	for {
		if _, err := io.ReadFull(in, head); err != nil {
			return 0
		}
		id := binary.BigEndian.Uint32(head[4:])
		body := make([]byte, binary.BigEndian.Uint32(head[8:]))
		if _, err := io.ReadFull(in, body); err != nil {
			return 0
		}
		switch head[1] {
		case frameBoot:
			out.Write(frame(frameReply, 0, id, nil))
		case frameExec:
			n, k := binary.Uvarint(body)
			name := string(body[k : k+int(n)])
			lively = name == "signs of life and no answer"
			lie(out, name, id)
		case frameJobs:
			if lively {
				out.Write(frame(frameReply, 0, id, []byte{0}))
			}
		}
	}
}

// lies are what a hostile agent answers a command with, without end where it
// can.
var lies = []struct {
	name string
	tell func(out io.Writer, id uint32)
}{
	{"garbage", func(out io.Writer, id uint32) { forever(out, bytes.Repeat([]byte("\xffgarbage"), 1000)) }},
	{"another version", func(out io.Writer, id uint32) { forever(out, []byte{2, frameReply, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}) }},
	{"a frame of 4 GB", func(out io.Writer, id uint32) {
		out.Write([]byte{frameVersion, frameReply, 0, 0, 0, 0, 0, byte(id), 0xff, 0xff, 0xff, 0xff})
		forever(out, make([]byte, 64<<10))
	}},
	{"a reply without end", func(out io.Writer, id uint32) { forever(out, frame(frameReply, 1, id, make([]byte, frameLargest))) }},
	{"a reply of nothing without end", func(out io.Writer, id uint32) { forever(out, frame(frameReply, 1, id, nil)) }},
	{"output without end", func(out io.Writer, id uint32) {
		forever(out, frame(frameOutput, 0, id, append([]byte{1}, make([]byte, frameLargest-1)...)))
	}},
	{"output of nothing without end", func(out io.Writer, id uint32) { forever(out, frame(frameOutput, 0, id, []byte{1})) }},
	{"output of no stream", func(out io.Writer, id uint32) { out.Write(frame(frameOutput, 0, id, []byte{9, 9})) }},
	{"an answer that nobody asked for", func(out io.Writer, id uint32) { out.Write(frame(frameReply, 0, id+1000, nil)) }},
	{"a reply of two kinds", func(out io.Writer, id uint32) {
		out.Write(append(frame(frameReply, 1, id, []byte("x")), frame(frameFailure, 0, id, []byte("x"))...))
	}},
	{"a malformed reply", func(out io.Writer, id uint32) { out.Write(frame(frameReply, 0, id, bytes.Repeat([]byte{0xff}, 100))) }},
	{"a malformed failure", func(out io.Writer, id uint32) { out.Write(frame(frameFailure, 0, id, []byte{200, 200, 200})) }},
	{"a request of its own", func(out io.Writer, id uint32) { out.Write(frame(frameExec, 0, id, []byte("\x02id"))) }},
	{"ends of jobs without end", func(out io.Writer, id uint32) {
		forever(out, bytes.Repeat(frame(frameJobEnd, 0, 0, []byte{1, 'x', 0, 0, 0, 0}), 1000))
	}},
	{"its own end", func(out io.Writer, id uint32) { os.Exit(1) }},
}

// forever writes until nobody reads; a host that continues to read would get gigabytes.
func forever(out io.Writer, b []byte) {
	for n := 0; n < 20<<30; n += len(b) {
		if _, err := out.Write(b); err != nil {
			os.Exit(1)
		}
	}
}

func lie(out io.Writer, name string, id uint32) {
	for _, l := range lies {
		if l.name == name {
			l.tell(out, id)
		}
	}
	switch name {
	case "standard error without end":
		forever(os.Stderr, bytes.Repeat([]byte("x\n"), 30<<10))
	case "reading no more":
		for {
			_ = unix.Pause()
		}
	}
	// And everything else is never answered.
}

// mixedRuntime starts hostile sandboxes while owned is set.
type mixedRuntime struct {
	space.Runtime
	hostile space.Runtime
	owned   atomic.Bool
}

func (m *mixedRuntime) Start(ctx context.Context, s space.SandboxSpec) (space.Sandbox, error) {
	if m.owned.Load() {
		return m.hostile.Start(ctx, s)
	}
	return m.Runtime.Start(ctx, s)
}

func newMixedWorld(t *testing.T, change ...func(*sandbox.Options)) (*world, *mixedRuntime) {
	t.Helper()
	m := &mixedRuntime{hostile: hostile.get(t)}
	w := newWorld(t, append(change, func(o *sandbox.Options) {
		rec := o.Runtime.(*sandboxtest.Recorder)
		m.Runtime, rec.Runtime = rec.Runtime, m
	})...)
	return w, m
}

// TestAttackHostileAgent: an attacker who controls the agent can only break the protocol,
// and then loses the sandbox: the caller gets a typed answer, the host holds no more than a
// command's worth of memory, the next command runs in a fresh sandbox, and nobody else
// notices.
func TestAttackHostileAgent(t *testing.T) {
	w, m := newMixedWorld(t) // not in parallel, for it measures the heap
	a, b := w.tenant(map[string]string{"mine": "mine\n"}), w.tenant(nil)
	b.out("true")
	for _, l := range lies {
		m.owned.Store(true)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := a.try(l.name)
		m.owned.Store(false)
		runtime.ReadMemStats(&after)
		if err == nil || fault.CodeOf(err) != fault.Unavailable || !errors.Is(err, space.ErrSandboxEnded) {
			t.Errorf("%s: %+v, %v", l.name, r, err)
		}
		if strings.Contains(fault.PublicOf(err), "protocol") || strings.Contains(fault.PublicOf(err), w.dir) {
			t.Errorf("%s: the caller is told %q", l.name, fault.PublicOf(err))
		}
		// What was allocated, not what is left: 16 MB of output are let pass, and
		// a reply of at most a few.
		if grown := int64(after.TotalAlloc-before.TotalAlloc) >> 20; grown > 200 {
			t.Errorf("%s: the host allocated %d MB", l.name, grown)
		}
		if r := a.sh("cat mine"); r.Stdout.Text != "mine\n" || !r.Restarted {
			t.Errorf("%s: the next command: %+v", l.name, r)
		}
		if err := w.pool.StopMember(noContext(), a.user, a.id); err != nil {
			t.Fatal(err)
		}
	}
	if r := b.sh("echo fine"); r.Stdout.Text != "fine\n" || r.Generation != 1 {
		t.Errorf("another user: %+v", r)
	}
	a.alive()
}

// TestAttackSilentAgent: an agent that never answers, stops reading, or floods its standard
// error delays nobody beyond the command's time, whether the caller waits or not.
func TestAttackSilentAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		leave bool // the caller
	}{
		{"silence", false}, {"silence", true}, {"reading no more", true}, {"standard error without end", false},
		{"signs of life and no answer", false},
	} {
		t.Run(fmt.Sprintf("%s, the caller leaves %v", c.name, c.leave), func(t *testing.T) {
			t.Parallel()
			w, m := newMixedWorld(t, func(o *sandbox.Options) { o.WallTime = 5 * time.Second; o.AnswerTime = 15 * time.Second })
			a := w.tenant(nil)
			m.owned.Store(true)
			ctx := testenv.Context(t)
			try := func(ctx context.Context) error {
				_, err := w.pool.Exec(ctx, a.request(a.user, a.id, c.name))
				return err
			}
			err := error(nil)
			if c.leave {
				// Whoever leaves before the command began has not met the agent yet.
				for patience := time.Second; ctx.Err() == nil; patience *= 2 {
					short, cancel := sandboxtest.Leaving(ctx, patience)
					err = try(short)
					cancel()
					if errors.Is(err, space.ErrSandboxEnded) {
						break
					}
				}
			} else {
				err = try(ctx)
			}
			if err == nil || ctx.Err() != nil {
				t.Errorf("%v; the caller had to give up: %v", err, ctx.Err())
			}
			m.owned.Store(false)
			a.alive()
		})
	}
}
