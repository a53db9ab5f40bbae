package gitstore

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// Attack: a history is small to send, but git needs much memory for it.
func TestAnImportThatNeedsTooMuchMemoryIsTooLarge(t *testing.T) {
	s := newStore(t, func(o *Options) { o.GitMemory = 24 << 20 })
	dir := sourceRepo(t, func(d string) {
		if err := os.WriteFile(filepath.Join(d, "zeros"), bytes.Repeat([]byte{0}, 31<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	id := newSpace(t, s, nil)
	_, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, dir)), space.Meta{Author: ada}, nil)
	if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(fault.PublicOf(err), "memory") {
		t.Errorf("got %v", err)
	}
}
