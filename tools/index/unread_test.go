package index

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

// damagedSource is a Source whose blobs are damaged until they are repaired.
type damagedSource struct {
	Source
	repaired atomic.Bool
}

func (d *damagedSource) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	if !d.repaired.Load() {
		return nil, space.Damaged("a.md", nil)
	}
	return d.Source.ReadBlob(ctx, id, b)
}

// A search notes that a file is damaged and requests that it is read again. So a repaired
// file is found without another commit.
func TestASearchHasDamagedFilesReadAgain(t *testing.T) {
	h := newHistory()
	h.commit(toBytes(map[string]string{"a.md": "alpha"}))
	src := &damagedSource{Source: h}
	x := openIndex(t, Options{Dir: t.TempDir()})
	f := x.Follow(src)
	defer f.Close()
	f.Refresh(testSpace)
	testenv.WaitFor(t, "the note about a.md", func() bool {
		r := search(t, x, "alpha")
		return len(r.Hits) == 0 && len(r.Notes) > 0 && strings.Contains(r.Notes[0], "a.md")
	})
	src.repaired.Store(true)
	testenv.WaitFor(t, "a.md without a note", func() bool {
		r := search(t, x, "alpha")
		return len(r.Hits) == 1 && len(r.Notes) == 0
	})
}
