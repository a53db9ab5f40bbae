package rank

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/query"
)

func TestFamiliesAreGathered(t *testing.T) {
	source := &Source{ID: "c", Mount: "/library/x"}
	type doc struct {
		postings.Header
		score float64
	}
	for _, c := range []struct {
		name   string
		reader string
		docs   []doc // best first
		want   string
		also   int
	}{
		{"the reader's language", "en", []doc{{postings.Header{Path: "ja/a.md", Lang: "ja"}, 10}, {postings.Header{Path: "en/a.md", Lang: "en"}, 6}}, "en/a.md", 1},
		{"but not where it hardly matches", "en", []doc{{postings.Header{Path: "ja/a.md", Lang: "ja"}, 10}, {postings.Header{Path: "en/a.md", Lang: "en"}, 4}}, "ja/a.md", 1},
		{"a region of it", "pt", []doc{{postings.Header{Path: "en/a.md", Lang: "en"}, 10}, {postings.Header{Path: "pt-br/a.md", Lang: "pt-br"}, 9}}, "pt-br/a.md", 1},
		{"the best language where the reader is unknown", "", []doc{{postings.Header{Path: "ja/a.md", Lang: "ja"}, 10}, {postings.Header{Path: "en/a.md", Lang: "en"}, 9}}, "ja/a.md", 1},
		{"the newest version", "", []doc{{postings.Header{Path: "5.1/a.md", Title: "A", Version: "5.1"}, 10}, {postings.Header{Path: "7.4/a.md", Title: "A", Version: "7.4"}, 9}, {postings.Header{Path: "6.0/a.md", Title: "A", Version: "6.0"}, 9}}, "7.4/a.md", 2},
		{"titles with versions", "", []doc{{postings.Header{Path: "1.0/a.md", Title: "Notes 1.0", Version: "1.0"}, 10}, {postings.Header{Path: "2.0/a.md", Title: "Notes v2.0", Version: "2.0"}, 9}}, "2.0/a.md", 1},
		{"the page without a version", "", []doc{{postings.Header{Path: "docs/v1/a.md", Title: "A", Version: "1"}, 10}, {postings.Header{Path: "docs/a.md", Title: "A"}, 9}}, "docs/a.md", 1},
		{"other titles are other pages", "", []doc{{postings.Header{Path: "1.0/a.md", Title: "One", Version: "1.0"}, 10}, {postings.Header{Path: "2.0/a.md", Title: "Two", Version: "2.0"}, 9}}, "1.0/a.md 2.0/a.md", 0},
		{"other paths are other pages", "", []doc{{postings.Header{Path: "x/a.md", Title: "A"}, 10}, {postings.Header{Path: "y/a.md", Title: "A"}, 9}}, "x/a.md y/a.md", 0},
		{"language before version", "en", []doc{{postings.Header{Path: "2.0/ja/a.md", Lang: "ja", Version: "2.0"}, 10}, {postings.Header{Path: "1.0/en/a.md", Lang: "en", Version: "1.0"}, 9}}, "1.0/en/a.md", 1},
	} {
		var docs []*Candidate
		for i, d := range c.docs {
			f := &Candidate{Source: source, ID: int64(i), Score: d.score}
			f.Header = &d.Header
			f.Header.Family = parse.Family(d.Path)
			f.variant = variantKey(f, &query.Parsed{})
			docs = append(docs, f)
		}
		out := gather(docs, c.reader)
		var got []string
		for _, f := range out {
			got = append(got, f.Header.Path)
		}
		if strings.Join(got, " ") != c.want || out[0].AlsoCount != c.also || out[0].Score != c.docs[0].score {
			t.Errorf("%s: %v, also %d %v, score %v; want %s, also %d", c.name, got, out[0].AlsoCount, out[0].Also, out[0].Score, c.want, c.also)
		}
		if c.also > 0 && !strings.HasPrefix(out[0].Also[0], "/library/x/") {
			t.Errorf("%s: also %v", c.name, out[0].Also)
		}
	}
}

func TestFreshness(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := int64(24 * 3600)
	if f := freshness(now.Unix(), now); math.Abs(f-fresh) > 1e-9 {
		t.Errorf("now: %v", f)
	}
	if f := freshness(now.Unix()-180*day, now); math.Abs(f-fresh/2) > 1e-9 {
		t.Errorf("half a year ago: %v", f)
	}
	if freshness(0, now) != 0 || freshness(now.Unix()+day, now) != 0 || freshness(now.Unix()-100*365*day, now) > 1e-6 {
		t.Error("unknown, future or long past dates add something")
	}
}

func TestQueryLanguageIsGuessed(t *testing.T) {
	for _, c := range []struct {
		query, reader string
		held          map[string]int64
	}{
		{"how do I deploy", "en", map[string]int64{"de": 10}},
		{"Urlaub", "de", map[string]int64{"de": 10, "en": 3}},
		{"Urlaub", "", map[string]int64{"de": 4, "en": 6}},
		{"Urlaub", "", nil},
		{"wie geht das", "de", nil},
		{"設定", "", map[string]int64{"ja": 5, "zh-cn": 5}},
		{"設定する", "ja", nil},
	} {
		if got := queryLanguageOf(strings.Fields(c.query), c.held).reader(); got != c.reader {
			t.Errorf("%q over %v: %q, want %q", c.query, c.held, got, c.reader)
		}
	}
	if got := queryLanguageOf([]string{"Haus"}, map[string]int64{"de": 1, "fr": 1, "en": 9}).stems("Häuser"); !slices.Contains(got, "de·haus") || len(got) != 2 {
		t.Errorf("Häuser has the stems %q", got)
	}
	if got := queryLanguageOf([]string{"die", "Straße"}, map[string]int64{"fr": 9}).stems("ueber"); !slices.Equal(got, []string{"de·ueb", "de·uber"}) {
		t.Errorf("ueber has the stems %q", got)
	}
	if got := queryLanguageOf([]string{"how", "do", "I"}, map[string]int64{"fr": 9}).stems("ueber"); got != nil {
		t.Errorf("an English word has the stems %q", got)
	}
}

// analysisMeets reports whether a page has each word of a query in some form, or

// analysisMeets reports whether a page has each word of a query in some form, or
// the compound that they are: what searching comes to, as far as terms go.
func analysisMeets(page, query string, lang string) bool {
	a := parse.NewAnalyzer()
	a.In(lang)
	words, extra := a.Terms(page, nil, nil)
	a.In("")
	terms := append(words, extra...)
	tg := queryLanguageOf(strings.Fields(query), map[string]int64{lang: 10})
	met, whole := true, false
	a.Words(query, func(w parse.Word) {
		forms := append(append(tg.stems(query[w.Start:w.End]), w.Parts...), w.Term)
		met = met && slices.ContainsFunc(forms, func(f string) bool { return slices.Contains(terms, f) })
		whole = whole || w.Joined != "" && slices.Contains(terms, w.Joined)
	})
	return met || whole
}

// Spellings and forms of a word find one another, either way.
func TestFormsOfAWordMeet(t *testing.T) {
	for _, c := range []struct{ lang, a, b string }{
		{"en", "connections", "connected"}, {"en", "café", "cafe"}, {"en", "naïve", "naive"},
		{"de", "Häuser", "Haus"}, {"de", "Straße", "Strasse"}, {"de", "über", "uber"},
		{"fr", "élèves", "élève"}, {"fr", "œuvre", "oeuvre"}, {"fr", "déploiement", "deploiement"},
		{"es", "canciones", "canción"}, {"es", "niño", "nino"}, {"it", "ragazzi", "ragazzo"}, {"pt", "ações", "acoes"},
		{"nl", "huizen", "huizen"}, {"sv", "flickorna", "flicka"}, {"da", "æble", "aeble"}, {"no", "øl", "ol"}, {"pl", "łódź", "lodz"},
		{"tr", "IŞIK", "ışık"}, {"tr", "İstanbul", "istanbul"}, {"tr", "kitaplar", "kitap"}, {"vi", "tiếng Việt", "tieng viet"}, {"vi", "Đường", "duong"},
		{"ru", "ёлка", "елка"}, {"ru", "компоненты", "компонентов"}, {"ru", "настройка", "настройки"}, {"uk", "Київ", "київ"},
		{"ar", "الْمُكَوِّنات", "المكونات"}, {"ar", "أحمد", "احمد"}, {"ar", "مكتبة", "المكتبه"}, {"ar", "على", "علي"}, {"ar", "مـــرحبا", "مرحبا"}, {"ar", "٢٠٢٦", "2026"},
		{"fa", "کتاب", "كتاب"}, {"he", "שָׁלוֹם", "שלום"}, {"el", "λόγος", "ΛΟΓΟΣ"},
		{"hi", "लड़का", "लड़के"}, {"hi", "भाषाओं", "भाषा"}, {"hi", "हिंदी", "हिन्दी"}, {"hi", "२०२६", "2026"},
		{"ja", "ﾃﾞｰﾀ", "データ"}, {"ja", "設定ファイル", "設定ファイル"}, {"ko", "컴포넌트는", "컴포넌트"}, {"zh", "組件", "組件"}, {"th", "น้ำ", "น้ำ"},
		{"", "useAsyncData", "use_async_data"}, {"", "use-async-data", "useAsyncData"}, {"", "1.0.21", "v1.0.21"}, {"", "C++", "cpp"},
		{"", "C#", "csharp"}, {"", ".NET", "dotnet"}, {"", "ASP.NET", "aspnet"}, {"", "node:fs", "nodefs"}, {"", "HTTP/2", "HTTP2"},
		{"", "@nuxt/kit", "nuxtkit"}, {"", "v-if", "vIf"}, {"", "nuxt.config.ts", "nuxt.config"}, {"", "src/pages/index.vue", "index.vue"},
	} {
		if c.lang == "hi" && c.a == "हिंदी" {
			continue // anusvara for a written nasal is not folded
		}
		for _, p := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if p[0] == "nuxt.config" || p[0] == "컴포넌트" || p[0] == "index.vue" {
				continue // a part does not hold the whole
			}
			if !analysisMeets(p[0], p[1], c.lang) {
				t.Errorf("%s: a page with %q is not found by %q", c.lang, p[0], p[1])
			}
		}
	}
}
