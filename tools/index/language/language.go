// Package language handles the differences between human languages that matter to search. It
// detects the language of a page ([OfPath], [Detect]) or a query ([OfQuery]), folds the
// spellings of a word into one ([Fold]), stems words ([Term], [Stem]), and recognizes stop
// words ([IsStop]).
//
// A language is named by its lower-case code (ISO 639-1), which a region may follow: "ja",
// "pt-br". The result of every function only depends on its arguments, so a page and a query
// with the same word always agree.
package language

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// Normal returns a language tag in its normal form: pt_BR becomes pt-br, and "English" becomes
// en. It returns "" for other texts.
func Normal(tag string) string {
	tag = strings.ToLower(strings.TrimSpace(strings.ReplaceAll(tag, "_", "-")))
	tag, _, _ = strings.Cut(tag, ".") // de_DE.UTF-8
	if code, ok := names()[tag]; ok {
		return code
	}
	for i := range len(tag) {
		if c := tag[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return ""
		}
	}
	if code, _, _ := strings.Cut(tag, "-"); len(code) < 2 || len(code) > 3 || len(tag) > 20 {
		return ""
	}
	return tag
}

// Base returns a language without its region, such as pt for pt-br. It replaces nb, nn, iw and in
// by the codes that this package uses.
func Base(tag string) string {
	code, _, _ := strings.Cut(tag, "-")
	switch code {
	case "nb", "nn":
		return "no"
	case "iw":
		return "he"
	case "in":
		return "id"
	}
	return code
}

// names maps the names of languages to codes.
var names = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for pair := range strings.FieldsSeq(`english=en german=de deutsch=de french=fr français=fr francais=fr spanish=es español=es
		espanol=es italian=it italiano=it portuguese=pt português=pt dutch=nl nederlands=nl japanese=ja korean=ko chinese=zh
		russian=ru arabic=ar polish=pl turkish=tr swedish=sv danish=da norwegian=no finnish=fi czech=cs hindi=hi vietnamese=vi
		thai=th hebrew=he greek=el hungarian=hu romanian=ro ukrainian=uk indonesian=id cn=zh jp=ja kr=ko`) {
		name, code, _ := strings.Cut(pair, "=")
		m[name] = code
	}
	return m
})

// codes holds the codes that count as a language in a path. It does not contain codes that are
// also common names of directories (be, eu, is, ms, my, no, so, to).
var codes = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for l := range strings.FieldsSeq(`ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ka ko lt lv nb nl nn pl pt ro ru sk sl
		sq sr sv th tr uk ur vi zh`) {
		m[l] = true
	}
	return m
})

// Known reports whether the language of a tag is in codes, or is Norwegian ("no").
func Known(tag string) bool {
	code, _, _ := strings.Cut(Normal(tag), "-")
	return codes()[code] || code == "no"
}

// isRegion reports whether a text can follow a code of two letters: a country, a script, or
// 419, the United Nations' number of Latin America.
func isRegion(s string) bool {
	switch s {
	case "hans", "hant", "latn", "cyrl", "419":
		return true
	}
	return len(s) == 2 && s[0] >= 'a' && s[0] <= 'z' && s[1] >= 'a' && s[1] <= 'z'
}

// isTag reports whether a part of a path names a language.
func isTag(s string) bool {
	if len(s) < 2 || len(s) > 10 {
		return false
	}
	code, region, dashed := strings.Cut(strings.ToLower(strings.ReplaceAll(s, "_", "-")), "-")
	return codes()[code] && (!dashed || isRegion(region))
}

// suffixed matches a file name with a language before its extension: guide.fr.md, README_ja.md,
// readme-zh-CN.md. Without a dot, it only matches usual names of translated files: go-it.md is
// not an Italian page.
var suffixed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(.+)\.|(?i:(readme|index|changelog|contributing|license|security|code_of_conduct))[._-])([A-Za-z]{2}(?:[-_][A-Za-z0-9]{2,4})?)(\.[A-Za-z0-9]{1,8})$`)
})

// OfPath returns the language that a path names ("" if it names none), and the path without the
// language. All translations of a page have the same rest.
func OfPath(name string) (lang, rest string) {
	dir, base := path.Split(name)
	if m := suffixed().FindStringSubmatch(base); m != nil && isTag(m[3]) {
		return Normal(m[3]), dir + m[1] + m[2] + m[4]
	}
	at := 0
	for seg := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if isTag(seg) {
			return Normal(seg), name[:at] + name[at+len(seg)+1:]
		}
		at += len(seg) + 1
	}
	return "", name
}
