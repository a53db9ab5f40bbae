package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"satchel/internal/testenv"
	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// translated is a page of documentation that exists in several languages, in folders named
// after them.
type translated struct {
	path, lang, title, phrase string
}

// scriptOf names the script that identifies a language.
var scriptOf = map[string][]*unicode.RangeTable{
	"ja": {unicode.Hiragana, unicode.Katakana, unicode.Han},
	"ko": {unicode.Hangul}, "zh-cn": {unicode.Han}, "ar": {unicode.Arabic}, "ru": {unicode.Cyrillic},
}

// ownWords returns a page's title and the first long run of prose, each only if it is in
// the script of the language, or else "".
func ownWords(lang string, p parse.Page, text []byte) (title, phrase string) {
	own := func(s string, least int) bool {
		n := 0
		for _, r := range s {
			if unicode.In(r, scriptOf[lang]...) {
				n++
			}
		}
		return n >= least
	}
	if own(p.Title, 2) {
		title = p.Title
	}
	_, body := parse.CutFrontMatter(text)
	for _, l := range parse.MarkdownLines(text, body) {
		s := strings.TrimSpace(string(text[l.Start:l.End]))
		if l.Level > 0 || strings.ContainsAny(s, "<>`[]{}*") || !own(s, 15) {
			continue
		}
		r := []rune(s)
		return title, string(r[:min(len(r), 60)])
	}
	return title, ""
}

// TestFourteenLanguages searches one documentation in 14 languages. An English question is
// answered in English, with no page twice, and a page is found by its own words in its own
// language. TestEachPageOnceInTheReadersLanguage checks the same on generated pages.
func TestFourteenLanguages(t *testing.T) {
	const under = "src/content/docs/"
	files := readTar(t, testenv.LargeData(t, "docs", "astro.tar.gz"), func(p string) bool { return true })
	var pages []translated
	titles := map[string]int{}
	for p, data := range files {
		rest, ok := strings.CutPrefix(p, under)
		if lang, _, dir := strings.Cut(rest, "/"); ok && dir {
			pg := parse.Parse(p, data, 10)
			x := translated{path: p, lang: lang, title: pg.Title}
			if lang != "en" {
				x.title, x.phrase = ownWords(lang, pg, data)
			}
			titles[lang+x.title]++
			pages = append(pages, x)
		}
	}
	slices.SortFunc(pages, func(a, b translated) int { return strings.Compare(a.path, b.path) })

	t.Run("detection", func(t *testing.T) {
		right, wrong := 0, 0
		for _, p := range pages {
			switch language.Detect(files[p.path]) {
			case language.Base(p.lang):
				right++
			case "":
			default:
				wrong++
			}
		}
		t.Logf("of %d pages the language of %d is told, of %d wrongly", len(pages), right+wrong, wrong)
		if right*100 < 96*len(pages) || wrong*100 > len(pages) {
			t.Errorf("the language of %d of %d pages is told rightly, of %d wrongly", right, len(pages), wrong)
		}
	})

	h := newHistory()
	h.commit(files)
	x := openIndex(t, Options{})
	update(t, x, h)

	// sample returns at most n of the pages that keep accepts, spread evenly.
	sample := func(n int, keep func(translated) bool) (all []translated) {
		for _, p := range pages {
			if keep(p) {
				all = append(all, p)
			}
		}
		var some []translated
		for i := range min(n, len(all)) {
			some = append(some, all[i*len(all)/min(n, len(all))])
		}
		return some
	}

	t.Run("english", func(t *testing.T) {
		asked := strings.Split(`how do I fetch data from an API|content collections schema|deploy to a subfolder with a base path|view transitions|server side rendering on demand|optimize images|environment variables|routing with dynamic parameters|configure the markdown renderer|why does my island not hydrate`, "|")
		for _, p := range sample(50, func(p translated) bool { return p.lang == "en" }) {
			asked = append(asked, p.title)
		}
		bad := 0
		for _, q := range asked {
			r := search(t, x, q)
			english, distinct := 0, map[string]bool{}
			for _, hit := range r.Hits {
				_, key, _ := strings.Cut(strings.TrimPrefix(hit.Path, under), "/")
				distinct[key] = true
				if hit.Lang == "en" || hit.Lang == "" {
					english++
				}
			}
			want := 9
			if len(r.Hits) < want { // there may be fewer matching pages
				want = min(want, len(search(t, x, q+" lang:en").Hits))
			}
			if len(distinct) < want || english < want {
				bad++
				t.Logf("%q: %d hits, %d distinct, %d in English: %v", q, len(r.Hits), len(distinct), english, paths(r))
			}
		}
		t.Logf("%d of %d English queries fall short", bad, len(asked))
		if bad > 0 {
			t.Errorf("%d of %d English queries have fewer than nine distinct English documents", bad, len(asked))
		}
	})
	for _, lang := range []string{"ja", "ko", "zh-cn", "ar", "ru"} {
		t.Run(lang, func(t *testing.T) {
			for what, word := range map[string]func(translated) string{
				"title":  func(p translated) string { return p.title },
				"phrase": func(p translated) string { return p.phrase },
			} {
				some := sample(50, func(p translated) bool {
					return p.lang == lang && word(p) != "" && titles[lang+p.title] == 1
				})
				first := 0
				for _, p := range some {
					r := search(t, x, word(p))
					if len(r.Hits) > 0 && r.Hits[0].Path == p.path {
						first++
						continue
					}
					got := "nothing"
					if len(r.Hits) > 0 {
						got = fmt.Sprintf("%s (%s)", r.Hits[0].Path, r.Hits[0].Title)
					}
					t.Logf("%s %q of %s finds %s", what, word(p), p.path, got)
				}
				t.Logf("%s: %d of %d %ss find their page first", lang, first, len(some), what)
				if len(some) < 5 || first*100 < 80*len(some) {
					t.Errorf("%s: only %d of %d %ss find their page first", lang, first, len(some), what)
				}
			}
		})
	}
}
