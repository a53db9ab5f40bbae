package parse

import (
	"strings"
	"testing"
)

func TestPageLanguage(t *testing.T) {
	german := "Diese Seite zeigt, wie man eine Seite zu der Website hinzufügt und was dann zu tun ist.\n"
	for _, c := range []struct{ name, text, want string }{
		{"a.md", "---\nlang: pt_BR\n---\n" + german, "pt-br"},
		{"a.md", "---\nlanguage: Japanese\n---\ntext", "ja"},
		{"docs/fr/a.md", german, "fr"},
		{"docs/a.fr.md", german, "fr"},
		{"a.md", "# Seite\n\n" + german, "de"},
		{"a.txt", german, "de"},
		{"a.html", "<!DOCTYPE html>\n<html class=x lang=\"it-IT\"><body>" + german, "it-it"},
		{"a.go", "// " + german, ""},
		{"a.md", "astro nuxt vue", ""},
		{"a.md", "", ""},
	} {
		p := Parse(c.name, []byte(c.text), 10)
		if got := pageLanguage(c.name, p.Lang, []byte(c.text)); got != c.want {
			t.Errorf("%s %.30q: %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

func TestVersionOf(t *testing.T) {
	for name, want := range map[string]string{
		"docs/v5.1/a.md": "5.1", "reference/7.4/Module/a.md": "7.4", "v2/a.md": "2", "docs/3.x/a.md": "3.x", "versioned_docs/version-1.4/a.md": "1.4",
		"release-1.2/a.md": "1.2", "docs/1.2.3.x/a.md": "1.2.3.x", "docs/a.md": "", "v2.md": "", "2026/01/a.md": "", "docs/4.api/a.md": "", "video/a.md": "", "r2/a.md": "",
	} {
		if got := versionOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// The translations and versions of a page have the same family, and other pages have other
// families.
func TestFamily(t *testing.T) {
	for _, group := range []string{
		"docs/guide.md docs/ja/guide.md docs/pt-br/guide.md docs/guide.fr.md docs/v2/guide.md docs/latest/de/guide.md",
		"reference/5.1/Module/Get-Item.md reference/7.4/Module/Get-Item.md",
		"docs/intro.md versioned_docs/version-1.0/intro.md i18n/fr/docusaurus-plugin-content-docs/current/intro.md i18n/de/docusaurus-plugin-content-docs/version-1.0/intro.md",
		"README.md README.zh-CN.md README_ja.md",
		"other.md", "docs/other.md", "docs/api/v2.md",
	} {
		names := strings.Fields(group)
		for _, n := range names[1:] {
			if Family(n) != Family(names[0]) {
				t.Errorf("%s is of %q, %s of %q", n, Family(n), names[0], Family(names[0]))
			}
		}
	}
	if Family("docs/guide.md") == Family("docs/other/guide.md") || Family("a/x.md") == Family("a/y.md") {
		t.Error("different pages are one family")
	}
}

func TestNewer(t *testing.T) {
	order := strings.Fields("1 1.2 1.10 2 5.1 7.4 7.x 10.0") // oldest first
	for i := range order {
		for j := range order {
			if got := Newer(order[j], order[i]); got != (j > i) {
				t.Errorf("%s is newer than %s: %v", order[j], order[i], got)
			}
		}
	}
	if !Newer("", "9") || Newer("9", "") || Newer("", "") || !Newer("v2", "v1") || Newer("1.0", "1") || Newer("tbd", "draft") {
		t.Error("a page without a version is the current one, v counts for nothing, and 1.0 is 1")
	}
}
