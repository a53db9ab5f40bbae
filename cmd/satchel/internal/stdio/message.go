package stdio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// metaVersion is the key of the protocol version in a 2026-07-28 request (specification,
// "Request metadata").
const metaVersion = "io.modelcontextprotocol/protocolVersion"

// The codes of JSON-RPC 2.0, section 5.1. -32000 is the first code that is reserved for
// implementations.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeServer  = -32000
)

// message holds what the proxy needs to know of a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		Name      string                     `json:"name"`
		URI       string                     `json:"uri"`
		RequestID json.RawMessage            `json:"requestId"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`

	raw   []byte
	batch []message // a batch of protocol version 2025-03-26; nil for a single message
}

// parse reads one line of valid JSON. It accepts a message with other defects, because the
// server can answer it better than the proxy.
func parse(line []byte) message {
	m := message{raw: line}
	if bytes.HasPrefix(line, []byte("[")) {
		var parts []json.RawMessage
		_ = json.Unmarshal(line, &parts) // valid JSON that begins with [ is an array
		m.batch = make([]message, len(parts))
		for i, p := range parts {
			m.batch[i] = message{raw: p}
			_ = json.Unmarshal(p, &m.batch[i])
		}
		return m
	}
	_ = json.Unmarshal(line, &m) // a field of another type counts as missing
	return m
}

func (m message) isNotification() bool { return m.Method != "" && len(m.ID) == 0 }

func (m message) isResponse() bool {
	return m.Method == "" && m.batch == nil && (m.Result != nil || m.Error != nil)
}

// wantsAnswer reports whether the client gets the server's answer to m. In JSON-RPC,
// notifications and responses have no answer. Every other message has one, even if it is
// invalid.
func (m message) wantsAnswer() bool {
	if m.batch != nil {
		for _, part := range m.batch {
			if part.wantsAnswer() {
				return true
			}
		}
		return len(m.batch) == 0
	}
	return !m.isNotification() && !m.isResponse()
}

// version returns the protocol version that a 2026-07-28 message names. It returns "" for a
// message of an older protocol, in which only initialize names the version.
func (m message) version() string {
	var v string
	_ = json.Unmarshal(m.Params.Meta[metaVersion], &v)
	return v
}

// target returns the value of the body that the Mcp-Name header repeats.
func (m message) target() string {
	if m.Params.Name != "" {
		return m.Params.Name
	}
	return m.Params.URI
}

// headerValue encodes s for the specification's custom headers: unchanged if s is printable ASCII
// without spaces around it, and otherwise as =?base64?…?=.
func headerValue(s string) string {
	plain := s != "" && strings.TrimSpace(s) == s && !strings.HasPrefix(s, "=?base64?")
	for i := range len(s) {
		plain = plain && s[i] >= 0x20 && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// failures returns the errors that answer m if the server did not: one for each request in m.
func failures(m message, code int, text string) [][]byte {
	if len(m.batch) == 0 {
		return [][]byte{failure(m.ID, code, text)}
	}
	var out [][]byte
	for _, part := range m.batch {
		if part.wantsAnswer() {
			out = append(out, failure(part.ID, code, text))
		}
	}
	return out
}

func failure(id json.RawMessage, code int, text string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	b, _ := json.Marshal(map[string]any{ // id is a part of valid JSON
		"jsonrpc": "2.0",
		"id":      id,
		"error":   map[string]any{"code": code, "message": text},
	})
	return b
}

// withID returns a JSON-RPC message on one line, or nil if body is not a message. If the server
// refused a request before it read the id, its error has no id. withID adds the request's id,
// because standard output has no other way to show which request the error answers.
func withID(body []byte, id json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["jsonrpc"] == nil {
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) != nil || len(batch) == 0 {
			return nil
		}
	} else if _, isError := m["error"]; isError && (len(m["id"]) == 0 || string(m["id"]) == "null") && len(id) > 0 {
		m["id"] = id
		body, _ = json.Marshal(m) // parts of valid JSON
	}
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return nil
	}
	return line.Bytes()
}
