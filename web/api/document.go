package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed openapi.json
var document []byte

// documentFor is the document with a server's address and the limits that are in
// force.
func documentFor(origin string, l Limits) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	doc["servers"] = []any{map[string]any{"url": origin}}
	for _, at := range []struct {
		limit int
		path  []string
	}{
		{l.Results, []string{"Search", "limit", "maximum"}},
		{l.Results, []string{"SearchAndRead", "limit", "maximum"}},
		{min(l.Paths, maxSearchPaths), []string{"Search", "paths", "maxItems"}},
		{min(l.Paths, maxSearchPaths), []string{"SearchAndRead", "paths", "maxItems"}},
		{l.Paths, []string{"SearchAndRead", "read", "maximum"}},
		{l.Paths, []string{"Read", "paths", "maxItems"}},
		{l.Commands, []string{"Shell", "commands", "maxItems"}},
		{l.CommandBytes, []string{"Shell", "command", "maxLength"}},
		{l.CommandBytes, []string{"Shell", "commands", "items", "maxLength"}},
	} {
		in, ok := descend(doc, "components", "schemas", at.path[0], "properties")
		if ok {
			in, ok = descend(in, at.path[1:len(at.path)-1]...)
		}
		last := at.path[len(at.path)-1]
		if _, there := in[last]; !ok || !there {
			return nil, fmt.Errorf("openapi.json has no %v", at.path)
		}
		in[last] = at.limit
	}
	return json.MarshalIndent(doc, "", "  ")
}

func descend(in map[string]any, path ...string) (map[string]any, bool) {
	for _, name := range path {
		next, ok := in[name].(map[string]any)
		if !ok {
			return nil, false
		}
		in = next
	}
	return in, true
}
