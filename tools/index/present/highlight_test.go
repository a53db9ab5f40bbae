package present

import (
	"fmt"
	"math/bits"
	"testing"

	"satchel/tools/index/parse"
)

// What is not analysed must not hold a term: each finds what all words of the
// text would, whatever stands between them.
func TestHighlightedWordsAreFound(t *testing.T) {
	const text = "Use useAsyncData() or use-async-data, v1.0.21 and .NET, or\t.NET (C++, C#).\n" +
		"The HTTPServer's Straße, naïve İstanbul; 日本語の検索 @nuxt/kit node:fs HTTP/2 x2y snake_case\u00a0deployed DEPLOYING, dying skies"
	a := parse.NewAnalyzer()
	seen := map[string]bool{}
	a.Words(text, func(o parse.Word) {
		for _, term := range append(o.Parts, o.Term, o.Joined, o.Own) {
			seen[term] = true
		}
	})
	delete(seen, "")
	for term := range seen {
		w := newHighlightTerms(nil)
		w.add(term, 1)
		want, got := []string{}, []string{}
		a.Words(text, func(o parse.Word) {
			if mask := w.in(o); mask != 0 {
				want = append(want, fmt.Sprint(o.Start, bits.OnesCount64(mask)))
			}
		})
		w.each(a, text, func(start int, mask uint64) { got = append(got, fmt.Sprint(start, bits.OnesCount64(mask))) })
		if len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q is at %v, and was found at %v", term, want, got)
		}
	}
	if len(seen) < 40 {
		t.Errorf("the text has only %d terms", len(seen))
	}
}
