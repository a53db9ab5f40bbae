package syncs

import (
	"testing"

	"satchel/gitstore/sources/upstream"
)

// A sync that fetches every file again still keeps a file that upstream cannot give now, and one that
// upstream has dropped from its list but wants to keep.
func TestResetKeepsWhatUpstreamCannotGive(t *testing.T) {
	known := []stagedFile{
		{File: upstream.File{Path: "a.md", URL: "https://a.example/a"}, Blob: blobOf([]byte("a"))},
		{File: upstream.File{Path: "b.md", URL: "https://a.example/b"}, Blob: blobOf([]byte("b"))},
	}
	s, err := newStage(t.TempDir(), known, true, limits{files: 10, file: 10, source: 10}, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	for f := range s.Files() {
		if _, ok := s.Known(f.URL); ok {
			t.Errorf("%s is known, so upstream need not give it again", f.URL)
		}
		if f.Path == "a.md" {
			err = s.Skip(t.Context(), f.URL, upstream.Blocked)
		} else {
			err = s.Keep(t.Context(), f)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if got := s.list(); len(got) != 2 || got[0].Blob != known[0].Blob || got[1].Blob != known[1].Blob {
		t.Errorf("the files are %+v", got)
	}
}
