package upstream

import (
	"slices"
	"testing"

	"satchel/internal/testenv"
)

// Whatever names a git server sends, no file leaves the directory of the source that the settings name.
func TestNamesOfAGitServerStayInTheirDirectory(t *testing.T) {
	g := &gitFiles{OutputPath: "out"}
	var tree []byte
	for _, name := range []string{"a.md", "../b.md", "x/../../c.md", "../out/d.md", "./e.md", "f/./g.md", "/h.md", "i//j.md", ".git/config", "..", "k/..md"} {
		tree = append(tree, "100644 blob 78981922613b2afb6025042ff6bd878ac1994e85\t"+name+"\x00"...)
	}
	blobs, err := g.choose(tree)
	if err != nil {
		t.Fatal(err)
	}
	s := &webSink{skipped: map[string]Reason{}}
	address := func(p string) string { return "https://git.example/docs#" + p }
	changed, err := g.keep(testenv.Context(t), blobs, address, s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range changed {
		got = append(got, string(g.file(b, address).Path))
	}
	if want := []string{"out/a.md", "out/k/..md"}; !slices.Equal(got, want) || len(s.skipped) != len(blobs)-len(want) {
		t.Errorf("attack: it takes %q, and leaves %v out", got, s.skipped)
	}
}
