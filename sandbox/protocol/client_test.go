package protocol

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// fakeAgent is the other end of a Client's connection. Tests write its messages.
type fakeAgent struct {
	t    *testing.T
	conn net.Conn
	fr   *frameReader
}

// next returns the next whole request.
func (a *fakeAgent) next() (kind, uint32, []byte) {
	var body []byte
	for {
		f, err := a.fr.next()
		if err != nil {
			return 0, 0, nil
		}
		body = append(body, f.payload...)
		if !f.more {
			return f.kind, f.id, body
		}
	}
}

func (a *fakeAgent) send(k kind, id uint32, body []byte) { a.raw(appendMessage(nil, k, id, body)) }

func (a *fakeAgent) raw(b []byte) { a.conn.Write(b) } // a Client that hung up is the point of some tests

func (a *fakeAgent) reply(id uint32, encode func(*encoder)) {
	var e encoder
	encode(&e)
	a.send(kindReply, id, e.b)
}

// connectFake returns a booted Client. Its agent then runs f.
func connectFake(t *testing.T, f func(a *fakeAgent)) *Client {
	t.Helper()
	host, guest := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a := &fakeAgent{t: t, conn: guest, fr: &frameReader{r: guest}}
		k, id, body := a.next()
		var b Boot
		d := &decoder{b: body}
		b.decode(d)
		if k != kindBoot || d.done() != nil {
			t.Errorf("no boot but %d", k)
		}
		a.send(kindReply, id, nil)
		f(a)
		io.Copy(io.Discard, guest)
	}()
	ignore := goleak.IgnoreCurrent()
	c, err := Connect(t.Context(), host, Boot{Disk: 1, Env: []string{"A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		guest.Close()
		<-done
		goleak.VerifyNone(t, ignore)
	})
	return c
}

// TestClientAndConn checks that each end receives what the other end sends.
func TestClientAndConn(t *testing.T) {
	want := ExecResult{
		End: Detached, ExitCode: 137, Signal: "SIGKILL", JobID: "3", JobDir: "/run/x", Duration: time.Second, Leftover: 2,
		Stdout: Output{Head: []byte("a"), Tail: []byte("b"), Dropped: 1 << 40, Saved: "/s"}, Stderr: Output{Head: []byte{0xff, 0}},
	}
	big := bytes.Repeat([]byte("0123456789"), 100_000) // several frames
	ended := JobEnd{ID: "2", ExitCode: 1, Signal: "SIGHUP", Duration: 5, TimedOut: true}
	c := connectFake(t, func(a *fakeAgent) {
		conn := NewConn(a.conn, a.conn)
		for {
			id, r, err := conn.Next()
			if err != nil {
				return
			}
			switch r := r.(type) {
			case *ExecRequest:
				if want := (ExecRequest{Command: "x", ReadOnly: true, DetachAfter: 1, WallTime: 2, Grace: 3, HeadTail: 10}); *r != want {
					a.t.Errorf("%+v", r)
				}
				conn.Output(id, Stdout, true, func() []byte { return []byte("one") })
				conn.Output(id, Stderr, true, func() []byte { return []byte("two") })
				conn.ReplyExec(id, want)
			case *CollectLimits:
				if want := (CollectLimits{Entries: DefaultEntries, FileSize: DefaultFileSize, Total: DefaultTotal, After: 8}); *r != want {
					a.t.Errorf("%+v", r)
				}
				b := conn.ReplyBatch(id)
				b.Add(Entry{Path: "z\xff", Mode: space.Symlink, Content: big, Size: 7})
				b.Add(Entry{Path: "a", Deleted: true, Opaque: true, Dir: true, Busy: true, Problem: "p"})
				b.End(9, true)
			case *AckRequest:
				if r.Batch != 9 || !slices.Equal(r.Except, []string{"z"}) {
					a.t.Errorf("%+v", r)
				}
				conn.Reply(id)
			case *ApplyRequest:
				var rs []ApplyResult
				for _, n := range r.Entries {
					rs = append(rs, ApplyResult{Path: n.Path, Dirty: n.Force})
				}
				conn.ReplyApply(id, rs)
			case *JobsRequest:
				conn.ReplyJobs(id, []Job{{ID: "1", Command: strings.Repeat("x", maxJobCommand+1), Started: time.Unix(5, 0)}})
			case *KillRequest:
				if r.JobID != "1" || r.Signal != "TERM" {
					a.t.Errorf("%+v", r)
				}
				conn.Fail(id, ErrNoJob)
			case *ShutdownRequest:
				conn.JobEnded(ended)
				conn.Fail(id, errors.New("\x1b[1m"))
			}
		}
	})
	ends := make(chan JobEnd, 1)
	c.OnJobEnd(func(e JobEnd) { ends <- e })
	ctx := t.Context()
	var live strings.Builder
	got, err := c.Exec(ctx, ExecRequest{Command: "x", ReadOnly: true, DetachAfter: 1, WallTime: 2, Grace: 3, HeadTail: 10}, func(s Stream, p []byte) {
		live.WriteString(string('0'+rune(s)) + string(p))
	})
	if err != nil || !reflect.DeepEqual(got, want) || live.String() != "1one2two" {
		t.Errorf("%+v %v %q", got, err, live.String())
	}
	b, err := c.Collect(ctx, CollectLimits{After: 8})
	wantBatch := Batch{ID: 9, More: true, Entries: []Entry{
		{Path: "a", Deleted: true, Opaque: true, Dir: true, Busy: true, Problem: "p"},
		{Path: "z\xff", Mode: space.Symlink, Content: big, Size: 7},
	}}
	if err != nil || !reflect.DeepEqual(b, wantBatch) {
		t.Errorf("%v %v", len(b.Entries), err)
	}
	if err := c.Ack(ctx, 9, []string{"z"}); err != nil {
		t.Error(err)
	}
	rs, err := c.Apply(ctx, []ApplyEntry{{Path: "1", Content: make([]byte, 9<<20)}, {Path: "2", Force: true}})
	if err != nil || !reflect.DeepEqual(rs, []ApplyResult{{Path: "1"}, {Path: "2", Dirty: true}}) {
		t.Errorf("%+v %v", rs, err)
	}
	jobs, err := c.Jobs(ctx)
	if err != nil || len(jobs) != 1 || len(jobs[0].Command) != maxJobCommand || !jobs[0].Started.Equal(time.Unix(5, 0)) {
		t.Errorf("%+v %v", jobs, err)
	}
	if err := c.Kill(ctx, "1", "TERM"); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
	if err := c.Shutdown(ctx, 0); err == nil || errors.Is(err, ErrProtocol) || strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
	if e := testenv.Receive(t, "the end of the job", ends); e != ended {
		t.Errorf("%+v", e)
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
	c.Close()
	<-c.Done()
	if c.Err() != nil {
		t.Error("closing counts as an error")
	}
	if _, err := c.Jobs(ctx); err == nil {
		t.Error("a call on a closed connection succeeded")
	}
}

// If a hostile agent sends malformed messages, the call fails with ErrProtocol, the connection
// is closed, and no goroutine is left.
func TestClientRefusesAHostileAgent(t *testing.T) {
	reply := func(body string) func(*fakeAgent, uint32) {
		return func(a *fakeAgent, id uint32) { a.send(kindReply, id, []byte(body)) }
	}
	endless := func(k kind, payload []byte, more bool) func(*fakeAgent, uint32) {
		return func(a *fakeAgent, id uint32) {
			b := appendFrame(nil, frame{kind: k, id: id, more: more, payload: payload})
			for {
				if _, err := a.conn.Write(b); err != nil {
					return
				}
			}
		}
	}
	for name, attack := range map[string]func(a *fakeAgent, id uint32){
		"hangs up":                func(a *fakeAgent, id uint32) { a.conn.Close() },
		"ends inside a frame":     func(a *fakeAgent, id uint32) { a.raw([]byte{1, 32, 0}); a.conn.Close() },
		"another version":         func(a *fakeAgent, id uint32) { a.raw(append([]byte{9, 32}, make([]byte, 10)...)) },
		"unknown flags":           func(a *fakeAgent, id uint32) { a.raw(append([]byte{1, 32, 6}, make([]byte, 9)...)) },
		"a frame of 4 GB":         func(a *fakeAgent, id uint32) { a.raw([]byte{1, 32, 0, 0, 0, 0, 0, 2, 255, 255, 255, 255}) },
		"a frame over the limit":  func(a *fakeAgent, id uint32) { a.raw([]byte{1, 32, 0, 0, 0, 0, 0, 2, 0, 4, 0, 1}) },
		"unknown call":            func(a *fakeAgent, id uint32) { a.send(kindReply, id+1, nil) },
		"answers the boot again":  func(a *fakeAgent, id uint32) { a.send(kindReply, 1, nil) },
		"a request's kind":        func(a *fakeAgent, id uint32) { a.send(kindExec, id, nil) },
		"an unknown kind":         func(a *fakeAgent, id uint32) { a.send(200, id, nil) },
		"an empty reply":          reply(""),
		"an unknown end":          reply("\x09"),
		"bytes after the end":     reply(strings.Repeat("\x00", 200)),
		"a huge length":           reply("\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		"output of stream 3":      func(a *fakeAgent, id uint32) { a.send(kindOutput, id, []byte{3, 1}) },
		"output without a stream": func(a *fakeAgent, id uint32) { a.send(kindOutput, id, nil) },
		"output of another call":  func(a *fakeAgent, id uint32) { a.send(kindOutput, id+7, []byte{1, 1}) },
		"endless output":          endless(kindOutput, append([]byte{1}, make([]byte, maxPayload-1)...), false),
		"endless empty output":    endless(kindOutput, []byte{1}, false),
		"an endless reply":        endless(kindReply, make([]byte, maxPayload), true),
		"an endless empty reply":  endless(kindReply, nil, true),
		"an endless failure":      endless(kindFailure, make([]byte, maxPayload), true),
		"a reply of two kinds": func(a *fakeAgent, id uint32) {
			a.raw(appendFrame(nil, frame{kind: kindReply, id: id, more: true, payload: []byte{0}}))
			a.send(kindFailure, id, nil)
		},
		"an unknown failure":         func(a *fakeAgent, id uint32) { a.send(kindFailure, id, []byte{200, 1, 0}) },
		"a job's end with an id":     func(a *fakeAgent, id uint32) { a.send(kindJobEnd, id, []byte{0, 0, 0, 0, 0}) },
		"a malformed end of a job":   func(a *fakeAgent, id uint32) { a.send(kindJobEnd, 0, []byte{9}) },
		"endless ends of jobs":       endless(kindJobEnd, []byte{0, 0, 0, 0, 0}, false),
		"more ends than calls exist": endless(kindJobEnd, []byte{1, 'x', 0, 0, 0, 0}, false),
	} {
		t.Run(name, func(t *testing.T) {
			c := connectFake(t, func(a *fakeAgent) {
				if _, id, _ := a.next(); id != 0 {
					attack(a, id)
				}
			})
			block := make(chan struct{})
			c.OnJobEnd(func(JobEnd) { <-block })
			defer close(block)
			_, err := c.Exec(t.Context(), ExecRequest{Command: "x", HeadTail: 1000}, func(Stream, []byte) {})
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("%v", err)
			}
			<-c.Done()
			if !errors.Is(c.Err(), ErrProtocol) {
				t.Errorf("%v", c.Err())
			}
		})
	}
}

func TestClientBoundsABatch(t *testing.T) {
	for name, body := range map[string]func(e *encoder){
		"more entries": func(e *encoder) {
			for range 3 {
				(&Entry{Path: "p"}).encode(e)
			}
		},
		"more content": func(e *encoder) {
			for range 2 {
				(&Entry{Path: "p", Content: make([]byte, 7000)}).encode(e)
			}
		},
		"a larger file": func(e *encoder) { (&Entry{Path: "p", Content: make([]byte, 9000)}).encode(e) },
		"a long path":   func(e *encoder) { (&Entry{Path: strings.Repeat("p", 9000)}).encode(e) },
		"unknown mode":  func(e *encoder) { (&Entry{Path: "p", Mode: 7}).encode(e) },
		"no end":        func(e *encoder) { (&Entry{Path: "p"}).encode(e) },
	} {
		t.Run(name, func(t *testing.T) {
			c := connectFake(t, func(a *fakeAgent) {
				_, id, _ := a.next()
				a.reply(id, func(e *encoder) {
					body(e)
					if name != "no end" {
						e.byte(batchEnd)
						e.uint(1)
						e.bool(false)
					}
				})
			})
			if _, err := c.Collect(t.Context(), CollectLimits{Entries: 2, FileSize: 8000, Total: 10_000}); !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
		})
	}
}

func TestClientAnswersOfOthersAreRefused(t *testing.T) {
	for name, rs := range map[string][]ApplyResult{"another path": {{Path: "q"}}, "none": nil, "two": {{Path: "p"}, {Path: "p"}}} {
		c := connectFake(t, func(a *fakeAgent) {
			_, id, _ := a.next()
			a.reply(id, func(e *encoder) { encodeApplied(e, rs) })
		})
		if _, err := c.Apply(t.Context(), []ApplyEntry{{Path: "p"}}); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientCancel(t *testing.T) {
	c := connectFake(t, func(a *fakeAgent) {
		_, id, _ := a.next()
		a.send(kindOutput, id, []byte("\x01x"))
		if k, cancelled, _ := a.next(); k != kindCancel || cancelled != id {
			a.t.Errorf("%d %d", k, cancelled)
		}
		a.reply(id, (&ExecResult{End: Canceled}).encode)
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Exec(ctx, ExecRequest{}, func(Stream, []byte) { cancel() })
	if err != nil || r.End != Canceled {
		t.Errorf("%+v %v", r, err)
	}
}

// The Client drops the reply to an abandoned call. Other calls continue.
func TestClientAbandonedCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := connectFake(t, func(a *fakeAgent) {
		_, first, _ := a.next()
		cancel()
		_, second, _ := a.next()
		a.reply(first, func(e *encoder) { e.uint(0) })
		a.reply(second, func(e *encoder) { e.uint(0) })
	})
	if _, err := c.Jobs(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := c.Jobs(t.Context()); err != nil {
		t.Errorf("%v", err)
	}
}

// If the agent stops reading, calls still return when their contexts end.
func TestClientAgentThatDoesNotRead(t *testing.T) {
	host, guest := net.Pipe()
	defer guest.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		guest.Read(make([]byte, 1))
		cancel()
	}()
	if _, err := Connect(ctx, host, Boot{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestClientRefusesALongCommand(t *testing.T) {
	c := connectFake(t, func(*fakeAgent) {})
	if _, err := c.Exec(t.Context(), ExecRequest{Command: strings.Repeat("x", maxCommand+1)}, nil); fault.CodeOf(err) != fault.TooLarge {
		t.Error(err)
	}
	if _, err := c.Exec(t.Context(), ExecRequest{Command: "a\x00b"}, nil); fault.CodeOf(err) != fault.Invalid {
		t.Error(err)
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
}
