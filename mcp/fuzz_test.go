package mcp

import (
	"encoding/json"
	"testing"
)

// FuzzParseMessage holds the strict reader against Go's decoder, by which
// mcp-go reads the same bytes: on a message that is accepted, the two must
// agree on everything that is checked, or a check could be walked around.
func FuzzParseMessage(f *testing.F) {
	for _, seed := range []string{
		initialize, toolCall("1", "read", `{"paths":["a"]}`), modern(`"x"`, "resources/read", `"uri":"skill://a/SKILL.md"`).body,
		`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"\u006aSONRPC":"2.0"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","\u006eame":"b"}}`, "[]", "{}", "null", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, e := parseMessage(raw)
		if e != nil {
			if !json.Valid(errorAnswer(m.id, e)) {
				t.Fatalf("the refusal of %q is not JSON", raw)
			}
			return
		}
		var seen struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  struct {
				Name json.RawMessage `json:"name"`
				URI  json.RawMessage `json:"uri"`
				Meta map[string]any  `json:"_meta"`
			} `json:"params"`
		}
		if err := json.Unmarshal(raw, &seen); err != nil {
			t.Fatalf("accepted %q, which Go's decoder refuses: %v", raw, err)
		}
		if seen.JSONRPC != "2.0" || seen.Method != m.method || string(seen.ID) != string(m.id) ||
			string(seen.Params.Name) != string(m.params["name"]) || string(seen.Params.URI) != string(m.params["uri"]) || len(seen.Params.Meta) != len(m.meta) {
			t.Fatalf("read %q as %+v, Go's decoder as %+v", raw, m, seen)
		}
	})
}
