package stdio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// metaVersion is the key under which a 2026-07-28 request names its protocol
// version (specification, "Request metadata").
const metaVersion = "io.modelcontextprotocol/protocolVersion"

// message is what the proxy must know of a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		Name      string                     `json:"name"`
		URI       string                     `json:"uri"`
		RequestID json.RawMessage            `json:"requestId"`
	} `json:"params"`
	Result *struct {
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"result"`
	raw []byte
}

// parse reads one line. What it cannot read it still carries: the server
// answers a malformed message better than the proxy could.
func parse(line []byte) message {
	var m message
	_ = json.Unmarshal(line, &m)
	m.raw = line
	return m
}

func (m message) isRequest() bool { return m.Method != "" && m.hasID() }

func (m message) hasID() bool { return len(m.ID) > 0 && !bytes.Equal(m.ID, []byte("null")) }

// version is the protocol version that a 2026-07-28 message names; empty for
// the older revisions, which name it once in initialize.
func (m message) version() string {
	var v string
	_ = json.Unmarshal(m.Params.Meta[metaVersion], &v)
	return v
}

// target is what the Mcp-Name header repeats of the body.
func (m message) target() string {
	if m.Params.Name != "" {
		return m.Params.Name
	}
	return m.Params.URI
}

// headerValue encodes s as the specification's custom headers want it: plain
// where it is visible ASCII, else =?base64?…?=.
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

// failure is the JSON-RPC error that answers a request the server did not.
// -32000 is the first of the codes that JSON-RPC leaves to implementations.
func failure(id json.RawMessage, text string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	b, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0",
		"id":      id,
		"error":   map[string]any{"code": -32000, "message": text},
	})
	return b
}
