package syncs_test

import (
	"slices"
	"testing"

	"satchel/gitstore/sources/syncs"
	"satchel/internal/space"
)

// A sync learns the names and the version of the library from the package files at the root of a source,
// and a branch that names a version counts first. Files of examples, and generic names, say nothing.
func TestNamesAndVersionOfAPackage(t *testing.T) {
	b := newBench(t)
	b.server.Push("docs", "main", map[string]string{
		"package.json":                 `{"name": "@tanstack/react-query", "version": "5.62.0-beta.1"}`,
		"pyproject.toml":               "[build-system]\nname = \"no\"\n[project]\nname = \"flask\" # the web framework\nversion = '0.0.0'\n",
		"go.mod":                       "module github.com/spf13/cobra/v2\n\ngo 1.24\n",
		"Cargo.toml":                   "[package]\nname = \"docs\"\n[dependencies]\nserde = \"1\"\n",
		"examples/basic/package.json":  `{"name": "another"}`,
		"examples/deep/pyproject.toml": "[project]\nname = \"deep\"\n",
		"a.md":                         "# A",
	})
	b.server.Push("docs", "v4.x", map[string]string{"package.json": `{"name": 7}`, "a.md": "# A"})
	b.add()
	of := func() syncs.Package {
		t.Helper()
		if r := b.sync(); r.Problem != "" {
			t.Fatal(r.Problem)
		}
		return b.Package(space.Source{ID: "handbook", Space: b.space})
	}
	if p := of(); !slices.Equal(p.Names, []string{"cobra", "tanstack/react-query", "react-query", "flask"}) || p.Version != "2" {
		t.Errorf("%+v", p)
	}
	if p := of(); len(p.Names) != 4 {
		t.Errorf("after a sync without changes: %+v", p)
	}
	if p := b.Package(space.Source{ID: "handbook", Space: space.NewSpaceID()}); len(p.Names) > 0 {
		t.Errorf("another source with the ID: %+v", p)
	}
	must(t, b.Change(b.ctx, "handbook", syncs.Setting{Settings: []byte(`{"url": "` + b.server.URL("docs") + `", "branch": "v4.x"}`), Trusted: true}))
	if r, err := b.Sync(b.ctx, "handbook", false, true, func(space.SyncProgress) {}); err != nil || r.Problem != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if p := b.Package(space.Source{ID: "handbook", Space: b.space}); len(p.Names) != 0 || p.Version != "4.x" {
		t.Errorf("of the branch: %+v", p)
	}
}
