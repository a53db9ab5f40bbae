package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/tools"
)

// request is a message that the server answers.
type request struct {
	s       *Server
	http    *http.Request
	p       auth.Principal
	m       message
	out     *stream
	session *session // nil for a modern request and for initialize
	modern  bool
	version string // the protocol version that applies; empty if the request names none
	client  clientInfo

	began    time.Time
	tool     string
	outcome  string
	answered int // bytes of the answer
	// failed replaces the answer of mcp-go, because mcp-go's hooks cannot return an error, and
	// its handlers can return only the code −32603.
	failed *rpcError
}

type requestKey struct{}

func requestFrom(ctx context.Context) *request {
	rq, _ := ctx.Value(requestKey{}).(*request)
	return rq
}

// clientInfo is a client's description of itself. It decides the label of the client's commits,
// which version of the tools the client sees, and whether an MCP-Protocol-Version header that names
// an older version is accepted.
type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// label returns "name/version", or only the name if there is no version, in a form that is safe in a commit's trailer.
func (c clientInfo) label() string {
	name, version := tame(c.Name), tame(c.Version)
	if name == "" || version == "" {
		return name
	}
	return name + "/" + version
}

func tame(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '-'
		}
		return r
	}, strings.TrimSpace(s))
	if r := []rune(s); len(r) > 48 {
		return string(r[:48])
	}
	return s
}

// isChatGPT reports whether the client is ChatGPT, by its OAuth client id or the name that
// it gives itself. ChatGPT's deep research accepts only its own versions of the tools search
// and fetch.
func isChatGPT(p auth.Principal, c clientInfo) bool {
	name := strings.ToLower(c.Name)
	return strings.HasPrefix(p.Client, "https://chatgpt.com/") || strings.Contains(name, "chatgpt") || strings.HasPrefix(name, "openai-mcp")
}

func (rq *request) caller() tools.Caller {
	c := tools.Caller{
		Actor:   service.Client(rq.p, "mcp").Labelled(cmp.Or(rq.client.label(), tame(rq.p.Client))),
		ChatGPT: isChatGPT(rq.p, rq.client),
		Origin:  rq.s.o.Origin(rq.http),
	}
	if rq.session != nil {
		c.Conversation = &rq.session.conversation
	}
	return c
}

// post answers a POST, which has a message or, in protocol version 2025-03-26, a batch of messages.
func (s *Server) post(w http.ResponseWriter, r *http.Request, p auth.Principal) {
	if e := checkMedia(r); e != nil {
		s.refuse(w, "malformed", e, nil)
		return
	}
	body, e := s.readBody(w, r)
	if e != nil {
		reason := "malformed"
		if e.status == http.StatusRequestEntityTooLarge {
			reason = "too_large"
			w.Header().Set("Connection", "close")
		}
		s.refuse(w, reason, e, nil)
		return
	}
	if b := bytes.TrimLeft(body, " \t\r\n"); len(b) > 0 && b[0] == '[' {
		s.batch(w, r, p, b)
		return
	}
	s.message(r, p, body, s.newStream(w, r))
}

// checkMedia checks the request's Content-Type and Accept headers.
func checkMedia(r *http.Request) *rpcError {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || mediaType != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return errorf(protocol.INVALID_REQUEST, "The Content-Type must be application/json in UTF-8.").withStatus(http.StatusUnsupportedMediaType)
	}
	if r.Header.Get("Content-Encoding") != "" && !strings.EqualFold(r.Header.Get("Content-Encoding"), "identity") {
		return errorf(protocol.INVALID_REQUEST, "The body must not be compressed.").withStatus(http.StatusUnsupportedMediaType)
	}
	if !accepts(r, "application/json") && !accepts(r, "text/event-stream") {
		return errorf(protocol.INVALID_REQUEST, "The client must accept application/json and text/event-stream.").withStatus(http.StatusNotAcceptable)
	}
	return nil
}

// readBody reads a body of at most MaxBody bytes. The code that calls the handler sets the
// read deadline.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *rpcError) {
	tooLarge := errorf(protocol.INVALID_REQUEST, "The request is larger than %d bytes.", s.o.MaxBody).withStatus(http.StatusRequestEntityTooLarge)
	if r.ContentLength > s.o.MaxBody {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errorf(protocol.PARSE_ERROR, "The request did not arrive in time. Send it again.").withStatus(http.StatusRequestTimeout)
	case err != nil:
		return nil, errorf(protocol.PARSE_ERROR, "The request could not be read to its end.").withStatus(http.StatusBadRequest)
	}
	return body, nil
}

// message answers one message.
func (s *Server) message(r *http.Request, p auth.Principal, body []byte, out *stream) {
	rq := &request{s: s, http: r, p: p, out: out, began: time.Now()}
	defer out.end()
	defer rq.recovered()
	var e *rpcError
	rq.m, e = parseMessage(body)
	if e == nil {
		e = rq.settleEra()
	}
	if e == nil && !rq.modern {
		e = rq.bindSession()
	}
	if e != nil {
		reason := "malformed"
		if e.status == http.StatusNotFound {
			reason = "session"
		}
		rq.refuse(reason, e)
		return
	}
	switch {
	case rq.m.method == "":
		rq.response()
	case rq.m.id == nil:
		rq.notification()
	default:
		rq.dispatch()
	}
}

// recovered answers a request whose handling panicked.
func (rq *request) recovered() {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	e := rq.internal("panic", fmt.Errorf("%v\n%s", v, debug.Stack()))
	rq.out.reply(e.httpStatus(rq.modern), errorAnswer(rq.m.id, e))
}

// refuse answers a message that the server does not process. The answer has an HTTP error
// status in every era.
func (rq *request) refuse(reason string, e *rpcError) {
	if f := rq.s.o.Observer.Refused; f != nil {
		f(reason)
	}
	rq.out.reply(cmp.Or(e.status, e.httpStatus(true)), errorAnswer(rq.m.id, e))
}

// response handles a client's answer to a request of the server. Only the conformance
// fixtures make such requests.
func (rq *request) response() {
	switch {
	case rq.modern:
		rq.refuse("malformed", errorf(protocol.INVALID_REQUEST, "Protocol version %s has no responses from clients.", protocol.ProtocolVersion20260728))
	case rq.s.fixtures != nil:
		rq.forward(rq.http.Context())
	default:
		rq.out.accept(http.StatusAccepted)
	}
}

// notification handles a notification. The only notification with an effect is the
// cancellation of a request in the same session. Requests outside a session are cancelled by
// disconnecting and never by their id, because different clients use the same ids.
func (rq *request) notification() {
	if rq.m.method == string(protocol.MethodNotificationCancelled) && rq.session != nil {
		if id, ok := rq.m.params["requestId"]; ok && validID(id) {
			rq.s.sessions.cancel(rq.session, string(id))
		}
	}
	rq.out.accept(http.StatusAccepted)
}

// dispatch runs a request.
func (rq *request) dispatch() {
	s := rq.s
	// For a legacy client, disconnecting does not cancel the request (2025-11-25,
	// basic/transports). For a modern client, it does.
	ctx := rq.http.Context()
	if rq.modern {
		rq.out.gone = ctx.Done()
	} else {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end, reason, e := rq.begin(cancel)
	if e != nil {
		rq.out.extra.Set("Retry-After", "1")
		rq.refuse(reason, e)
		return
	}
	defer end()
	if rq.session != nil {
		withdraw := func() {
			rq.out.withdrawn.Store(true)
			cancel()
		}
		defer s.sessions.begin(rq.session, string(rq.m.id), cancel, withdraw)()
	}
	ctx = context.WithValue(ctx, requestKey{}, rq)

	defer rq.observe()
	if e := rq.checkParams(); e != nil {
		rq.reply(nil, e)
		return
	}
	if run, ok := s.own[rq.m.method]; ok {
		if result, e, handled := run(ctx, rq); handled {
			rq.reply(result, e)
			return
		}
	}
	rq.forward(ctx)
}

// begin counts the request as a call, or as a listening stream, until end is called. If it
// refuses the request, it returns the error, and the reason for the metrics.
func (rq *request) begin(cancel context.CancelFunc) (end func(), reason string, e *rpcError) {
	s := rq.s
	if rq.modern && rq.m.method == string(protocol.MethodSubscriptionsListen) {
		if end, ok := s.beginStream(rq.p, cancel); ok {
			return end, "", nil
		}
		return nil, "concurrency", tooManyStreams()
	}
	endCall, ok := s.limits.begin(rq.p, false, cancel)
	if !ok {
		return nil, "concurrency", errorf(codeServer, "Too many calls at once. Wait for one to end.").withStatus(http.StatusTooManyRequests)
	}
	if !s.enter(&s.callsRunning) {
		endCall()
		return nil, "closing", errorf(codeServer, "The server is stopping. Try again.").withStatus(http.StatusServiceUnavailable)
	}
	stop := context.AfterFunc(s.calls, cancel)
	return func() {
		stop()
		s.leave(&s.callsRunning, s.callsFinished)
		endCall()
	}, "", nil
}

// reply answers with a result or an error.
func (rq *request) reply(result any, e *rpcError) {
	if e == nil {
		msg, err := encode(answer{JSONRPC: "2.0", ID: rq.m.id, Result: result})
		if err == nil {
			rq.outcome = cmp.Or(rq.outcome, "ok")
			rq.answered = len(msg)
			rq.out.reply(http.StatusOK, msg)
			return
		}
		e = rq.internal("encode result", err)
	}
	rq.outcome = cmp.Or(rq.outcome, string(fault.Invalid))
	rq.out.reply(e.httpStatus(rq.modern), errorAnswer(rq.m.id, e))
}

func (rq *request) internal(what string, err error) *rpcError {
	id := rq.s.o.RequestID(rq.http.Context())
	rq.outcome = string(fault.Internal)
	rq.s.o.Logger.Error(what, "request_id", id, "method", rq.m.method, "tool", rq.tool, "user", rq.p.User, "error", err)
	return internalError(id)
}

func (rq *request) observe() {
	f := rq.s.o.Observer.Call
	if f == nil {
		return
	}
	method := rq.m.method
	if _, own := rq.s.own[method]; !own && !isProtocolMethod(method) {
		method = "other"
	}
	f(CallInfo{Method: method, Tool: rq.tool, Outcome: cmp.Or(rq.outcome, "ok"), Duration: time.Since(rq.began),
		Modern: rq.modern, Client: rq.client.label(), User: rq.p.User, Grant: rq.p.Grant, Answered: rq.answered})
}

// forward lets mcp-go answer.
func (rq *request) forward(ctx context.Context) {
	r := rq.http.WithContext(ctx)
	r.Header = r.Header.Clone()
	r.Header.Del(protocol.HeaderLastEventID) // streams cannot be resumed
	if rq.version != "" {
		r.Header.Set(protocol.HeaderProtocolVersion, rq.version)
	}
	if rq.modern {
		r.Header.Del(protocol.HeaderSessionID)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Body = io.NopCloser(bytes.NewReader(rq.m.raw))
	r.ContentLength = int64(len(rq.m.raw))

	if rq.m.method == string(protocol.MethodInitialize) {
		made := rq.s.sessions.create(rq.p, rq.version, rq.client)
		rq.out.extra.Set(protocol.HeaderSessionID, made.id)
		defer func() {
			if rq.outcome != "" {
				rq.s.sessions.end(made)
			}
		}()
	}
	if rq.m.method == string(protocol.MethodSubscriptionsListen) || rq.s.fixtures != nil {
		rq.out.keepAlive(rq.s.o.KeepAlive)
	}
	rq.out.rewrite = rq.rewriteInner
	rq.s.inner.ServeHTTP(rq.out, r)
}

// rewriteInner replaces the texts of mcp-go's errors, which can contain Go errors ("json:
// cannot unmarshal …"). If a hook or handler of this package failed, it replaces mcp-go's
// answer.
func (rq *request) rewriteInner(status int, msg []byte) (int, []byte) {
	e := rq.failed
	switch {
	case e != nil:
	case msg == nil:
		e = errorf(protocol.INVALID_REQUEST, "The request is not valid here.").withStatus(status)
	case bytes.Contains(msg, []byte(`"error"`)):
		var a struct {
			Error *struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if json.Unmarshal(msg, &a) != nil || a.Error == nil {
			return status, msg
		}
		e = rq.standardError(a.Error.Code)
	default:
		return status, msg
	}
	rq.outcome = cmp.Or(rq.outcome, string(fault.Invalid))
	rq.out.extra.Del(protocol.HeaderSessionID)
	return e.httpStatus(rq.modern), errorAnswer(rq.m.id, e)
}

// standardError returns the error that clients get for an error of mcp-go.
func (rq *request) standardError(code int) *rpcError {
	switch code {
	case protocol.METHOD_NOT_FOUND:
		return rq.unknownMethod()
	case protocol.INVALID_PARAMS, protocol.RESOURCE_NOT_FOUND:
		return errorf(code, "The params of %s are not valid.", shorten(rq.m.method))
	case protocol.INVALID_REQUEST, protocol.PARSE_ERROR:
		return errorf(code, "The request is not valid.")
	case protocol.HEADER_MISMATCH:
		return errorf(code, "The headers of the request do not match its body.")
	case protocol.INTERNAL_ERROR:
		return rq.internal("mcp-go", errors.New("it answered with an internal error"))
	}
	return errorf(code, "The request failed.")
}

func (rq *request) unknownMethod() *rpcError {
	return errorf(protocol.METHOD_NOT_FOUND, "The method %q is not supported.", shorten(rq.m.method))
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
