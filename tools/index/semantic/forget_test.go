package semantic_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/tools/index/semantic"
)

// TestForgetLeavesOtherCollections searches for the forgotten text while no engine is open, and
// checks that another collection keeps the texts it shares.
func TestForgetLeavesOtherCollections(t *testing.T) {
	f := newFixture(t)
	f.o.Parallel = 1
	f.shelf.put("c1", pages(10))
	f.open().Changed("space")
	f.at("c1")
	shared := pages(15)
	for i := range 5 {
		delete(shared, int64(i+1))
	}
	f.shelf.put("c2", shared)
	f.e.Changed("other")
	if err := f.e.Wait(t.Context(), "other", "c2"); err != nil {
		t.Fatal(err)
	}
	// Interrupt a run. Its vectors are only in the cache.
	n := 0
	f.server.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		if n++; n > 2 {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return n > 2
	})
	late := map[int64]string{}
	for i, text := range pages(40) {
		if i > 20 {
			late[i] = text
		}
	}
	f.shelf.put("c3", late)
	f.e.Changed("space")
	if s := f.until("failed", func(s semantic.Status) bool { return s.Err != nil }); s.Done == 0 {
		t.Fatalf("%+v", s)
	}
	f.server.Break(nil)
	f.close()
	tmp := filepath.Join(f.dir, "new-1.tmp") // left by a process that did not end normally
	if err := os.WriteFile(tmp, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if err := semantic.Forget(t.Context(), f.dir, "space"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	if s := strings.Join(names, " "); strings.Contains(s, "space.") || strings.Contains(s, ".tmp") || !strings.Contains(s, "other.") || strings.Contains(s, "-wal") {
		t.Errorf("there are %s", s)
	}

	embeds := func(name, commit string, docs map[int64]string) int {
		t.Helper()
		before := len(f.server.Texts())
		f.shelf.put(commit, docs)
		f.open().Changed(name)
		if err := f.e.Wait(t.Context(), name, commit); err != nil {
			t.Fatal(err)
		}
		f.close()
		return len(f.server.Texts()) - before
	}
	if n := embeds("other", "c4", shared); n != 0 {
		t.Errorf("%d texts of the other collection were embedded again", n)
	}
	if n := embeds("space", "c5", pages(10)); n != 10 {
		t.Errorf("%d texts were embedded again, and 10 of 20 are the other collection's too", n)
	}
	if n := embeds("space", "c6", late); n != 40 {
		t.Errorf("%d texts of the run that was broken off were embedded again, of 40", n)
	}
}

// TestForgetOfADamagedCache checks that no content of an unreadable cache stays.
func TestForgetOfADamagedCache(t *testing.T) {
	dir := t.TempDir()
	secret := bytes.Repeat([]byte("secret"), 1000)
	for _, name := range []string{"cache.db", "space.x.vec", "other.x.vec"} {
		if err := os.WriteFile(filepath.Join(dir, name), secret, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := semantic.Forget(t.Context(), dir, "space"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "cache.db")); err != nil || bytes.Contains(b, []byte("secret")) {
		t.Errorf("the cache is as it was: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "space.x.vec")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := semantic.Forget(t.Context(), filepath.Join(dir, "none"), "space"); err != nil {
		t.Errorf("where there is no directory: %v", err)
	}
}
