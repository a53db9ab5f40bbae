package protocol

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"sync"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

// hostile is a connection whose other end answers the first request like an agent, and the
// second with fixed bytes, and then ends. It sends an answer only after the request, so that
// each run is the same.
type hostile struct {
	sent   io.Reader
	heard  chan struct{} // of a request
	begun  bool
	closed chan struct{}
	once   sync.Once
}

func newHostile(sent []byte) *hostile {
	return &hostile{
		sent:  io.MultiReader(bytes.NewReader(appendFrame(nil, frame{kind: kindReply, id: 1})), &afterwards{r: bytes.NewReader(sent)}),
		heard: make(chan struct{}, 100), closed: make(chan struct{}),
	}
}

// afterwards returns errPause at the first read, and then reads from r.
type afterwards struct {
	r       io.Reader
	stopped bool
}

func (a *afterwards) Read(p []byte) (int, error) {
	if !a.stopped {
		a.stopped = true
		return 0, errPause
	}
	return a.r.Read(p)
}

var errPause = errors.New("not yet")

func (h *hostile) wait() bool {
	select {
	case <-h.heard:
		return true
	case <-h.closed:
		return false
	}
}

func (h *hostile) Read(p []byte) (int, error) {
	if !h.begun {
		if h.begun = true; !h.wait() {
			return 0, io.EOF
		}
	}
	n, err := h.sent.Read(p)
	if err == errPause {
		if !h.wait() {
			return 0, io.EOF
		}
		n, err = h.sent.Read(p)
	}
	return n, err
}

func (h *hostile) Write(p []byte) (int, error) {
	select {
	case h.heard <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (h *hostile) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// FuzzClient lets an agent send any bytes. The Client must not panic or hang, and its results
// must keep to their limits.
func FuzzClient(f *testing.F) {
	add := func(call int, b ...[]byte) { f.Add(call, bytes.Join(b, nil)) }
	var e encoder
	(&ExecResult{Signal: "SIGKILL", Stdout: Output{Head: []byte("x")}}).encode(&e)
	add(0, appendFrame(nil, frame{kind: kindOutput, id: 2, payload: []byte("\x01x")}), appendMessage(nil, kindReply, 2, e.b))
	e = encoder{}
	(&Entry{Path: "p", Content: []byte("c")}).encode(&e)
	e.b = append(e.b, batchEnd, 1, 0)
	add(1, appendMessage(nil, kindReply, 2, e.b))
	add(1, appendFrame(nil, frame{kind: kindReply, id: 2, more: true, payload: e.b[:3]}), appendFrame(nil, frame{kind: kindReply, id: 2, payload: e.b[3:]}))
	e = encoder{}
	e.uint(1)
	(&Job{ID: "1", Command: "true", ReadOnly: true}).encode(&e)
	add(2, appendMessage(nil, kindReply, 2, e.b))
	e = encoder{}
	encodeApplied(&e, []ApplyResult{{Path: "p", Dirty: true, Problem: "full"}})
	add(3, appendMessage(nil, kindReply, 2, e.b))
	add(4, appendFrame(nil, frame{kind: kindFailure, id: 2, payload: []byte{0, 1, 'x'}}))
	add(0, appendFrame(nil, frame{kind: kindJobEnd, payload: []byte{1, 'x', 0, 0, 0, 0}}))
	f.Fuzz(func(t *testing.T, call int, sent []byte) {
		ctx := testenv.Context(t)
		c, err := Connect(ctx, newHostile(sent), Boot{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		switch uint(call) % 6 {
		case 0:
			live := 0
			r, err := c.Exec(ctx, ExecRequest{HeadTail: 10}, func(s Stream, p []byte) { live += len(p) })
			if err == nil && (len(r.Stdout.Head) > 10 || len(r.Stderr.Tail) > 10 || r.End > Shutdown || r.ExitCode < 0 || r.ExitCode > 255 || r.Stdout.Dropped < 0) || live > len(sent) {
				t.Errorf("%+v, %d", r, live)
			}
		case 1:
			b, err := c.Collect(ctx, CollectLimits{Entries: 3, FileSize: 100, Total: 200})
			total := 0
			for _, n := range b.Entries {
				total += len(n.Content)
				if n.Mode > space.Symlink || n.Size < 0 || len(n.Path) > maxWirePath {
					t.Errorf("%+v", n)
				}
			}
			if err == nil && (len(b.Entries) > 3 || total > 200) {
				t.Errorf("%+v", b)
			}
		case 2:
			if jobs, err := c.Jobs(ctx); err == nil && len(jobs) > len(sent) {
				t.Errorf("%d jobs", len(jobs))
			}
		case 3:
			if rs, err := c.Apply(ctx, []ApplyEntry{{Path: "p"}}); err == nil && (len(rs) != 1 || rs[0].Path != "p") {
				t.Errorf("%+v", rs)
			}
		case 4:
			_ = c.Kill(ctx, "1", "TERM")
		}
		if ctx.Err() != nil {
			t.Error("it hangs")
		}
	})
}

// FuzzHost lets a host send any bytes. The agent's reader must not panic, or keep more than one
// request may have.
func FuzzHost(f *testing.F) {
	f.Add(appendMessage(nil, kindBoot, 1, make([]byte, 20)))
	f.Add(appendMessage(nil, kindApply, 7, make([]byte, maxPayload+9)))
	f.Add(bytes.Repeat(appendFrame(nil, frame{kind: kindExec, id: 5, more: true, payload: []byte("abc")}), 5))
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := newRequestReader(bytes.NewReader(sent))
		r.most = 1000
		for {
			_, _, body, err := r.next()
			if r.held > r.most || len(body) > r.most {
				t.Fatalf("%d and %d bytes are held", r.held, len(body))
			}
			if err != nil {
				return
			}
		}
	})
}

// FuzzRequests decodes any bytes as each kind of request. A decoded request must stay the same
// when it is encoded and decoded again.
func FuzzRequests(f *testing.F) {
	var e encoder
	(&Boot{Env: []string{"a=b"}}).encode(&e)
	f.Add(e.b)
	e = encoder{}
	(&ExecRequest{Command: "true", HeadTail: 5}).encode(&e)
	f.Add(e.b)
	e = encoder{}
	(&ApplyRequest{[]ApplyEntry{{Path: "p", Content: []byte("x")}}}).encode(&e)
	f.Add(e.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		for k := kindBoot; k <= kindShutdown; k++ {
			r := newRequest(k)
			d := &decoder{b: b}
			if r.decode(d); d.done() != nil {
				continue
			}
			var e encoder
			r.encode(&e)
			again, d := newRequest(k), &decoder{b: e.b}
			if again.decode(d); d.done() != nil || !reflect.DeepEqual(r, again) {
				t.Errorf("%+v became %+v", r, again)
			}
		}
	})
}

// FuzzFrames reads any bytes as frames, and checks that writing the frames gives the same bytes.
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
