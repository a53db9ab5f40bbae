package admin

import (
	"slices"
	"testing"

	"satchel/internal/space"
)

// Attack: an AI writes megabytes whose names sort before the file with the password,
// and a look ends before it comes there.
func TestLikelyFilesFirst(t *testing.T) {
	var files []space.Entry
	for _, f := range []struct {
		path space.Path
		size int64
	}{
		{"a/huge.json", hugeFile + 1}, {"a/large.yaml", hugeFile}, {"a/small.md", smallFile}, {"b.md", 10}, {"b/Config.YAML", 10},
		{"c.md", smallFile + 1}, {"d/.env.local", 1}, {"e/prod.env", 1}, {"zz/app.toml", smallFile}, {"zz/db.ini", 1},
	} {
		files = append(files, space.Entry{Path: f.path, Size: f.size})
	}
	likelyFirst(files)
	var got []space.Path
	for _, f := range files {
		got = append(got, f.Path)
	}
	want := []space.Path{"b/Config.YAML", "d/.env.local", "e/prod.env", "zz/app.toml", "zz/db.ini", "a/small.md", "b.md", "a/large.yaml", "c.md", "a/huge.json"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
