package web

import "testing"

// Routes returns the pages that were added.
func (s *Site) Routes() []Route { return s.added }

// ParsePages parses all pages, which are otherwise parsed when they are first shown.
func (s *Site) ParsePages(t *testing.T) {
	t.Helper()
	if len(s.templates) == 0 {
		t.Error("there are no pages")
	}
	for name, parsed := range s.templates {
		if _, err := parsed(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
