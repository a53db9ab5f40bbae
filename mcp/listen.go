package mcp

import (
	"context"
	"net/http"
	"time"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
)

// legacyMethod checks a GET or DELETE, and returns its session. Only the protocol versions with
// sessions have these methods.
func (s *Server) legacyMethod(w http.ResponseWriter, r *http.Request, p auth.Principal) (*session, bool) {
	version, ok := versionHeader(r.Header)
	switch {
	case !ok:
		s.refuse(w, "malformed", errorf(protocol.HEADER_MISMATCH, "The MCP-Protocol-Version header names more than one version."), nil)
		return nil, false
	case version != "" && !protocol.IsValidProtocolVersion(version):
		s.refuse(w, "malformed", unsupported(version), nil)
		return nil, false
	case protocol.IsModernProtocol(version):
		w.Header().Set("Allow", "POST, OPTIONS")
		s.refuse(w, "malformed", errorf(protocol.INVALID_REQUEST, "Protocol version %s has only POST.", version).withStatus(http.StatusMethodNotAllowed), nil)
		return nil, false
	case r.Method == http.MethodGet && r.Header.Get(protocol.HeaderSessionID) == "":
		// Without a session there is no stream. The answer is then 405 (2025-11-25,
		// basic/transports), and clients continue without a stream.
		w.Header().Set("Allow", "POST, OPTIONS")
		s.refuse(w, "session", errorf(protocol.INVALID_REQUEST, "There is nothing to listen to without a session. Send the Mcp-Session-Id header, or only POST.").withStatus(http.StatusMethodNotAllowed), nil)
		return nil, false
	}
	found, e := s.sessionOf(r, p)
	if e != nil {
		s.refuse(w, "session", e, nil)
		return nil, false
	}
	return found, true
}

// listen sends a legacy client the notifications of its session. It returns when the client
// disconnects or opens another stream, when the client's session or access ends, or when
// the server stops.
func (s *Server) listen(w http.ResponseWriter, r *http.Request, p auth.Principal) {
	found, ok := s.legacyMethod(w, r, p)
	if !ok {
		return
	}
	if !accepts(r, "text/event-stream") {
		s.refuse(w, "malformed", errorf(protocol.INVALID_REQUEST, "A listening client must accept text/event-stream.").withStatus(http.StatusNotAcceptable), nil)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// The session's previous stream ends first, so that it does not count towards the limit
	// when the client tries again.
	defer s.sessions.listen(found, cancel)()
	end, ok := s.beginStream(p, cancel)
	if !ok {
		s.refuse(w, "concurrency", tooManyStreams(), retryAfter(nil))
		return
	}
	defer end()

	out := s.newStream(w, r)
	defer out.end()
	out.keepAlive(s.o.KeepAlive)
	if s.fixtures != nil {
		r = r.Clone(ctx)
		r.Header.Del(protocol.HeaderLastEventID)
		s.inner.ServeHTTP(out, r)
		return
	}
	out.open()
	s.deliver(ctx, r, p, found.subscriber, out, nil)
}

// beginStream counts a listening stream until end is called. It calls cancel when the
// token expires or the server stops. ok is false if the user has too many streams.
func (s *Server) beginStream(p auth.Principal, cancel context.CancelFunc) (end func(), ok bool) {
	leave, ok := s.limits.begin(p, true, cancel)
	if !ok {
		return nil, false
	}
	stop := context.AfterFunc(s.streams, cancel)
	expire := func() bool { return true }
	if !p.Expires.IsZero() {
		// The stream makes no further requests, so nothing else would notice that the token
		// has expired.
		expire = time.AfterFunc(p.Expires.Sub(s.o.Now()), cancel).Stop
	}
	return func() {
		expire()
		stop()
		leave()
	}, true
}

func tooManyStreams() *rpcError {
	return errorf(codeServer, "Too many listening streams. Close one first.").withStatus(http.StatusTooManyRequests)
}

// terminate ends a legacy session and its calls and streams.
func (s *Server) terminate(w http.ResponseWriter, r *http.Request, p auth.Principal) {
	found, ok := s.legacyMethod(w, r, p)
	if !ok {
		return
	}
	s.sessions.end(found)
	w.WriteHeader(http.StatusNoContent)
}
