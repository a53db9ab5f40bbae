package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// endToEndLimit matches a timeout of a test, and a deadline.
var endToEndLimit = regexp.MustCompile(`\btimeout: *[0-9(]|Date\.now\(\) *\+`)

// TestEndToEndTestsStateNoTimeLimits looks at all but the tests of a soak, which run
// for a given time. They wait by e2e/lib/until.mjs (docs/testing.md).
func TestEndToEndTestsStateNoTimeLimits(t *testing.T) {
	files, err := filepath.Glob("../../e2e/*.mjs")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	libraries, err := filepath.Glob("../../e2e/lib/*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, libraries...) {
		if filepath.Base(name) == "until.mjs" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			if endToEndLimit.MatchString(line) {
				t.Errorf("%s:%d states a time limit: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}
