package agent

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"testing"
	"time"
)

// hostile is a connection whose other end sends fixed bytes, then nothing.
type hostile struct {
	io.Reader
	closed chan struct{}
}

func (h *hostile) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if err == io.EOF {
		<-h.closed
	}
	return n, err
}
func (h *hostile) Write(p []byte) (int, error) { return len(p), nil }
func (h *hostile) Close() error                { close(h.closed); return nil }

// FuzzClient lets an agent send anything: the Client must neither panic nor
// hang, and what it returns stays within the bounds that it was given.
func FuzzClient(f *testing.F) {
	ready := appendFrame(nil, frame{kind: kindReply, id: 1})
	add := func(b ...[]byte) { f.Add(bytes.Join(b, nil)) }
	var e encoder
	(&ExecResult{Signal: "SIGKILL", Stdout: Output{Head: []byte("x")}}).encode(&e)
	add(appendFrame(nil, frame{kind: kindOutput, id: 2, payload: []byte("\x01x")}), appendMessage(nil, kindReply, 2, e.b))
	e = encoder{}
	(&Entry{Path: "p", Content: []byte("c")}).encode(&e)
	e.b = append(e.b, batchEnd, 1, 0)
	add(appendMessage(nil, kindReply, 2, e.b))
	add(appendFrame(nil, frame{kind: kindFailure, id: 2, payload: []byte{0, 1, 'x'}}))
	add(appendFrame(nil, frame{kind: kindJobEnd, payload: []byte{1, 'x', 0, 0, 0, 0}}))
	f.Fuzz(func(t *testing.T, sent []byte) {
		for i := range 4 {
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
			c, err := Connect(ctx, &hostile{bytes.NewReader(append(bytes.Clone(ready), sent...)), make(chan struct{})}, Boot{})
			if err != nil {
				stop()
				continue
			}
			time.AfterFunc(5*time.Millisecond, func() { c.Close() })
			switch i {
			case 0:
				if r, err := c.Exec(ctx, ExecRequest{HeadTail: 10}, func(Stream, []byte) {}); err == nil && (len(r.Stdout.Head) > 10 || r.ExitCode < 0 || r.ExitCode > 255 || r.Stdout.Dropped < 0) {
					t.Errorf("%+v", r)
				}
			case 1:
				if b, err := c.Collect(ctx, CollectLimits{Entries: 3, FileSize: 100, Total: 200}); err == nil && len(b.Entries) > 3 {
					t.Errorf("%+v", b)
				}
			case 2:
				_, _ = c.Jobs(ctx)
			case 3:
				if rs, err := c.Apply(ctx, []ApplyEntry{{Path: "p"}}); err == nil && (len(rs) != 1 || rs[0].Path != "p") {
					t.Errorf("%+v", rs)
				}
			}
			c.Close()
			stop()
		}
	})
}

// FuzzRequests decodes anything as every request that the agent takes, and
// what was decoded encodes to something that decodes to the same.
func FuzzRequests(f *testing.F) {
	var e encoder
	(&Boot{Env: []string{"a=b"}}).encode(&e)
	f.Add(e.b)
	e = encoder{}
	(&ExecRequest{Command: "true", HeadTail: 5}).encode(&e)
	f.Add(e.b)
	e = encoder{}
	encodeApply(&e, []ApplyEntry{{Path: "p", Content: []byte("x")}})
	f.Add(e.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func(decode func(*decoder) any, encode func(any, *encoder)) {
			d := &decoder{b: b}
			v := decode(d)
			if d.done() != nil {
				return
			}
			var e encoder
			encode(v, &e)
			again := &decoder{b: e.b}
			if w := decode(again); again.done() != nil || !reflect.DeepEqual(v, w) {
				t.Errorf("%+v became %+v", v, w)
			}
		}
		check(func(d *decoder) any { var v Boot; v.decode(d); return v }, func(v any, e *encoder) { b := v.(Boot); b.encode(e) })
		check(func(d *decoder) any { var v ExecRequest; v.decode(d); return v }, func(v any, e *encoder) { r := v.(ExecRequest); r.encode(e) })
		check(func(d *decoder) any { var v ackRequest; v.decode(d); return v }, func(v any, e *encoder) { a := v.(ackRequest); a.encode(e) })
		check(func(d *decoder) any { return decodeApply(d) }, func(v any, e *encoder) { encodeApply(e, v.([]ApplyEntry)) })
		check(func(d *decoder) any { var v killRequest; v.decode(d); return v }, func(v any, e *encoder) { k := v.(killRequest); k.encode(e) })
	})
}

// FuzzFrames reads anything as frames, and writes what it read again.
func FuzzFrames(f *testing.F) {
	f.Add(appendMessage(nil, kindReply, 7, make([]byte, maxPayload+1)))
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		fr := &frameReader{r: bytes.NewReader(b)}
		var again []byte
		for {
			g, err := fr.next()
			if err != nil {
				break
			}
			again = appendFrame(again, g)
		}
		if !bytes.HasPrefix(b, again) {
			t.Error("what was read is not what was sent")
		}
	})
}
