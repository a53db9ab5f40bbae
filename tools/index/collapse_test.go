package index

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
)

// polyglot is a documentation of twelve pages in eight languages, of which the
// English ones have three versions: what each page is about is one word of its
// language, beside prose that all pages of the language share and code and names
// that all pages of the topic share.
func polyglot() map[string][]byte {
	prose := map[string]string{
		"en": "This page shows how you can use %s in your project, and what to do when it does not work as it should.",
		"de": "Diese Seite zeigt, wie man %s in einem Projekt verwendet und was zu tun ist, wenn es nicht funktioniert.",
		"fr": "Cette page montre comment utiliser %s dans votre projet et ce qu'il faut faire quand cela ne marche pas.",
		"ja": "このページでは、プロジェクトで%sを使う方法と、うまく動かないときの対処を説明します。",
		"ko": "이 페이지에서는 프로젝트에서 %s 사용하는 방법과 작동하지 않을 때 해야 할 일을 설명합니다.",
		"ru": "На этой странице показано, как использовать %s в проекте и что делать, если это не работает.",
		"zh": "本页介绍如何在项目中使用%s以及出现问题时该怎么办。",
		"ar": "توضح هذه الصفحة كيفية استخدام %s في مشروعك وما يجب فعله عندما لا يعمل.",
	}
	files := map[string][]byte{}
	for _, row := range polyglotTopics {
		words := strings.Fields(row)
		for i, lang := range polyglotLanguages {
			text := func(version string) []byte {
				return fmt.Appendf(nil, "# %s\n\n%s\n\n```ts\nimport { %s } from 'tool/%s' // %s\n```\n\n%s %s\n", words[i], fmt.Sprintf(prose[lang], words[i]), words[0], words[0], version, words[i], words[i])
			}
			if lang == "en" {
				for _, v := range []string{"1.0", "2.0", "10.0"} {
					files[fmt.Sprintf("docs/%s/en/%s.md", v, words[0])] = text(v)
				}
				continue
			}
			files[fmt.Sprintf("docs/10.0/%s/%s.md", lang, words[0])] = text("10.0")
		}
	}
	return files
}

var polyglotLanguages = strings.Fields("en de fr ja ko ru zh ar")

var polyglotTopics = strings.Split(`routing Wegewahl routage 経路設定 라우팅을 маршрутизация 路由选择 التوجيه
images Bilder illustrations 画像処理 이미지를 изображения 图像处理 الصور
deployment Bereitstellung déploiement 公開手順 배포를 развёртывание 部署流程 النشر
testing Prüfungen vérifications 自動試験 테스트를 тестирование 自动测试 الاختبار
caching Zwischenspeicher antémémoire 一時保存 캐시를 кеширование 缓存机制 التخزين
forms Formulare formulaires 入力欄 양식을 формы 表单输入 النماذج
styles Gestaltung présentation 外観設定 스타일을 стили 样式设置 الأنماط
errors Fehlermeldungen erreurs 例外処理 오류를 ошибки 错误处理 الأخطاء
plugins Erweiterungen greffons 拡張機能 플러그인을 расширения 扩展插件 الإضافات
layouts Seitenaufbau gabarits 配置構造 레이아웃을 макеты 页面布局 التخطيطات
sessions Sitzungen séances 接続状態 세션을 сеансы 会话状态 الجلسات
headers Kopfzeilen entêtes 見出情報 헤더를 заголовки 标头信息 الترويسات`, "\n")

func TestEachPageOnceInTheReadersLanguage(t *testing.T) {
	h := newHistory()
	h.commit(polyglot())
	x := openIndex(t, Options{MinScoreShare: -1})
	update(t, x, h)
	var titles [][]string
	for _, row := range polyglotTopics {
		titles = append(titles, strings.Fields(row))
	}
	// What all pages have in common finds each once, in the language asked in.
	for lang, q := range map[string]string{
		"en": "how do I use this in your project", "de": "wie verwendet man es in einem Projekt", "fr": "comment utiliser cela dans votre projet",
		"ja": "プロジェクトで使う方法", "ko": "프로젝트에서 사용하는 방법", "ru": "как использовать в проекте", "ar": "كيفية استخدام في مشروعك",
	} {
		r := search(t, x, q)
		seen := map[string]bool{}
		for _, hit := range r.Hits {
			if hit.Lang != lang || seen[parse.Family(hit.Path)] || lang == "en" && hit.Version != "10.0" {
				t.Errorf("%q in %s finds %v", q, lang, paths(r))
				break
			}
			seen[parse.Family(hit.Path)] = true
		}
		if len(r.Hits) < 9 {
			t.Errorf("%q in %s finds %d pages", q, lang, len(r.Hits))
		}
	}
	// A page's own word finds it in its language; the English name, in English.
	for _, words := range titles {
		for i, lang := range polyglotLanguages {
			want := fmt.Sprintf("docs/10.0/%s/%s.md", lang, words[0])
			if r := search(t, x, words[i]); len(r.Hits) == 0 || r.Hits[0].Path != want {
				t.Errorf("%s finds %v, want %s", words[i], paths(r), want)
			}
		}
	}
	// Asked for, other languages and versions are as good.
	for q, want := range map[string]string{
		"routing lang:ja": "docs/10.0/ja/routing.md", "routing version:1.0": "docs/1.0/en/routing.md", "routing lang:en version:2.0": "docs/2.0/en/routing.md",
	} {
		if r := search(t, x, q); len(r.Hits) == 0 || r.Hits[0].Path != want {
			t.Errorf("%s finds %v, want %s", q, paths(r), want)
		}
	}
	r := search(t, x, "routing lang:en,de")
	if n := len(slices.DeleteFunc(paths(r), func(p string) bool { return !strings.HasSuffix(p, "/routing.md") })); n != 2 {
		t.Errorf("both languages are asked for, and %v is found", paths(r))
	}
}

func TestFamiliesAreGathered(t *testing.T) {
	col := &session{col: Collection{ID: "c", Mount: "/library/x"}}
	type doc struct {
		kin
		score float64
	}
	for _, c := range []struct {
		name   string
		reader string
		docs   []doc // best first
		want   string
		also   int
	}{
		{"the reader's language", "en", []doc{{kin{path: "ja/a.md", lang: "ja"}, 10}, {kin{path: "en/a.md", lang: "en"}, 6}}, "en/a.md", 1},
		{"but not where it hardly matches", "en", []doc{{kin{path: "ja/a.md", lang: "ja"}, 10}, {kin{path: "en/a.md", lang: "en"}, 4}}, "ja/a.md", 1},
		{"a region of it", "pt", []doc{{kin{path: "en/a.md", lang: "en"}, 10}, {kin{path: "pt-br/a.md", lang: "pt-br"}, 9}}, "pt-br/a.md", 1},
		{"the best language where the reader is unknown", "", []doc{{kin{path: "ja/a.md", lang: "ja"}, 10}, {kin{path: "en/a.md", lang: "en"}, 9}}, "ja/a.md", 1},
		{"the newest version", "", []doc{{kin{path: "5.1/a.md", title: "A", version: "5.1"}, 10}, {kin{path: "7.4/a.md", title: "A", version: "7.4"}, 9}, {kin{path: "6.0/a.md", title: "A", version: "6.0"}, 9}}, "7.4/a.md", 2},
		{"titles with versions", "", []doc{{kin{path: "1.0/a.md", title: "Notes 1.0", version: "1.0"}, 10}, {kin{path: "2.0/a.md", title: "Notes v2.0", version: "2.0"}, 9}}, "2.0/a.md", 1},
		{"the page without a version", "", []doc{{kin{path: "docs/v1/a.md", title: "A", version: "1"}, 10}, {kin{path: "docs/a.md", title: "A"}, 9}}, "docs/a.md", 1},
		{"other titles are other pages", "", []doc{{kin{path: "1.0/a.md", title: "One", version: "1.0"}, 10}, {kin{path: "2.0/a.md", title: "Two", version: "2.0"}, 9}}, "1.0/a.md 2.0/a.md", 0},
		{"other paths are other pages", "", []doc{{kin{path: "x/a.md", title: "A"}, 10}, {kin{path: "y/a.md", title: "A"}, 9}}, "x/a.md y/a.md", 0},
		{"language before version", "en", []doc{{kin{path: "2.0/ja/a.md", lang: "ja", version: "2.0"}, 10}, {kin{path: "1.0/en/a.md", lang: "en", version: "1.0"}, 9}}, "1.0/en/a.md", 1},
	} {
		var docs []*found
		for i, d := range c.docs {
			f := &found{session: col, id: int64(i), score: d.score}
			f.kin = &d.kin
			f.kin.family = parse.Family(d.path)
			f.kin.key = familyKey(f, &query.Parsed{})
			docs = append(docs, f)
		}
		out := gather(docs, c.reader)
		var got []string
		for _, f := range out {
			got = append(got, f.kin.path)
		}
		if strings.Join(got, " ") != c.want || out[0].alsoCount != c.also || out[0].score != c.docs[0].score {
			t.Errorf("%s: %v, also %d %v, score %v; want %s, also %d", c.name, got, out[0].alsoCount, out[0].also, out[0].score, c.want, c.also)
		}
		if c.also > 0 && !strings.HasPrefix(out[0].also[0], "/library/x/") {
			t.Errorf("%s: also %v", c.name, out[0].also)
		}
	}
}

func TestCopiesAreShownOnce(t *testing.T) {
	text := "# Turbine\n\nThe turbine of the plant turns at three thousand revolutions a minute, and its bearings are oiled twice a day by hand.\nKeep a record of each of them.\n"
	files := map[string]string{
		"notes/turbine.md":       text,
		"archive/turbine.md":     text,
		"archive/old-turbine.md": strings.Replace(text, "twice", "once", 1),
		"notes/other-turbine.md": "# Turbine\n\nThe other turbine is a smaller one, of brass, which nobody has oiled for years, and stands behind the shed in the rain.\n",
		"notes/short.md":         "A turbine.",
		"notes/short2.md":        "A turbine.",
	}
	x, _ := indexOf(t, files)
	r := search(t, x, "turbine oiled")
	copies := 0
	for _, p := range paths(r) {
		if p == "notes/turbine.md" || strings.HasPrefix(p, "archive/") {
			copies++
		}
	}
	if copies != 1 || !slices.Contains(paths(r), "notes/other-turbine.md") {
		t.Errorf("found %v", paths(r))
	}
	if r = search(t, x, "turbine sort:path"); len(r.Hits) != len(files) {
		t.Errorf("in the order of paths, %v", paths(r))
	}
}

// What a person published is theirs and in the library: one result, their own,
// however short it is and in whatever order, and it is counted once.
func TestTheSameFileOfTwoCollectionsIsOneResult(t *testing.T) {
	x := openIndex(t, Options{})
	short := "# Deploy\n\nA deploy checklist.\n"
	long := "# Ropes\n\nA deploy of the ropes takes four people, two of them on the mast, a calm sea and as much patience as there is on board.\n"
	for id, files := range map[string]map[string]string{
		"mine":   {"team/deploy.md": short, "team/ropes.md": long, "tiny.md": "A deploy.", "tiny2.md": "A deploy."},
		"theirs": {"deploy.md": short, "ropes.md": long, "other.md": "# Deploy theirs\n\nOf deploy and of them.\n"},
	} {
		h := newHistory()
		h.commit(toBytes(files))
		if err := x.Update(t.Context(), space.SpaceID(id), h); err != nil {
			t.Fatal(err)
		}
	}
	theirs := Collection{ID: "theirs", Label: "notes", Mount: "/library/docs/notes"}
	for _, query := range []string{"deploy", "deploy checklist", "deploy sort:path", "deploy sort:recent"} {
		r, err := x.Search(t.Context(), []Collection{{ID: "mine", Label: "space"}, theirs}, Query{Text: query, Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		got := paths(r)
		if !strings.HasSuffix(query, "sort:path") { // by which /library/docs/notes/other.md is other.md
			slices.Sort(got)
		}
		if want := []string{"/library/docs/notes/other.md", "team/deploy.md", "team/ropes.md", "tiny.md", "tiny2.md"}; !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", query, got, want)
		}
		if r.Total != len(r.Hits) || r.Truncated {
			t.Errorf("%s: %d of %d results, truncated %v", query, len(r.Hits), r.Total, r.Truncated)
		}
	}
	r, err := x.Search(t.Context(), []Collection{theirs}, Query{Text: "deploy checklist"})
	if err != nil || len(r.Hits) == 0 || r.Hits[0].Path != "/library/docs/notes/deploy.md" {
		t.Errorf("the library alone: %v, %v", paths(r), err)
	}
}

// dated is a history that knows when its files changed.
type dated struct {
	*history
	at map[space.Path]time.Time
}

func (d dated) Dates(context.Context, space.SpaceID, space.CommitID, space.CommitID) (map[space.Path]time.Time, error) {
	return d.at, nil
}

// The one that is shown of two copies stands where its own path and date put it.
func TestCopiesKeepTheOrder(t *testing.T) {
	x := openIndex(t, Options{})
	day := func(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, time.UTC) }
	for id, files := range map[space.SpaceID]map[string]struct {
		text string
		at   time.Time
	}{
		"theirs": {"a.md": {"A lantern of brass.", day(3)}},
		"mine":   {"z.md": {"A lantern of brass.", day(1)}, "m.md": {"A lantern of tin.", day(2)}},
	} {
		d := dated{newHistory(), map[space.Path]time.Time{}}
		texts := map[string]string{}
		for p, f := range files {
			texts[p], d.at[space.Path(p)] = f.text, f.at
		}
		d.commit(toBytes(texts))
		if err := x.Update(t.Context(), id, d); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{"lantern sort:path": "m.md z.md", "lantern sort:recent": "m.md z.md", "lantern sort:path limit:1": "/library/x/theirs/a.md"} {
		r, err := x.Search(t.Context(), []Collection{{ID: "mine", Label: "space"}, {ID: "theirs", Label: "theirs", Mount: "/library/x/theirs"}}, Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(paths(r), " "); got != want {
			t.Errorf("%s finds %s, want %s", query, got, want)
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

func TestTongue(t *testing.T) {
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
		if got := tongueOf(strings.Fields(c.query), c.held).reader(); got != c.reader {
			t.Errorf("%q over %v: %q, want %q", c.query, c.held, got, c.reader)
		}
	}
	if got := tongueOf([]string{"Haus"}, map[string]int64{"de": 1, "fr": 1, "en": 9}).stems("Häuser"); !slices.Contains(got, "de·haus") || len(got) != 2 {
		t.Errorf("Häuser has the stems %q", got)
	}
	if got := tongueOf([]string{"die", "Straße"}, map[string]int64{"fr": 9}).stems("ueber"); !slices.Equal(got, []string{"de·ueb", "de·uber"}) {
		t.Errorf("ueber has the stems %q", got)
	}
	if got := tongueOf([]string{"how", "do", "I"}, map[string]int64{"fr": 9}).stems("ueber"); got != nil {
		t.Errorf("an English word has the stems %q", got)
	}
}

// Pages in another language are not left out, but come after those that the
// reader understands and that are as good otherwise.
func TestTheReadersLanguageComesFirst(t *testing.T) {
	files := map[string]string{
		"a.md": "---\nlang: de\n---\n# Kubernetes im Betrieb\n\nKubernetes und noch einmal kubernetes: was man wissen muss.\n",
		"b.md": "---\nlang: en\n---\n# Kubernetes in practice\n\nWhat you should know of it, and why it may be more than you need for a small site.\n",
	}
	for q, want := range map[string]string{
		"how do I run kubernetes": "b.md", "kubernetes": "b.md", "wie betreibt man kubernetes": "a.md", "how do I run kubernetes lang:de": "a.md",
	} {
		x, _ := indexOf(t, files)
		r := search(t, x, q)
		if len(r.Hits) == 0 || r.Hits[0].Path != want || !strings.Contains(q, "lang:") && len(r.Hits) != 2 {
			t.Errorf("%s finds %v, want %s first", q, paths(r), want)
		}
	}
}
