package parse

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/tools/index/language"
)

// pageLanguage returns the language of a page from its front matter, or else its path, or else
// its html tag, or else its words. It ignores the words of data files and source code.
func pageLanguage(name, said string, text []byte) string {
	if l := language.Normal(said); l != "" {
		return l
	}
	if l, _ := language.OfPath(name); l != "" {
		return l
	}
	switch Format(name) {
	case FormatHTML:
		if m := htmlLang().FindSubmatch(text[:min(len(text), 2<<10)]); m != nil {
			if l := language.Normal(string(m[1])); l != "" {
				return l
			}
		}
	case formatSource, formatJSX, formatData, FormatTable:
		return ""
	}
	return language.Detect(text)
}

var htmlLang = Lazily(`(?i)<html[^>]{0,500}\blang\s*=\s*["']?([A-Za-z0-9_-]{2,20})`)

// versionDir matches a directory that names a version: 5.1, v2, 3.x, version-1.4.
var versionDir = Lazily(`^(?:(?:v|version[-_]?|release[-_])?(\d{1,4}(?:\.\d{1,4}){1,3}(?:\.x)?|\d{1,3}\.x)|(?:v|version[-_])(\d{1,4}))$`)

// versionOf returns the version that a directory of the path names, such as docs/v5.1/.
func versionOf(name string) string {
	v, _ := cutVersion(name)
	return v
}

// cutVersion returns the version that a path names ("" if it names none), and the path without
// the version.
func cutVersion(name string) (version, rest string) {
	dir, _ := path.Split(name)
	at := 0
	for seg := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if seg != "" && (seg[0] >= '0' && seg[0] <= '9' || seg[0]|0x20 == 'v' || seg[0]|0x20 == 'r') {
			if m := versionDir().FindStringSubmatch(strings.ToLower(seg)); m != nil {
				return m[1] + m[2], name[:at] + name[at+len(seg)+1:]
			}
		}
		at += len(seg) + 1
	}
	return "", name
}

// channels are directory names such as "latest". They are not versions, because other
// directories have these names too.
var channels = []string{"latest", "stable", "current", "next", "nightly", "canary", "unstable"}

// Family returns a key from a page's path that is the same for the page in other languages and
// versions.
func Family(name string) string {
	_, name = language.OfPath(name)
	_, name = cutVersion(name)
	dir, base := path.Split(name)
	var segs []string
	for seg := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if !slices.Contains(channels, seg) {
			segs = append(segs, seg)
		}
	}
	key := strings.Join(append(segs, base), "/")
	// Docusaurus keeps translations and older versions in other directories than its pages.
	key = strings.Replace(key, "i18n/docusaurus-plugin-content-docs/", "docs/", 1)
	return strings.Replace(key, "versioned_docs/", "docs/", 1)
}

// Newer reports whether version a is newer than b. A page without a version is the newest, and
// a version without a number is the oldest.
func Newer(a, b string) bool {
	if a == "" || b == "" {
		return a == "" && b != ""
	}
	x, y := strings.Split(strings.TrimLeft(a, "vV"), "."), strings.Split(strings.TrimLeft(b, "vV"), ".")
	for i := range max(len(x), len(y)) {
		m, n := versionPart(x, i), versionPart(y, i)
		if m != n {
			return m > n
		}
	}
	return false
}

func versionPart(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	if strings.EqualFold(parts[i], "x") {
		return 1 << 30
	}
	digits := len(parts[i]) - len(strings.TrimLeft(parts[i], "0123456789"))
	n, err := strconv.Atoi(parts[i][:digits])
	if err != nil {
		return -1
	}
	return n
}

// SameButVersion reports whether two titles differ only in the pages' versions. Directories
// that name versions are not enough: notes of 2026.01 and 2026.02 are different pages.
func SameButVersion(a, versionA, b, versionB string) bool {
	return a == b || plainTitle(a, versionA) == plainTitle(b, versionB)
}

func plainTitle(title, version string) string {
	title = strings.ToLower(title)
	if version != "" {
		title = strings.ReplaceAll(strings.ReplaceAll(title, "v"+version, ""), version, "")
	}
	return strings.Join(strings.Fields(title), " ")
}
