//go:build linux

package main

import (
	"bytes"
	"testing"
)

// What is searched for must be found, or a search ends without output, and not
// everywhere, or its output is what is measured.
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

// A command that writes what is there changes nothing, so that git has nothing
// to commit.
func TestMixNeverWritesTheSameTwice(t *testing.T) {
	seen := map[string]bool{}
	writes := 0
	for _, users := range []int{1, 4, 16} {
		for i := range 1000 {
			k := mixed(firstOf(0, users) + i)
			if !k.writes {
				continue
			}
			if writes++; seen[k.command] {
				t.Fatalf("%q is there twice", k.command)
			}
			seen[k.command] = true
		}
	}
	if writes == 0 {
		t.Error("nothing writes")
	}
}
