package gvisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
	"satchel/sandbox/sandboxtest"
)

// lifeChecks are about how sandboxes begin and are stopped.
var lifeChecks = []runtimeCheck{
	{name: "process 1 runs", run: func(e *runtimeExercise) {
		s := e.start(e.runtime(), e.spec())
		e.alive(s, "the sandbox")
		select {
		case <-s.Done():
			e.Error("it is done while it runs")
		default:
		}
		if err := s.Err(); err != nil {
			e.Errorf("Err while it runs: %v", err)
		}
	}},
	{name: "an id is 64 hexadecimal digits", run: func(e *runtimeExercise) {
		r := e.runtime()
		for _, id := range []space.SandboxID{
			"user1", "user10", "", "../" + oci.NewID()[3:], oci.NewID() + "0", oci.NewID()[1:],
			"A" + oci.NewID()[1:], oci.NewID()[:63] + "/", oci.NewID()[:63] + "\n", oci.NewID()[:63] + "g",
		} {
			if _, err := r.Start(e.ctx, space.SandboxSpec{ID: id, Checkout: newCheckout(e.T)}); fault.CodeOf(err) != fault.Invalid {
				e.Errorf("id %q: got %v, want a fault.Invalid", id, err)
			}
		}
	}},
	{name: "ids are matched whole", run: func(e *runtimeExercise) {
		r, one, two := e.runtime(), e.spec(), e.spec()
		two.ID = one.ID[:63] + space.SandboxID(strconv.FormatInt(int64((one.ID[63]%10)+1)%10, 10))
		if two.ID == one.ID {
			two.ID = one.ID[:63] + "f"
		}
		e.note(two.ID)
		a, b := e.start(r, one), e.start(r, two)
		e.run(a, "echo one > /tmp/who 2>/dev/null || { mount -t tmpfs none /tmp && echo one > /tmp/who; }")
		if got := e.run(b, "cat /tmp/who 2>&1"); got == "one" {
			e.Error("the second sees the first one's file")
		}
		e.stop(a)
		e.alive(b, "the second, when the first was stopped,")
	}},
	{name: "an id runs once", run: func(e *runtimeExercise) {
		r, spec := e.runtime(), e.spec()
		s := e.start(r, spec)
		if _, err := r.Start(e.ctx, space.SandboxSpec{ID: spec.ID, Checkout: newCheckout(e.T)}); err == nil {
			e.Fatal("the same id started twice")
		}
		e.alive(s, "the first one")
		e.stop(s)
		e.gone(spec.ID)
		e.alive(e.start(r, spec), "the same id after its end")
	}},
	{name: "an id that many start at once runs once", run: func(e *runtimeExercise) {
		r, spec := e.runtime(), e.spec()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []space.Sandbox
		for range 8 {
			wg.Go(func() {
				if s, err := r.Start(e.ctx, spec); err == nil {
					mu.Lock()
					won = append(won, s)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			e.Fatalf("%d of 8 starts of one id succeeded", len(won))
		}
		e.alive(won[0], "the one that started")
		e.stop(won[0])
		e.gone(spec.ID)
	}},
	{name: "many start at once", alone: true, run: func(e *runtimeExercise) {
		r := e.runtime()
		e.stop(e.start(r, e.spec())) // so that what stays with the runtime is there
		files, procs := openFiles(), below(os.Getpid())
		const n = 12
		sandboxes := make([]space.Sandbox, n)
		var wg sync.WaitGroup
		for i := range n {
			spec := e.spec()
			wg.Go(func() {
				s, err := r.Start(e.ctx, spec)
				if err != nil {
					e.Errorf("starting: %v", err)
					return
				}
				sandboxes[i] = s
				if got, err := tryBash(s, fmt.Sprintf("echo %d", i)); err != nil || got != strconv.Itoa(i) {
					e.Errorf("sandbox %d says %q (%v)", i, got, err)
				}
			})
		}
		wg.Wait()
		for _, s := range sandboxes {
			if s != nil {
				wg.Go(func() {
					if err := s.Stop(context.Background()); err != nil {
						e.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if got := openFiles(); got > files {
			e.Errorf("%d files are open, %d were before", got, files)
		}
		if got := below(os.Getpid()); got != procs {
			e.Errorf("%d processes below this one, %d before", got, procs)
		}
		for _, id := range e.started() {
			e.gone(id)
		}
	}},
	{name: "stop is complete and may be repeated", run: func(e *runtimeExercise) {
		r, spec := e.runtime(), e.spec()
		s := e.start(r, spec)
		e.run(s, "setsid sleep 1000 >/dev/null 2>&1 & disown")
		e.stop(s)
		e.gone(spec.ID)
		e.stop(s)
		if err := s.Err(); err != nil {
			e.Errorf("Err after Stop: %v", err)
		}
		if _, err := s.Conn().Read(make([]byte, 1)); err == nil {
			e.Error("a stopped sandbox can be read from")
		}
	}},
	{name: "a canceled start leaves nothing", alone: true, run: func(e *runtimeExercise) {
		r := e.runtime()
		e.stop(e.start(r, e.spec()))
		procs := below(os.Getpid())
		for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 60 * time.Millisecond} {
			spec := e.spec()
			ctx, cancel := sandboxtest.Leaving(e.ctx, after)
			s, err := r.Start(ctx, spec)
			cancel()
			if err == nil { // it was quicker
				e.stop(s)
			} else if !errors.Is(err, context.DeadlineExceeded) {
				e.Errorf("canceled after %v: %v", after, err)
			}
			e.gone(spec.ID)
			if got := below(os.Getpid()); got != procs {
				e.Errorf("canceled after %v: %d processes, %d before", after, got, procs)
			}
		}
	}},
	{name: "a failed start leaves nothing", run: func(e *runtimeExercise) {
		r, spec := e.runtime(func(o *gvisor.Options) { o.Args = []string{"/no/such/program"} }), e.spec()
		if _, err := r.Start(e.ctx, spec); fault.CodeOf(err) != fault.Unavailable {
			e.Errorf("got %v, want a fault.Unavailable", err)
		}
		e.gone(spec.ID)
	}},
	{name: "close stops everything", alone: true, run: func(e *runtimeExercise) {
		procs := below(os.Getpid())
		r := e.runtime()
		a, b := e.start(r, e.spec()), e.start(r, e.spec())
		if err := r.Close(); err != nil {
			e.Fatal(err)
		}
		e.ended(a)
		e.ended(b)
		for _, id := range e.started() {
			e.gone(id)
		}
		if got := below(os.Getpid()); got != procs {
			e.Errorf("%d processes are left, %d before", got, procs)
		}
		if _, err := r.Start(e.ctx, e.spec()); err == nil {
			e.Error("a closed runtime starts sandboxes")
		}
	}},
}

// endChecks are about sandboxes that end by themselves.
var endChecks = []runtimeCheck{
	{name: "process 1 exits", run: func(e *runtimeExercise) {
		r, spec := e.runtime(), e.spec()
		s := e.start(r, spec)
		fmt.Fprintln(s.Conn(), "!exit")
		e.ended(s)
		if err := s.Err(); err == nil || errors.Is(err, space.ErrOutOfMemory) {
			e.Errorf("Err is %v, want that it ended by itself", err)
		}
		if _, err := s.Conn().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			e.Errorf("reading from it: %v, want EOF", err)
		}
		e.gone(spec.ID)
		e.stop(s)
	}},
	{name: "stats", alone: true, run: func(e *runtimeExercise) {
		s := e.start(e.runtime(), e.spec())
		e.alive(s, "the sandbox")
		stats := func() space.SandboxStats {
			st, err := s.Stats(e.ctx)
			if err != nil {
				e.Fatal(err)
			}
			return st
		}
		before := stats()
		e.run(s, "!eat 64")
		after := stats()
		if before.Memory <= 0 || before.Processes < 1 {
			e.Errorf("before: %+v", before)
		}
		// Neither missed nor counted twice. What the runtime itself holds goes up and
		// down meanwhile, by megabytes, as its garbage is collected.
		near := func(grown int64) bool { return grown > 32<<20 && grown < 96<<20 }
		if grown := after.Memory - before.Memory; !near(grown) {
			e.Errorf("64 MiB more in use show as %d bytes more", grown)
		}
		e.run(s, "mount -t tmpfs none /tmp && head -c 64M /dev/zero > /tmp/f")
		tmp := stats()
		if grown := tmp.Memory - after.Memory; !near(grown) {
			e.Errorf("64 MiB in a tmpfs show as %d bytes more", grown)
		}
	}},
}
