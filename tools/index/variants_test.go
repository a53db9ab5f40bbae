package index

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/parse"
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
	x := openIndex(t, allHits)
	update(t, x, h)
	var titles [][]string
	for _, row := range polyglotTopics {
		titles = append(titles, strings.Fields(row))
	}
	// A query for words that all pages have finds each page once, in the language of the
	// query.
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
	// A page's own word finds the page in that language; the English name finds the English
	// page.
	for _, words := range titles {
		for i, lang := range polyglotLanguages {
			want := fmt.Sprintf("docs/10.0/%s/%s.md", lang, words[0])
			if r := search(t, x, words[i]); len(r.Hits) == 0 || r.Hits[0].Path != want {
				t.Errorf("%s finds %v, want %s", words[i], paths(r), want)
			}
		}
	}
	// If a query asks for other languages or versions, they rank equally high.
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

// A file that a person published is in their space and in the library. Both are one result
// with their own path, and are counted once, even if the file is short and in any order.
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
		if !strings.HasSuffix(query, "sort:path") { // it compares other.md, the path within the collection
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

// The copy that is shown is at the position of its own path and date.
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

// Pages in another language are not left out. They come after equally good pages that the
// reader understands.
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
