package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// treeLinks returns the addresses in the tree beside a page, and which of them is the page's.
func treeLinks(t *testing.T, body string) (all []string, here string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	must(t, err)
	for n := range root.Descendants() {
		if n.Data != "nav" || attr(n, "id") != "files-tree" {
			continue
		}
		for a := range n.Descendants() {
			if a.Data != "a" || attr(a, "class") == "skip" || attr(a, "href") == "" {
				continue
			}
			_, path, _ := strings.Cut(attr(a, "href"), "/files/")
			if all = append(all, path); attr(a, "aria-current") == "page" {
				here = path
			}
		}
	}
	return all, here
}

// TestTree checks that the tree beside a page has the names of each directory on the way to
// it, directories first, and no others.
func TestTree(t *testing.T) {
	h := newHeld(t, "README.md", "x", "b/deep/page.md", "x", "b/other.md", "x", "a/hidden.md", "x")
	b := h.as(h.bob)
	for _, tt := range []struct {
		at   string
		want []string
	}{
		{"", []string{"a/", "b/", "README.md"}},
		{"b/", []string{"a/", "b/", "b/deep/", "b/other.md", "README.md"}},
		{"b/deep/page.md", []string{"a/", "b/", "b/deep/", "b/deep/page.md", "b/other.md", "README.md"}},
	} {
		a := b.get(h.in("files/%s", tt.at))
		got, here := treeLinks(t, a.body)
		if !slices.Equal(got, tt.want) || here != tt.at {
			t.Errorf("beside %q: %q, at %q", tt.at, got, here)
		}
	}
	var answer struct {
		Names []struct {
			Name, URL string
			Dir       bool
		}
	}
	must(t, json.Unmarshal([]byte(b.get(h.in("tree/b")).body), &answer))
	if n := answer.Names; len(n) != 2 || n[0].Name != "deep" || !n[0].Dir || n[0].URL != h.in("files/b/deep/") || n[1].Name != "other.md" || n[1].Dir {
		t.Errorf("the names of a directory are %+v", n)
	}
	want(t, "the names of nothing", b.get(h.in("tree/none")), http.StatusNotFound)
	want(t, "attack: another's names", h.as(h.eve).get(h.in("tree/b")), http.StatusNotFound)
}

// TestTreeOfManyNames checks that the tree stays small, and shows where the page is.
func TestTreeOfManyNames(t *testing.T) {
	var files []string
	for i := range 1000 {
		files = append(files, fmt.Sprintf("many/%04d.md", i), "x")
	}
	h := newHeld(t, files...)
	a := h.as(h.ada).get(h.in("files/many/0700.md"))
	got, here := treeLinks(t, a.body)
	if len(got) > 110 || here != "many/0700.md" {
		t.Errorf("%d names, at %q", len(got), here)
	}
	if len(a.body) > 100_000 {
		t.Errorf("the page has %d bytes", len(a.body))
	}
}

// TestLinksOfSites checks that links which the generator of a site understands lead to the files of
// the space.
func TestLinksOfSites(t *testing.T) {
	links := []struct{ link, to string }{
		{"install.md", "site/docs/1.guide/2.install.md"},
		{"2.install.md", "site/docs/1.guide/2.install.md"},
		{"install", "site/docs/1.guide/2.install.md"},
		{"./install#steps", "site/docs/1.guide/2.install.md#steps"},
		{"/docs/4.x/guide/install", "site/docs/1.guide/2.install.md"},
		{"/docs/guide/install/", "site/docs/1.guide/2.install.md"},
		{"/api", "site/docs/2.api/"},
		{"/api/index", "site/docs/2.api/"},
		{"/README.md", "README.md"},
		{"../2.api/head.md", "site/docs/2.api/head.md"},
		{"../api/head", "site/docs/2.api/head.md"},
		{"/nothing/at/all", "nothing/at/all"},
	}
	var text strings.Builder
	for _, l := range links {
		fmt.Fprintf(&text, "- [to](%s)\n", l.link)
	}
	h := newHeld(t, "README.md", "x", "site/docs/1.guide/1.start.md", text.String(), "site/docs/1.guide/2.install.md", "x", "site/docs/2.api/index.md", "x", "site/docs/2.api/head.md", "x")
	a := h.as(h.ada).get(h.in("files/site/docs/1.guide/1.start.md"))
	_, doc, _ := strings.Cut(a.body, `<div class="text">`)
	found := regexp.MustCompile(`<li><a href="([^"]+)"`).FindAllStringSubmatch(doc, -1)
	if len(found) != len(links) {
		t.Fatalf("the page has %d links: %s", len(found), doc)
	}
	for i, l := range links {
		if got := html.UnescapeString(found[i][1]); got != h.in("files/%s", l.to) {
			t.Errorf("%s leads to %s", l.link, got)
		}
	}
}

// TestContents checks that a page with several sections lists them.
func TestContents(t *testing.T) {
	h := newHeld(t, "long.md", "# Title\n\n## One\n\n### Below\n\n#### Deep\n\n## Two\n", "short.md", "# Title\n\n## One\n")
	b := h.as(h.ada)
	list := func(p string) []string {
		_, nav, _ := strings.Cut(b.get(h.in("files/%s", p)).body, `<nav class="contents"`)
		nav, _, _ = strings.Cut(nav, "</nav>")
		var out []string
		for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(nav, -1) {
			out = append(out, m[1])
		}
		return out
	}
	if got := list("long.md"); !slices.Equal(got, []string{"one", "below", "two"}) {
		t.Errorf("the contents are %q", got)
	}
	if got := list("short.md"); got != nil {
		t.Errorf("a short page lists %q", got)
	}
}

var toastForm = regexp.MustCompile(`(?s)<div class="toast">.*?<form method="post" action="([^"]+)">.*?name="commit" value="([0-9a-f]+)"`)

// TestUndoAtOnce checks that the confirmation of a change undoes it, and the undo too, and that
// both lead back to the file.
func TestUndoAtOnce(t *testing.T) {
	h := newHeld(t, "n/a.md", "one\n")
	first := h.head()
	h.commit("Two", "n/a.md", "two\n")
	b := h.as(h.ada)
	press := func(page string) answer {
		t.Helper()
		m := toastForm.FindStringSubmatch(b.get(page).body)
		if m == nil {
			t.Fatalf("%s offers no undo", page)
		}
		a := b.send(html.UnescapeString(m[1]), url.Values{"commit": {m[2]}})
		want(t, "undo", a, http.StatusSeeOther)
		return a
	}
	at := h.in("files/n/a.md")
	b.send(h.in("restore"), url.Values{"path": {"n/a.md"}, "at": {string(first)}})
	h.holds("n/a.md", "one\n")
	if a := press(at + "?done=restored"); a.location() != issuer+at+"?done=undone" {
		t.Errorf("it leads to %s", a.location())
	}
	h.holds("n/a.md", "two\n")
	press(at + "?done=undone")
	h.holds("n/a.md", "one\n")

	a := b.send(h.in("delete/n/a.md"), url.Values{"at": {string(h.head())}})
	h.lacks("n/a.md")
	press(strings.TrimPrefix(a.location(), issuer))
	h.holds("n/a.md", "one\n")

	// The page does not offer to undo the last change of an AI.
	h.commit("Three", "n/a.md", "three\n")
	if toastForm.MatchString(b.get(at + "?done=saved").body) {
		t.Error("the undo is of another's change")
	}
	if toastForm.MatchString(h.as(h.bob).get(at + "?done=undone").body) {
		t.Error("a reader is offered to undo")
	}
}
