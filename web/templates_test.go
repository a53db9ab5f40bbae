package web_test

import "testing"

// A mistake in a page shows here, not to the first person who opens the page.
func TestEachPageCanBeParsed(t *testing.T) { newWorld(t).server.ParsePages(t) }
