package tools_test

import (
	"encoding/json"
	"testing"

	"satchel/internal/fault"
)

// FuzzCall: whatever bytes are sent as arguments, every tool answers, and
// never with an error of ours; what is structured is valid JSON.
func FuzzCall(f *testing.F) {
	for _, args := range []string{
		``, `{}`, `null`, `[]`, `{"query":"x","limit":1e9}`, `{"paths":["a:1-2","b#c","**/*.md","/library/x","/space/"]}`, `{"id":"knowledge/notes.md:3-"}`,
		`{"command":"ls","comment":"\u001b\n"}`, `{"paths":["["],"max_tokens":1}`, `{"paths":["knowledge/notes.md#"]}`, `{"a":{"a":{"a":[[[]]]}}}`, "{\"\xff\":1}", `{"paths":["x"],"paths":["y"]}`,
		`{"path":"knowledge/notes.md","content":"x","base_etag":"\"x\""}`, `{"path":"/space/.github/workflows/x","content":""}`, `{"path":"knowledge/notes.md","edits":[{"old":"a","new":"b","all":true},{"old":"","new":""},1]}`,
	} {
		f.Add(args)
	}
	b := newBench(f, library(f), nil)
	f.Fuzz(func(t *testing.T, args string) {
		for _, tool := range b.List(t.Context(), editor()) {
			r, err := b.Call(t.Context(), editor(), tool.Name, json.RawMessage(args), nil)
			if err != nil {
				t.Fatalf("%s: %v (%s)", tool.Name, err, fault.CodeOf(err))
			}
			if len(r.Content) == 0 || r.Structured != nil && !json.Valid(r.Structured) {
				t.Fatalf("%s answers %v", tool.Name, r)
			}
		}
	})
}
