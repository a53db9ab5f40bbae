package parse_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/tools/index/indextest"
	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

func TestTerms(t *testing.T) {
	a := parse.NewAnalyzer()
	for _, c := range []struct{ text, words, extra string }{
		{"Use useAsyncData now", "use useasyncdata now", "use async data"},
		{"use_async_data", "use async data", "useasync useasyncdata"},
		{"the HTTPServer", "the httpserver", "http server"},
		{"v1.0.21 of 1.0.21", "v1 0 21 of 1 0 21", "1·0 1·0·21 1·0 1·0·21"},
		{"on 2026-11-22 at 10:30", "on 2026 11 22 at 10 30", "202611 20261122"},
		{"Café ÜBER naïve", "cafe uber naiv", ""},
		{"日本語の文", "日本 本語 語の の文", "文"},
		{"한국어 a", "한국 국어 a", "어"},
		{"字", "字", ""},
		{"สวัสดี", "สวั วัส สดี", "ดี"},
		{"Привет, мир", "привет мир", ""},
		{"ＦＵＬＬ width", "full width", ""},
		{`"; DROP TABLE -- OR NEAR(a)`, "drop tabl or near a", ""},
		{strings.Repeat("a", 500) + " ok", "ok", ""},
		{"bad \xff\xfe bytes", "bad byte", ""},
		{"v-if on a node:fs module", "v if on a node fs modul", "vif nodef"},
		{"nuxt.config.ts", "nuxt config ts", "nuxtconfig nuxtconfigt"},
		{"import @nuxt/kit today", "import nuxt kit today", "nuxtkit"},
		{"C++ and C# in .NET", "c and c in net", "cpp csharp dotnet"},
		{"F#, g++ and a.C", "f g and a c", "fsharp gpp ac"},
		{"a .env file, x.map() and\n.then()", "a env file x map and then", "dotenv xmap"},
		{"HTTP/2 or HTTP2, and/or a/b", "http 2 or http2 and or a b", "http2 http 2"},
		{"std::vector<T>", "std vector t", ""},
	} {
		words, extra := a.Terms(c.text, nil, nil)
		if got := strings.Join(words, " "); got != c.words {
			t.Errorf("%q: words %q, want %q", c.text, got, c.words)
		}
		if got := strings.Join(extra, " "); got != c.extra {
			t.Errorf("%q: extra %q, want %q", c.text, got, c.extra)
		}
	}
}

// A page in a language also has the stem of that language for each word. The other terms of the
// word are the same in every language.
func TestTermsInALanguage(t *testing.T) {
	a := parse.NewAnalyzer()
	for _, c := range []struct{ lang, text, words, extra string }{
		{"de", "Die Häuser der Städte, useAsyncData", "die hauser der stadt useasyncdata", "de·haus de·stadt use async data"},
		{"fr", "Les composants personnalisés", "les compos personnalis", "fr·compos fr·personnalis"},
		{"pt-br", "configurações", "configuraco", "pt·configur"},
		{"ja", "日本 astro", "日本 astro", "本"},
		{"en", "running houses", "run hous", ""},
		{"", "running houses", "run hous", ""},
	} {
		a.In(c.lang)
		words, extra := a.Terms(c.text, nil, nil)
		a.In("")
		if got := strings.Join(words, " "); got != c.words {
			t.Errorf("%s %q: words %q, want %q", c.lang, c.text, got, c.words)
		}
		if got := strings.Join(extra, " "); got != c.extra {
			t.Errorf("%s %q: extra %q, want %q", c.lang, c.text, got, c.extra)
		}
	}
}

// FuzzAnalysis checks for any bytes and any language that a query which repeats a page's text
// finds each of its words, and that the analysis only depends on the text.
func FuzzAnalysis(f *testing.F) {
	for _, s := range []string{"useAsyncData and use_async_data", "日本語 ｱﾞ", "Straße İstanbul", "ёлка Київ", "المكوّنات", "हिन्दी", "v1.0.21 C++ .NET @a/b", "\xff\xfea\u0301", "a\u0300\u0301\u0302", "ﬁﬂ ½ Ⅷ"} {
		for _, l := range []string{"", "de", "tr", "vi", "pt-br"} {
			f.Add(l, s)
		}
	}
	f.Fuzz(func(t *testing.T, lang, text string) {
		a := parse.NewAnalyzer()
		plain, _ := a.Terms(text, nil, nil)
		a.In(lang)
		words, extra := a.Terms(text, nil, nil)
		again, more := parse.NewAnalyzer(), []string(nil)
		again.In(lang)
		words2, more := again.Terms(text, nil, more)
		if !slices.Equal(words, plain) || !slices.Equal(words, words2) || !slices.Equal(extra, more) {
			t.Fatalf("%q in %q: %q and %q, %q and %q", text, lang, words, words2, extra, more)
		}
		for _, w := range slices.Concat(words, extra) {
			if w == "" || !utf8.ValidString(w) || strings.ContainsAny(w, " \"'()*^:+\x00") {
				t.Fatalf("%q has the term %q", text, w)
			}
		}
		a.In("")
		a.Words(text, func(w parse.Word) {
			if w.Start < 0 || w.Start >= w.End || w.End > len(text) {
				t.Fatalf("%q: a word from %d to %d", text, w.Start, w.End)
			}
		})
		language.Detect([]byte(text))
		language.OfPath(text)
		parse.Family(text)
		parse.Newer(text, lang)
	})
}

func BenchmarkAnalysis(b *testing.B) {
	g := indextest.NewGenerator(1)
	text := string(g.Page(200_000))
	for _, lang := range []string{"", "de", "fr"} {
		b.Run("lang="+lang, func(b *testing.B) {
			a := parse.NewAnalyzer()
			var words, extra []string
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				a.In(lang)
				words, extra = a.Terms(text, words[:0], extra[:0])
				a.In("")
			}
		})
	}
	b.Run("detect", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			language.Detect([]byte(text))
		}
	})
}
