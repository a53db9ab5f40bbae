package gitstore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/merge"
	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// decodeChanges makes a change set of fuzzed bytes. The words are short, so that paths often
// collide.
func decodeChanges(data []byte) (cs space.ChangeSet) {
	words := []string{"a", "b", "a.md", "d", "D", ".git", "..", "", "x\x00", "a.conflict-0123456789.md", strings.Repeat("l", 255), ".bashrc", "é"}
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	cs.Policy = space.Policy(next() % 2)
	for len(data) > 0 && len(cs.Changes) < 30 {
		var segs []string
		for range 1 + next()%4 {
			segs = append(segs, words[next()%len(words)])
		}
		c := space.Change{Path: strings.Join(segs, "/"), Op: space.Op(next() % 2), Mode: space.Mode(next() % 3)}
		c.Content = []byte(words[next()%len(words)])
		switch next() % 3 {
		case 1:
			c.Base = space.BlobID(strings.Repeat("1", 40))
		case 2:
			c.Base = "head" // replaced by the blob of head
		}
		cs.Changes = append(cs.Changes, c)
	}
	return cs
}

// FuzzChangeSets checks for any change set that every entry has an outcome, that the space's
// files obey the rules, and that nothing of head is lost without a fresh base.
//
//fuzz:slow
func FuzzChangeSets(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x01\x02\x01\x03\x01\x00\x00\x04\x00"))
	f.Add([]byte("\x00\x01\x03\x00\x01\x00\x02\x02\x02\x00\x00\x01\x02\x02\x01\x02"))
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		b := make([]byte, 60)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	s := newStore(f, func(o *Options) { o.Sync = func(*os.File) error { return nil } })
	f.Fuzz(func(t *testing.T, data []byte) {
		id := space.NewSpaceID()
		start := map[string]string{"a": "a", "d/a": "da", "d/d/b": "ddb", "b/a.md": "bam"}
		if _, err := s.Create(t.Context(), id, writes(start), space.Meta{}); err != nil {
			t.Fatal(err)
		}
		defer s.Remove(context.Background(), id)
		cs := decodeChanges(data)
		fresh := map[string]bool{}
		for i, c := range cs.Changes {
			if c.Base == "head" {
				cs.Changes[i].Base = ""
				if p, err := space.ParsePath(c.Path); err == nil {
					cs.Changes[i].Base = at(t, s, id, string(p))
					fresh[c.Path] = true
				}
			}
		}
		c, err := s.Commit(t.Context(), id, cs, space.Meta{Author: ada})
		if err != nil {
			if cs.Policy != space.RefuseStale || fault.CodeOf(err) != fault.Conflict {
				t.Fatalf("%v: %+v", err, cs)
			}
			return
		}
		files, err := s.Files(t.Context(), id, "", "")
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		content := map[string]bool{}
		for _, x := range files {
			if _, err := space.ParsePath(string(x.Path)); err != nil {
				t.Fatalf("%q is in the space: %+v", x.Path, cs)
			}
			have[string(x.Path)] = true
			content[string(x.Blob)] = true
		}
		for p := range start {
			if !have[p] && !fresh[p] {
				t.Fatalf("%q is lost: %+v", p, cs)
			}
		}
		for _, k := range c.Conflicts {
			if k.Kept != "" && !have[string(k.Kept)] {
				t.Fatalf("%q was told as kept and is not: %+v", k.Kept, cs)
			}
		}
		refused := map[string]bool{}
		for _, x := range c.Rejected {
			refused[x.Path] = true
		}
		last := map[string]space.Change{}
		for _, x := range cs.Changes {
			last[x.Path] = x
		}
		for p, x := range last {
			if x.Op == space.Write && !refused[p] && !content[blobOf(x.Content)] {
				t.Fatalf("the content for %q is nowhere: %+v", p, cs)
			}
		}
		// The commit must list exactly the differences of the trees.
		diff, err := s.Diff(t.Context(), id, c.Parent, c.ID)
		if c.Changed && (err != nil || fmt.Sprint(diff) != fmt.Sprint(c.Files)) {
			t.Fatalf("told %v, differs in %v (%v)", c.Files, diff, err)
		}
	})
}

func blobOf(data []byte) string {
	return plumbing.ComputeHash(plumbing.BlobObject, data).String()
}

// FuzzConflictName checks for any path that its conflict name obeys the rules, and is
// recognised as the name of a conflict copy.
func FuzzConflictName(f *testing.F) {
	for _, p := range []string{"a.md", ".bashrc", "d/e.tar.gz", strings.Repeat("é", 127), strings.Repeat("d/", 31) + "f", strings.Repeat("abcdefg/", 28) + strings.Repeat("x", 255), "a." + strings.Repeat("e", 250)} {
		f.Add(p, 1)
	}
	f.Fuzz(func(t *testing.T, p string, n int) {
		parsed, err := space.ParsePath(p)
		if err != nil || n < 1 || n > 1000 {
			return
		}
		name, ok := merge.ConflictName(string(parsed), "", space.CommitID(strings.Repeat("ab", 20)), n)
		if !ok {
			t.Fatalf("no name for %q", p)
		}
		if _, err := space.ParsePath(string(name)); err != nil || name == parsed || !space.IsConflictCopy(name) {
			t.Fatalf("%q → %q: %v", p, name, err)
		}
	})
}

// FuzzObjects checks that foreign trees, commits, pack entries and deltas are refused and not
// trusted.
func FuzzObjects(f *testing.F) {
	f.Add([]byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa40000 d\x00bbbbbbbbbbbbbbbbbbbb"))
	f.Add([]byte("tree 0123456789012345678901234567890123456789\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 99999999999999999999 +9999\n\nm\n\nSatchel-Tool: x\n"))
	f.Add([]byte{0xe5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		if es, err := packfile.ParseTree(data); err == nil {
			if again, err := packfile.ParseTree(packfile.EncodeTree(es)); err != nil || len(again) != len(es) {
				t.Fatal(err)
			}
		}
		if c, err := commits.Parse(data); err == nil {
			c.Read(packfile.Hash{})
		}
		if e, err := packfile.ReadEntry(bytes.NewReader(data), 0); err == nil {
			e.Inflate(bytes.NewReader(data), e.Size)
		}
		packfile.Patch(packfile.Object{Data: []byte("base")}, [][]byte{data})
	})
}
