package api_test

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/openapi.json")

// The document is generated. This file shows how a change of a route or a type affects
// clients.
func TestTheDocumentIsTheGoldenOne(t *testing.T) {
	const file = "testdata/openapi.json"
	got := newWorld(t).ask("GET", "/api/openapi.json", "", nil).body
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the document is not %s (%v); read the difference after go test ./web/api -update", file, err)
	}
}
