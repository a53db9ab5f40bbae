package parse_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"satchel/tools/index/parse"
)

// forgetful returns an analyzer that starts another vocabulary after a few words.
func forgetful(words int) *parse.Analyzer { return &parse.Analyzer{Known: parse.NewVocabulary(words)} }

// The analyzer replaces a full vocabulary. The results don't depend on when this happens.
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
		// The callback asks the analyzer for other words, as queries do.
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

// CleanHeading skips its expressions for headings without marks. This must not change the
// result.
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
