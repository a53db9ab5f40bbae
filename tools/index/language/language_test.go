package language_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/tools/index/language"
)

func TestNormal(t *testing.T) {
	for in, want := range map[string]string{
		"en": "en", "EN": "en", "pt_BR": "pt-br", "zh-Hans": "zh-hans", "English": "en", "Deutsch": "de", "de_DE.UTF-8": "de-de", " ja ": "ja",
		"": "", "x": "", "not a language": "", "日本語": "", "cn": "zh", "a/b": "", "${lang}": "",
	} {
		if got := language.Normal(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// OfPath removes a language from a path, so that all translations have the same rest.
func TestOfPath(t *testing.T) {
	for _, c := range []struct{ path, lang, rest string }{
		{"docs/ja/guide.md", "ja", "docs/guide.md"},
		{"docs/pt-br/guide.md", "pt-br", "docs/guide.md"},
		{"docs/zh_CN/guide.md", "zh-cn", "docs/guide.md"},
		{"docs/zh-Hant/guide.md", "zh-hant", "docs/guide.md"},
		{"en/a/b.md", "en", "a/b.md"},
		{"docs/guide.fr.md", "fr", "docs/guide.md"},
		{"README.zh-CN.md", "zh-cn", "README.md"},
		{"README_ja.md", "ja", "README.md"},
		{"readme-de.md", "de", "readme.md"},
		{"docs/guide.md", "", "docs/guide.md"},
		{"docs/go-it.md", "", "docs/go-it.md"},
		{"it.md", "", "it.md"},
		{"src/no/is/so/to.md", "", "src/no/is/so/to.md"},
		{"a.b.md", "", "a.b.md"},
		{"", "", ""},
	} {
		if lang, rest := language.OfPath(c.path); lang != c.lang || rest != c.rest {
			t.Errorf("%s is %q and %q, want %q and %q", c.path, lang, rest, c.lang, c.rest)
		}
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"Café": "cafe", "ÜBER": "uber", "Straße": "strasse", "ŒUVRE": "oeuvre", "ÆØÅ": "aeoa", "IıİI": "iiii", "łódź": "lodz", "Đường": "duong",
		"ﬁle": "file", "ＦＵＬＬ": "full", "Ёлка": "елка", "ΛΌΓΟΣ": "λογοσ", "λόγος": "λογοσ", "أحمد": "احمد", "مكتبة": "مكتبه", "مـرحبا": "مرحبا",
		"كَتَبَ": "كتب", "کتابی": "كتابي", "٢٠٢٦": "2026", "२०२६": "2026", "ﾃﾞｰﾀ": "データ", "שָׁלוֹם": "שלום", "ज़रा": "जरा",
	} {
		if got := language.Fold(in); got != want {
			t.Errorf("%s folds to %s, want %s", in, got, want)
		}
	}
}

// The words in each group have one stem, and the groups have different stems.
func TestStems(t *testing.T) {
	for _, c := range []struct{ lang, same, other string }{
		{"en", "connect connects connected connecting connection connections", "connoisseur"},
		{"en", "configure configures configured configuring", "configuration"},
		{"en", "composable composables", "composer"}, {"en", "query queries querying", "quest"}, {"en", "run running runs", "rune"},
		{"en", "cached caching cache caches", "cachet"},
		{"de", "Häuser Haus Hauses", "Maus"}, {"de", "Katze Katzen", "Kasten"},
		{"fr", "composant composants", "compte"}, {"fr", "installer installé installés installée", "instant"},
		{"es", "canción canciones", "cancela"}, {"es", "configurar configurado configurada", "confianza"},
		{"it", "ragazzo ragazzi ragazza", "ragione"}, {"pt", "configuração configurações", "confiança"},
		{"nl", "boek boeken", "bok"}, {"sv", "flicka flickor flickorna", "flock"}, {"da", "bog bogen", "by"}, {"no", "hus huset", "hest"},
		{"fi", "talo talon talot", "tali"}, {"hu", "ház házak", "hét"}, {"ro", "casă casa", "cal"}, {"tr", "kitap kitaplar", "kira"},
		{"ru", "компонент компоненты компонентов", "компания"}, {"ru", "настройка настройки настройку", "настрой"},
		{"ar", "مكتبة المكتبة والمكتبة", "مطبعة"}, {"hi", "भाषा भाषाओं", "भारत"},
	} {
		words := strings.Fields(c.same)
		stem := func(w string) string {
			if language.Stems(c.lang) {
				return language.Stem(c.lang, w)
			}
			return language.Term(w)
		}
		for _, w := range words[1:] {
			if stem(w) != stem(words[0]) {
				t.Errorf("%s: %s → %s, but %s → %s", c.lang, w, stem(w), words[0], stem(words[0]))
			}
		}
		if stem(c.other) == stem(words[0]) && c.lang != "en" {
			t.Errorf("%s: %s and %s have one stem", c.lang, c.other, words[0])
		}
	}
	// These words are from the vocabulary in the algorithm's description.
	for in, want := range map[string]string{
		"consign": "consign", "consistency": "consist", "consolatory": "consolatori", "knightly": "knight", "knots": "knot",
		"generously": "generous", "communication": "communic", "hopefulness": "hope", "troubled": "troubl", "sky": "sky", "ties": "tie", "cries": "cri", "by": "by", "say": "say",
	} {
		if got := language.Term(in); got != want {
			t.Errorf("%s → %s, want %s", in, got, want)
		}
	}
}

func TestIsStop(t *testing.T) {
	for _, c := range []struct {
		word  string
		langs []string
		want  bool
	}{
		{"the", nil, true}, {"die", nil, false}, {"die", []string{"de"}, true}, {"the", []string{"de"}, false}, {"où", []string{"fr-ca"}, true},
		{"ou", []string{"fr"}, true}, {"как", []string{"en", "ru"}, true}, {"astro", []string{"en", "de", "fr"}, false},
	} {
		if got := language.IsStop(c.word, c.langs...); got != c.want {
			t.Errorf("%s in %v: %v", c.word, c.langs, got)
		}
	}
}

var prose = map[string]string{
	"en": "This guide shows how you can add a page to your site and what to do when the build does not find it.",
	"de": "Diese Anleitung zeigt, wie du eine Seite zu deiner Website hinzufügst und was zu tun ist, wenn sie nicht gefunden wird.",
	"fr": "Ce guide montre comment ajouter une page à votre site et ce qu'il faut faire quand la compilation ne la trouve pas.",
	"es": "Esta guía muestra cómo añadir una página a tu sitio y qué hacer cuando la compilación no la encuentra.",
	"it": "Questa guida mostra come aggiungere una pagina al sito e che cosa fare quando la compilazione non la trova.",
	"pt": "Este guia mostra como adicionar uma página ao seu site e o que fazer quando a compilação não a encontra.",
	"nl": "Deze gids laat zien hoe je een pagina aan je site toevoegt en wat je moet doen als de bouw die niet vindt.",
	"pl": "Ten przewodnik pokazuje, jak dodać stronę do witryny i co zrobić, gdy nie można jej znaleźć podczas budowania.",
	"sv": "Den här guiden visar hur du lägger till en sida på din webbplats och vad du ska göra när den inte hittas.",
	"tr": "Bu rehber, sitenize nasıl bir sayfa ekleyeceğinizi ve derleme onu bulamadığında ne yapmanız gerektiğini gösterir.",
	"vi": "Hướng dẫn này cho thấy cách thêm một trang vào trang web của bạn và phải làm gì khi không tìm thấy nó.",
	"ru": "Это руководство показывает, как добавить страницу на сайт и что делать, когда сборка её не находит.",
	"uk": "Цей посібник показує, як додати сторінку на сайт і що робити, коли її не знайдено.",
	"ja": "このガイドでは、サイトにページを追加する方法を説明します。", "ko": "이 가이드에서는 사이트에 페이지를 추가하는 방법을 설명합니다.",
	"zh": "本指南说明如何向您的网站添加页面。", "ar": "يوضح هذا الدليل كيفية إضافة صفحة إلى موقعك.", "hi": "यह मार्गदर्शिका बताती है कि अपनी साइट पर एक पृष्ठ कैसे जोड़ें।",
	"el": "Αυτός ο οδηγός δείχνει πώς να προσθέσετε μια σελίδα.", "he": "מדריך זה מראה כיצד להוסיף דף לאתר שלך.", "th": "คู่มือนี้แสดงวิธีเพิ่มหน้าในเว็บไซต์ของคุณ",
}

func TestDetect(t *testing.T) {
	for want, text := range prose {
		if got := language.Detect([]byte("# Astro\n\n```js\nfor (const a of the) { if (b) do() }\n```\n\n" + text + "\n")); got != want {
			t.Errorf("%q, want %q: %s", got, want, text)
		}
		if g := language.OfQuery(strings.Fields(text)); g.Langs[0] != want || !g.Sure && want != "zh" {
			t.Errorf("as a query %+v, want %q: %s", g, want, text)
		}
	}
	for _, text := range []string{"", "astro nuxt vue", "| a | b |\n|---|---|\n| 1 | 2 |", "func main() { for i := range n {} }", "\xff\xfe\x00"} {
		if got := language.Detect([]byte(text)); got != "" {
			t.Errorf("%q is in %q", text, got)
		}
	}
}

func TestOfQuery(t *testing.T) {
	for _, c := range []struct {
		query, lang string
		sure        bool
	}{
		{"how do I fetch data", "en", true}, {"wie kann ich Daten laden", "de", true}, {"comment créer un composant", "fr", true},
		{"cómo configurar rutas", "es", true}, {"Astro コンポーネント", "ja", true}, {"컴포넌트", "ko", true}, {"环境变量", "zh", false},
		{"настройка Astro", "ru", true}, {"المكونات", "ar", true}, {"useAsyncData", "", false}, {"view transitions", "", false},
		{"Straße", "de", true}, {"", "", false},
	} {
		g := language.OfQuery(strings.Fields(c.query))
		got := ""
		if len(g.Langs) > 0 {
			got = g.Langs[0]
		}
		if got != c.lang || g.Sure != c.sure {
			t.Errorf("%q: %+v", c.query, g)
		}
	}
}

// FuzzWord checks for any letters that a word has a form of valid UTF-8, and that no stemmer
// fails.
func FuzzWord(f *testing.F) {
	for _, w := range []string{"running", "Häuser", "ёлка", "المكتبة", "भाषाओं", "İI", "\xff", "ﷺ", "a\u0301", "ǅ", "kitaplarımızdan", strings.Repeat("ö", 60)} {
		f.Add(w)
	}
	langs := strings.Fields("ar da de en es fi fr hu it nl no pt ro ru sv tr vi ja xx")
	f.Fuzz(func(t *testing.T, w string) {
		w = strings.ToValidUTF8(w, "")
		if language.Term(w) != language.Term(w) || !utf8.ValidString(language.Term(w)) {
			t.Fatalf("%q: %q", w, language.Term(w))
		}
		if f := language.Fold(w); language.Fold(f) != f {
			t.Fatalf("%q folds to %q, which folds to %q", w, f, language.Fold(f))
		}
		for _, l := range langs {
			if s := language.Stem(l, w); !utf8.ValidString(s) {
				t.Fatalf("%s %q: %q", l, w, s)
			}
		}
		language.Normal(w)
		language.OfQuery([]string{w})
	})
}

// Term does not fold the characters for which isSteady is true, so Fold must change neither
// these characters nor pairs of them.
func TestSteadyCharactersAreFoldedAlready(t *testing.T) {
	prev := 'の'
	for _, span := range [][2]rune{{0x3041, 0x3096}, {0x30a1, 0x30fa}, {0x30fc, 0x30fc}, {0x4e00, 0x9fff}, {0xac00, 0xd7a3}} {
		for r := span[0]; r <= span[1]; r++ {
			for _, w := range []string{string(r), string([]rune{prev, r})} {
				if got := language.Fold(w); got != w || language.Term(w) != w {
					t.Fatalf("%q is %q", w, got)
				}
			}
			prev = r
		}
	}
	if got := language.Term("ﾃﾞ"); got != "デ" {
		t.Errorf("half width: %q", got)
	}
}

// A snippet only shows words with the same first letter as a term, so Term must keep the first
// letter.
func TestStemsKeepTheFirstLetter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, lang := range []string{"", "ar", "cs", "da", "de", "en", "es", "fi", "fr", "hi", "hu", "it", "nl", "no", "pl", "pt", "ro", "ru", "sv", "tr"} {
		for range 20_000 {
			word := make([]byte, 1+rng.IntN(12))
			for i := range word {
				word[i] = "abcdefghijklmnopqrstuvwxyzaeiouys"[rng.IntN(33)]
			}
			w := string(word)
			for _, stem := range []string{language.Term(w), language.Stem(lang, w), language.Fold(w)} {
				if stem != "" && stem[0] != w[0] {
					t.Fatalf("in %q the stem of %q is %q", lang, w, stem)
				}
			}
		}
	}
}
