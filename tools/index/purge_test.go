package index

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

// A purge gives a space a history without any of the indexed commits and without the purged
// blobs. The index still follows it, and keeps nothing of the old text in its files.
func TestAPurgedHistoryIsFollowed(t *testing.T) {
	const secret = "zanzibarcanary4711"
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("secret deleted before: ", deleted), func(t *testing.T) {
			h := newHistory()
			h.commit(map[string][]byte{"a.md": []byte("alpha"), "k.md": []byte("the key is " + secret)})
			dir := t.TempDir()
			x := openIndex(t, Options{Dir: dir})
			update(t, x, h)
			if deleted {
				h.commit(map[string][]byte{"k.md": nil})
				update(t, x, h)
			}
			f := x.Follow(h)
			t.Cleanup(f.Close)

			h.mu.Lock()
			clear(h.trees)
			h.head = "purged" // other parents give other commit ids
			h.trees[""], h.trees[h.head] = map[space.Path]space.BlobID{}, map[space.Path]space.BlobID{}
			maps.DeleteFunc(h.blobs, func(_ space.BlobID, b []byte) bool { return bytes.Contains(b, []byte(secret)) })
			h.mu.Unlock()
			c := h.commit(map[string][]byte{"a.md": []byte("alpha"), "b.md": []byte("beta")})
			f.Publish(space.Event{Space: testSpace, Commit: space.Commit{ID: c}})

			if err := x.Wait(testenv.Context(t), testSpace, c); err != nil {
				t.Fatal(err)
			}
			if r := search(t, x, secret); len(r.Hits) != 0 {
				t.Errorf("found: %v", paths(r))
			}
			if r := search(t, x, "beta"); len(r.Hits) != 1 || r.IndexCommit != c {
				t.Errorf("%+v", r)
			}
			// Wait returns as soon as the commit can be searched. The update still has to
			// remove the old files.
			f.Close()
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := os.ReadFile(p)
				if bytes.Contains(b, []byte(secret)) {
					t.Errorf("%s holds what was purged", filepath.Base(p))
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
