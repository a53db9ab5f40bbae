package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
)

// Dial returns the Service of the server that listens at path, or an error if no server
// listens.
func Dial(ctx context.Context, path string) (*Remote, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		addr, done, err := socketAddress(path)
		if err != nil {
			return nil, err
		}
		defer done()
		var d net.Dialer
		return d.DialContext(ctx, "unix", addr)
	}
	c, err := dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c.Close()
	return &Remote{dial: dial, http: &http.Client{Transport: &http.Transport{DialContext: dial, IdleConnTimeout: time.Second}}}, nil
}

// Remote is a Service that asks a running server.
type Remote struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	http *http.Client
}

// Close closes idle connections.
func (c *Remote) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

var _ Service = (*Remote)(nil)

func (c *Remote) post(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	return post(ctx, c.http, path, body)
}

func post(ctx context.Context, client *http.Client, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://satchel/"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fault.Wrap(err, fault.Canceled, "Interrupted.")
		}
		return nil, fault.Wrap(err, fault.Unavailable, "The running server did not answer; it may be stopping. Try again in a moment.")
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		var e wireError
		if json.NewDecoder(res.Body).Decode(&e) != nil || e.Message == "" {
			e = wireError{Code: fault.Unavailable, Message: "The running server does not know this command; restart it with this version of satchel."}
		}
		return nil, fault.New(e.Code, "%s", e.Message).In(e.Field)
	}
	return res, nil
}

func call[T any](ctx context.Context, c *Remote, op string, in any) (T, error) {
	var out T
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	res, err := c.post(ctx, op, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, fault.Wrap(err, fault.Unavailable, "The running server's answer could not be read.")
	}
	return out, nil
}

// Info asks the server.
func (c *Remote) Info(ctx context.Context) (Info, error) { return call[Info](ctx, c, "info", nil) }

// Import sends a stream to the server. If the server ends first, a read of the stream may
// still be in progress when Import returns. The caller then closes the stream.
func (c *Remote) Import(ctx context.Context, in service.ImportSpaceInput) (service.ImportResult, error) {
	q := url.Values{"user": {in.Space.User}, "space": {in.Space.Name}, "kind": {in.Kind}, "source": {in.Source}}
	return send[service.ImportResult](ctx, c, "import", q, in.Stream)
}

// ImportMemory sends a stream to the server, as Import does.
func (c *Remote) ImportMemory(ctx context.Context, in service.ImportMemoryInput) (service.ImportedMemory, error) {
	q := url.Values{"user": {in.Space.User}, "space": {in.Space.Name}, "name": {in.Name}, "format": {in.Format}, "dry_run": {strconv.FormatBool(in.DryRun)}}
	return send[service.ImportedMemory](ctx, c, "import-memory", q, in.Stream)
}

// UploadToSource sends a stream to the server, as Import does.
func (c *Remote) UploadToSource(ctx context.Context, in service.UploadToSourceInput) (service.UploadedToSource, error) {
	q := url.Values{"id": {in.ID}, "name": {in.Name}}
	if in.Create != nil {
		b, err := json.Marshal(in.Create)
		if err != nil {
			return service.UploadedToSource{}, err
		}
		q.Set("create", string(b))
	}
	return send[service.UploadedToSource](ctx, c, "upload-to-source", q, in.Stream)
}

// send calls an operation with a stream.
func send[Out any](ctx context.Context, c *Remote, op string, q url.Values, stream io.Reader) (Out, error) {
	var none Out
	body := &watched{r: stream}
	client := c.streaming(body)
	defer client.CloseIdleConnections()
	res, err := post(ctx, client.Client, op+"?"+q.Encode(), client.body)
	if failed := body.failure(); failed != nil && ctx.Err() == nil {
		err = failed
	}
	if err != nil {
		return none, err
	}
	defer res.Body.Close()
	out, err := readLines[Out](res.Body, service.Progress(ctx))
	switch failed := body.failure(); {
	case err != nil && failed != nil:
		return none, failed
	case errors.Is(err, errCut):
		return none, fault.Wrap(err, fault.Unavailable, "The running server ended before it had taken the whole file. Look whether the content is there, and try again.")
	}
	return out, err
}

// errCut marks the error of a long answer that ended too early.
var errCut = errors.New("the answer was cut off")

// readLines reads a long answer (see answerLine), and calls progress with each report of progress.
func readLines[Out any](r io.Reader, progress func(string)) (out Out, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l answerLine[Out]
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return out, errors.Join(errCut, err)
		}
		switch {
		case l.Error != nil:
			return out, fault.New(l.Error.Code, "%s", l.Error.Message).In(l.Error.Field)
		case l.Result != nil:
			return *l.Result, nil
		default:
			progress(l.Progress)
		}
	}
	return out, errors.Join(errCut, lines.Err())
}

// callLong calls an operation that sends a long answer.
func callLong[Out any](ctx context.Context, c *Remote, op string, in any, progress func(string)) (Out, error) {
	var none Out
	body, err := json.Marshal(in)
	if err != nil {
		return none, err
	}
	res, err := c.post(ctx, op, bytes.NewReader(body))
	if err != nil {
		return none, err
	}
	defer res.Body.Close()
	out, err := readLines[Out](res.Body, progress)
	switch {
	case errors.Is(err, errCut) && ctx.Err() != nil:
		return none, fault.Wrap(err, fault.Canceled, "Interrupted.")
	case errors.Is(err, errCut):
		return none, fault.Wrap(err, fault.Unavailable, "The running server ended before this was done. Try again in a moment.")
	}
	return out, err
}

// streamClient is a client for one request with a long body.
type streamClient struct {
	*http.Client
	body io.Reader
}

// streaming returns a client for one request, and the body to send, which has the content of from.
// The transport waits for a read of the body before it reports that the server is gone. So the
// body goes through a pipe, which the end of the connection closes.
func (c *Remote) streaming(from io.Reader) streamClient {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, from)
		w.CloseWithError(err)
	}()
	return streamClient{body: r, Client: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := c.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &closeNotifyConn{conn, func() { r.CloseWithError(net.ErrClosed) }}, nil
		},
	}}}
}

// closeNotifyConn is a connection that calls ended when nothing more can be read from it.
type closeNotifyConn struct {
	net.Conn
	ended func()
}

func (c *closeNotifyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.ended()
	}
	return n, err
}

// watched is a reader that remembers why it failed.
type watched struct {
	r    io.Reader
	fail atomic.Pointer[error]
}

func (s *watched) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.fail.Store(&err)
	}
	return n, err
}

func (s *watched) failure() error {
	if err := s.fail.Load(); err != nil {
		return *err
	}
	return nil
}
