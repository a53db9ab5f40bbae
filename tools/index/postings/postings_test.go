package postings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/indextest"
	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// A segment does not depend on whether its writer remembers the lists of terms. The pages
// alternate between several vocabularies, more than the writer remembers.
func TestListsAreRememberedByVocabulary(t *testing.T) {
	g := indextest.NewGenerator(11)
	w := &Writer{seg: segment.NewWriter(), lists: map[*parse.VocabularyID][]int32{}}
	plain := segment.NewWriter()
	analyzers := []*parse.Analyzer{&parse.Analyzer{Known: parse.NewVocabulary(40)}, parse.NewBuilder(), &parse.Analyzer{Known: parse.NewVocabulary(200)}}
	for i := range 60 {
		a := analyzers[i%len(analyzers)]
		text := g.Page(3000)
		d := a.Analyse(space.FileChange{Path: space.Path(fmt.Sprintf("p%d.md", i))}, text, time.Time{}, MaxChunks)
		for part := range d.Terms {
			c := segment.Chunk{Doc: uint32(i), Part: uint16(part)}
			w.seg.Chunk(c)
			w.postings(&d.Terms[part])
			plain.Chunk(c)
			for _, tc := range d.Terms[part].Terms {
				plain.Term(d.Terms[part].Texts[tc.ID], tc.N)
			}
		}
		if len(w.lists) > maxVocabularies {
			t.Fatalf("the lists of %d vocabularies are remembered", len(w.lists))
		}
	}
	rows := func(w *segment.Writer) (all [][]byte) {
		head, _, err := w.Write(1, func(row []byte) error { all = append(all, row); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return append(all, head)
	}
	if !reflect.DeepEqual(rows(w.seg), rows(plain)) {
		t.Error("the segments differ")
	}
}

// A build whose context has ended leaves no file.
func TestACutOffBuildLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "a.1.db.new")
	if err := Build(ctx, file, Options{}, "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("made: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// Every path filter becomes a valid regular expression.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*", "[", "**/**/**", "{a,b}{c,d}", "a?c", "\x00\xff", "(+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { regexp.MustCompile(globRegexp(s)) })
}
