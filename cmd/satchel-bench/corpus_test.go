//go:build linux

package main

import (
	"bytes"
	"testing"
)

// benchGrep must find the word, but in so few pages that it does not measure the output.
func TestRareWordIsInFewPages(t *testing.T) {
	for _, c := range []struct{ pages, size int }{{1000, 10_000}, {1000, 2000}, {100, 10_000}} {
		found := 0
		for _, change := range corpusChanges(c.pages, c.size).Changes {
			if bytes.Contains(change.Content, []byte(rareWord)) {
				found++
			}
		}
		t.Logf("%d pages of %d bytes: in %d", c.pages, c.size, found)
		if found == 0 || found > c.pages/20 {
			t.Errorf("%q is in %d of %d pages of %d bytes", rareWord, found, c.pages, c.size)
		}
	}
}
