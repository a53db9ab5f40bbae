package web_test

import (
	"testing"

	"satchel/gitstore/sources"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/web"
)

// shelf is a world whose library a test looks into.
type shelf struct {
	*held
	*sources.Manager
}

func newShelf(t *testing.T, files ...string) *shelf {
	t.Helper()
	h := newHeldWith(t, func(*web.Options) {}, files...)
	return &shelf{h, h.service.Sources}
}

// publish publishes knowledge/ of ada's space as "notes", for everybody or for some
// people.
func (s *shelf) publish(readers ...string) {
	s.t.Helper()
	_, err := s.service.PublishSource(s.t.Context(), service.Person(s.ada), service.PublishSourceInput{
		Space:   service.SpaceRef{ID: s.space.ID},
		Source:  space.Source{ID: "notes", SourceText: space.SourceText{Title: "Team notes"}, Dir: "knowledge", Everybody: len(readers) == 0},
		Readers: readers,
	})
	must(s.t, err)
}

var _ index.Source = (*sources.Manager)(nil)
