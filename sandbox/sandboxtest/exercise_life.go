package sandboxtest

import (
	"context"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// lifeChecks are about sandboxes: their start, their end and what follows.
var lifeChecks = []check{
	{name: "a job that writes until the end is over before its files are removed", run: func(e *exercise) {
		job := e.request("while :; do mkdir -p d; : > d/$RANDOM$RANDOM; : > wrote; done")
		job.Background = true
		e.do(job)
		for e.exec("test -e wrote").ExitCode != 0 {
		}
	}},
	{name: "concurrent first commands share one start", run: func(e *exercise) {
		var all []<-chan outcome
		for range 8 {
			all = append(all, e.start(e.request("echo x")))
		}
		for _, c := range all {
			if o := e.wait(c); o.err != nil || o.res.Generation != 1 || o.res.Restarted {
				e.Errorf("%+v, %v", o.res, o.err)
			}
		}
		if n := len(e.Runtime.Started()); n != 1 {
			e.Errorf("%d sandboxes were started", n)
		}
	}},
	{name: "an idle sandbox stops and wakes with a new generation", options: func(o *sandbox.Options) {
		o.IdleStop, o.SweepEvery = 50*time.Millisecond, 10*time.Millisecond
	}, run: func(e *exercise) {
		if r := e.sh("echo kept > kept"); !r.Cold || r.Generation != 1 || r.Restarted {
			e.Errorf("the first: %+v", r)
		}
		e.gone(0)
		r := e.sh("cat kept")
		if !r.Cold || r.Generation != 2 || !r.Restarted || r.Stdout.Text != "kept\n" {
			e.Errorf("after the wake: %+v", r)
		}
		e.wantNote(r, "are gone")
	}},
	{name: "the death of a sandbox during a command is reported, and the next command works", run: func(e *exercise) {
		e.sh("echo safe > safe")
		done := e.started(e.request("echo lost > lost; echo started; sleep 300"))
		e.Runtime.Started()[0].Stop(e.ctx)
		o := e.wait(done)
		if fault.CodeOf(o.err) != fault.Unavailable {
			e.Errorf("the command: %+v, %v", o.res, o.err)
		}
		r := e.sh("cat safe")
		if r.Generation != 2 || !r.Restarted || r.Stdout.Text != "safe\n" {
			e.Errorf("the next: %+v", r)
		}
	}},
	{name: "a sandbox that died while nobody looked is replaced", run: func(e *exercise) {
		e.sh("echo safe > safe")
		e.Runtime.Started()[0].Stop(e.ctx)
		r := e.sh("cat safe")
		if r.Generation != 2 || !r.Restarted || r.Stdout.Text != "safe\n" {
			e.Errorf("%+v", r)
		}
	}},
	{name: "closing gives commands their grace and commits what they did", real: true, run: func(e *exercise) {
		done := e.started(e.request("trap 'echo saved > saved; exit 0' TERM; echo started; while :; do sleep 0.02; done"))
		if err := e.Pool.Close(e.ctx); err != nil {
			e.Error(err)
		}
		o := e.wait(done)
		if o.err != nil || o.res.End != protocol.Shutdown && o.res.End != protocol.Exited {
			e.Errorf("the command: %+v, %v", o.res, o.err)
		}
		e.wantFile("saved", &Entry{Content: "saved\n"})
		if _, err := e.Pool.Exec(e.ctx, e.request("true")); fault.CodeOf(err) != fault.Unavailable {
			e.Errorf("after Close: %v", err)
		}
		if n := e.Runtime.Running(); n != 0 {
			e.Errorf("%d sandboxes are left", n)
		}
		if n := e.Store.Seeds(); n != 0 {
			e.Errorf("%d seeds are left", n)
		}
	}},
	{name: "closing commits what a job did, with the job's comment", run: func(e *exercise) {
		r := e.request("echo one > one; sleep 300")
		r.Background, r.Comment = true, "The job's own comment"
		e.do(r)
		look := e.request("test -s one")
		for look.ReadOnly = true; e.do(look).ExitCode != 0; {
		}
		if err := e.Pool.Close(e.ctx); err != nil {
			e.Error(err)
		}
		e.wantFile("one", &Entry{Content: "one\n"})
		if log := e.Store.Log(e.space); len(log) != 1 || log[0].Message != r.Comment {
			e.Errorf("%+v", log)
		}
	}},
	{name: "closing in a hurry kills", real: true, run: func(e *exercise) {
		done := e.started(e.request("trap '' TERM; echo started; while :; do sleep 0.02; done"))
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		if err := e.Pool.Close(ctx); err == nil {
			e.Error("Close says that it had the time")
		}
		e.wait(done)
		if n := e.Runtime.Running(); n != 0 {
			e.Errorf("%d sandboxes are left", n)
		}
	}},
	{name: "a user's sandboxes can be stopped apart from others", run: func(e *exercise) {
		other := *e
		other.user = "u_two"
		e.sh("echo 1 > one")
		other.sh("echo 2 > two")
		if err := e.Pool.StopUser(e.ctx, e.user); err != nil {
			e.Fatal(err)
		}
		if n := e.Runtime.Running(); n != 1 {
			e.Errorf("%d sandboxes run", n)
		}
		if r := e.sh("cat one two"); r.Generation != 2 || r.Stdout.Text != "1\n2\n" {
			e.Errorf("%+v", r)
		}
		if r := other.sh("true"); r.Generation != 1 {
			e.Errorf("the other: %+v", r)
		}
		if err := e.Pool.StopSpace(e.ctx, e.space); err != nil || e.Runtime.Running() != 0 {
			e.Errorf("after StopSpace %d run, %v", e.Runtime.Running(), err)
		}
	}},
	{name: "too many changes of others restart the sandbox", options: func(o *sandbox.Options) {
		o.MaxApplyFiles = 2
	}, run: func(e *exercise) {
		e.sh("true")
		e.Store.Put(e.space, map[space.Path]*Entry{"1": {Content: "1"}, "2": {Content: "2"}, "3": {Content: "3"}})
		r := e.sh("cat 1 2 3")
		if r.Stdout.Text != "123" || r.Generation != 2 || !r.Restarted {
			e.Errorf("%+v", r)
		}
		e.wantNote(r, "many files")
	}},
}

// gone waits for the end of the nth sandbox that was started.
func (e *exercise) gone(n int) {
	e.Helper()
	select {
	case <-e.Runtime.Started()[n].Done():
	case <-e.ctx.Done():
		e.Fatal("the sandbox never ended")
	}
}
