package api_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/openapi.json and the table in docs/api.md")

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

func TestTheDocsHaveATableOfTheRoutes(t *testing.T) {
	const file, begin, end = "../../docs/api.md", "-update; do not edit. -->\n\n", "\n<!-- end -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	want := newWorld(t).server.Table()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want {
		t.Errorf("the table in %s is out of date; run: go test ./web/api -update", file)
	}
}
