package index

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// forgetful is an analyzer that begins another vocabulary after so many words.
func forgetful(words int) *parse.Analyzer { return &parse.Analyzer{Known: parse.NewVocabulary(words)} }

// A full vocabulary is left for another one, and nothing that is made of words
// depends on when.
func TestVocabulariesFollowOneAnother(t *testing.T) {
	text := "useAsyncData and use_async_data, Häuser der Städte, 日本語の文, v1.0.21, C++ in @nuxt/kit, useAsyncData again, " + strings.Repeat("x", 60) + " " +
		"あ゛あ" + strings.Repeat("\u3099", 200) + " the end"
	for _, lang := range []string{"", "de"} {
		whole, small := parse.NewAnalyzer(), forgetful(3)
		whole.In(lang)
		small.In(lang)
		for range 3 {
			words, extra := whole.Terms(text, nil, nil)
			words2, extra2 := small.Terms(text, nil, nil)
			if !slices.Equal(words, words2) || !slices.Equal(extra, extra2) {
				t.Fatalf("%q and %q, %q and %q", words, words2, extra, extra2)
			}
		}
		// What is called asks the analyzer for other words, as queries do.
		var have, want []parse.Word
		whole.Words(text, func(w parse.Word) { want = append(want, w) })
		small.Words(text, func(w parse.Word) {
			small.Fold(fmt.Sprint("other", len(have)))
			small.Terms("some more words", nil, nil)
			have = append(have, w)
		})
		if !reflect.DeepEqual(have, want) {
			t.Fatalf("%+v, want %+v", have, want)
		}
	}
}

// A segment is the same whether its writer remembers the lists of terms or not:
// pages of several vocabularies, more of them than it remembers, in turn.
func TestListsAreRememberedByVocabulary(t *testing.T) {
	g := newGenerator(11)
	w := &writer{seg: segment.NewWriter(), lists: map[*parse.VocabularyID][]int32{}}
	plain := segment.NewWriter()
	analyzers := []*parse.Analyzer{forgetful(40), parse.NewBuilder(), forgetful(200)}
	for i := range 60 {
		a := analyzers[i%len(analyzers)]
		text := g.page(3000)
		d := a.Analyse(space.FileChange{Path: space.Path(fmt.Sprintf("p%d.md", i))}, text, time.Time{}, Options{}.withDefaults().MaxChunks)
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

// A short way is taken through few headings: those without marks are as they
// would be by the long one.
func TestCleanHeading(t *testing.T) {
	for in, want := range map[string]string{
		"Plain words": "Plain words", "**Bold** and *thin*": "Bold and thin", "__init__ _x_": "init _x_", "_*_": "__", "a [link](to/it) {#id}": "a link",
		"`a<b>` [x](y)": "a<b> x", "An <b>old</b> tag &amp; more": "An old tag & more", "![logo](x.png) Name": "logo Name", "C# {#c}": "C#",
	} {
		if got := parse.CleanHeading(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
