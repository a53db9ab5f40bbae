package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	protocol "github.com/mark3labs/mcp-go/mcp"
)

// The codes that this package chooses itself. For all other errors, the protocol says the code.
const (
	// codeServer is JSON-RPC's first implementation-defined code. It is for errors that no code of
	// the protocol fits. Often the HTTP status says more (401, 403, 429, 503).
	codeServer = -32000
	// codeCanceled answers a request that its client cancelled.
	codeCanceled = protocol.REQUEST_INTERRUPTED
)

// rpcError is the error object of a JSON-RPC answer. Its texts are for clients.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`

	status int // the HTTP status; zero means that httpStatus derives the status
}

func errorf(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *rpcError) withStatus(status int) *rpcError {
	e.status = status
	return e
}

// httpStatus returns the HTTP status of the error. The field status takes precedence. Protocol
// version 2026-07-28 maps codes to statuses. Before that version, an answer to a request is 200.
func (e *rpcError) httpStatus(modern bool) int {
	switch {
	case e.status != 0:
		return e.status
	case !modern:
		return http.StatusOK
	}
	switch e.Code {
	case protocol.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case protocol.PARSE_ERROR, protocol.INVALID_REQUEST, protocol.INVALID_PARAMS, protocol.HEADER_MISMATCH,
		protocol.MISSING_REQUIRED_CLIENT_CAPABILITY, protocol.UNSUPPORTED_PROTOCOL_VERSION:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// answer is a JSON-RPC response with a result or an error.
type answer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func errorAnswer(id json.RawMessage, e *rpcError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	b, err := encode(answer{JSONRPC: "2.0", ID: id, Error: e})
	if err != nil {
		// Only Data can fail to encode. All other members are strings and numbers.
		b, _ = encode(answer{JSONRPC: "2.0", ID: id, Error: &rpcError{Code: e.Code, Message: e.Message}})
	}
	return b
}

// message is one JSON-RPC message that parseMessage read.
type message struct {
	raw    []byte
	id     json.RawMessage // nil: a notification
	method string          // empty: a response from the client
	params fields          // nil: none were sent
	meta   fields          // params._meta; nil: none
}

// fields are the members of a JSON object.
type fields map[string]json.RawMessage

// text returns a member that must be a string. ok is false if the member is not a string. s
// is empty if the member is absent.
func (f fields) text(name string) (s string, present, ok bool) {
	raw, present := f[name]
	if !present {
		return "", false, true
	}
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", true, false
	}
	return s, true, true
}

// messageMembers returns the members that this package or mcp-go look for. mcp-go uses Go's
// decoder, which reads "Method" as "method" and takes the last of two members with the same name. A
// message that this package and mcp-go could read differently is refused.
func messageMembers() []string {
	return []string{"jsonrpc", "id", "method", "params", "result", "error"}
}

func paramMembers() []string {
	return []string{"name", "arguments", "uri", "cursor", "_meta", "task", "level", "requestId", "notifications",
		"protocolVersion", "capabilities", "clientInfo", "inputResponses", "requestState", "ref", "argument"}
}

var (
	errNotObject = errors.New("it is not an object")
	errAmbiguous = errors.New("it names a member twice")
)

// readObject returns the members of a JSON object. It refuses an object in which a member
// appears twice, or in which a name differs from a name in known only in case.
func readObject(raw []byte, known []string) (fields, error) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errNotObject
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	f := make(fields, 4)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		if _, twice := f[key]; twice {
			return nil, errAmbiguous
		}
		if !slices.Contains(known, key) && slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
			return nil, errAmbiguous
		}
		f[key] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the object")
	}
	return f, nil
}

// parseMessage reads one message. With an error, it still returns the id if it could read
// the id, so that the client can match the answer.
func parseMessage(raw []byte) (message, *rpcError) {
	m := message{raw: raw}
	if !utf8.Valid(raw) {
		return m, errorf(protocol.PARSE_ERROR, "The request is not valid UTF-8.")
	}
	if !json.Valid(raw) {
		return m, errorf(protocol.PARSE_ERROR, "The request is not valid JSON.")
	}
	f, err := readObject(raw, messageMembers())
	switch {
	case errors.Is(err, errNotObject):
		return m, errorf(protocol.INVALID_REQUEST, "A JSON-RPC message must be an object.")
	case err != nil:
		return m, errorf(protocol.INVALID_REQUEST, "The message has a member twice, or a member name in the wrong case.")
	}
	id, hasID := f["id"]
	if hasID {
		if !validID(id) {
			return m, errorf(protocol.INVALID_REQUEST, "The id must be a string or an integer.")
		}
		m.id = id
	}
	if v, _, ok := f.text("jsonrpc"); !ok || v != "2.0" {
		return m, errorf(protocol.INVALID_REQUEST, `The member "jsonrpc" must be "2.0".`)
	}
	method, hasMethod, ok := f.text("method")
	_, hasResult := f["result"]
	_, hasError := f["error"]
	switch {
	case !ok || hasMethod && method == "":
		return m, errorf(protocol.INVALID_REQUEST, "The method must be a string.")
	case hasMethod && (hasResult || hasError), hasResult && hasError, !hasMethod && !hasResult && !hasError:
		return m, errorf(protocol.INVALID_REQUEST, "The message must be a request, a notification or a response.")
	case !hasMethod && !hasID:
		return m, errorf(protocol.INVALID_REQUEST, "A response needs the id of its request.")
	}
	m.method = method
	if p, ok := f["params"]; ok {
		m.params, err = readObject(p, paramMembers())
		switch {
		case errors.Is(err, errNotObject):
			return m, errorf(protocol.INVALID_PARAMS, "The params must be an object.")
		case err != nil:
			return m, errorf(protocol.INVALID_PARAMS, "The params have a member twice, or a member name in the wrong case.")
		}
		if meta, ok := m.params["_meta"]; ok {
			if m.meta, err = readObject(meta, nil); err != nil {
				return m, errorf(protocol.INVALID_PARAMS, "The member _meta of params must be an object without repeated members.")
			}
		}
	}
	return m, nil
}

// validID reports whether raw is a string or an integer, the types of ids that MCP allows. It
// refuses an id of more than 256 bytes.
func validID(raw json.RawMessage) bool {
	if len(raw) == 0 || len(raw) > 256 {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) > 0
}

func newToken() string { return rand.Text() }
