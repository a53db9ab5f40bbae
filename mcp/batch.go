package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
)

// maxBatch limits the messages of one batch.
const maxBatch = 50

// batch answers a JSON-RPC batch. Only protocol version 2025-03-26 has batches: 2025-06-18
// removed them. The messages run one after another.
func (s *Server) batch(w http.ResponseWriter, r *http.Request, p auth.Principal, body []byte) {
	refuse := func(e *rpcError) { s.refuse(w, "malformed", e, nil) }
	found, e := s.sessionOf(r, p)
	// Requests of version 2025-03-26 do not name their version; all newer ones do.
	if named := r.Header.Get(protocol.HeaderProtocolVersion); e != nil && (named == "" || named == protocol.ProtocolVersion20250326) {
		refuse(e)
		return
	}
	if e != nil || found.version != protocol.ProtocolVersion20250326 {
		refuse(errorf(protocol.INVALID_REQUEST, "Batches are not part of this protocol version. Send one message per request."))
		return
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(body, &messages); err != nil {
		refuse(errorf(protocol.PARSE_ERROR, "The request is not valid JSON."))
		return
	}
	if len(messages) == 0 || len(messages) > maxBatch {
		refuse(errorf(protocol.INVALID_REQUEST, "A batch must have 1 to %d messages.", maxBatch))
		return
	}
	var answers []json.RawMessage
	for _, raw := range messages {
		if _, taken := s.limits.take(p.User); !taken {
			answers = append(answers, errorAnswer(nil, errorf(codeServer, "Too many requests. Try again later.")))
			break
		}
		if m, e := parseMessage(raw); e == nil && m.method == string(protocol.MethodInitialize) {
			answers = append(answers, errorAnswer(m.id, errorf(protocol.INVALID_REQUEST, "initialize must not be part of a batch.")))
			continue
		}
		part := &recorder{header: make(http.Header)}
		out := s.newStream(part, r)
		s.message(r, p, raw, out)
		if b := bytes.TrimSpace(part.body.Bytes()); len(b) > 0 {
			answers = append(answers, b)
		}
	}
	out := s.newStream(w, r)
	if len(answers) == 0 {
		out.accept(http.StatusAccepted)
		return
	}
	msg, err := encode(answers)
	if err != nil {
		s.log(r.Context()).Error("encode batch", "error", err)
		msg = errorAnswer(nil, internalError(""))
	}
	out.reply(http.StatusOK, msg)
}

// recorder records the answer to one message of a batch. It cannot stream, so the answer is
// one document.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
