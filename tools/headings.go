package tools

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// section is a part of a Markdown text under one heading.
type section struct {
	title    string
	slug     string
	level    int
	from, to int // lines from 1, to included, with the sections under it
}

// sections lists a Markdown text's headings ("## Title", or underlined),
// outside of code fences and front matter. Slugs are GitHub's: a repeated one
// gets -1, -2, ….
func sections(lines []string) []section {
	var all []section
	seen := map[string]int{}
	add := func(line, level int, title string) {
		title = headingText(title)
		slug := headingSlug(title)
		n := seen[slug]
		seen[slug]++
		if n > 0 {
			slug += "-" + strconv.Itoa(n)
		}
		all = append(all, section{title: title, slug: slug, level: level, from: line, to: len(lines)})
	}
	fence := ""
	first := frontLines(lines)
	for i := first; i < len(lines); i++ {
		t := strings.TrimLeft(lines[i], " ")
		if len(lines[i])-len(t) > 3 {
			continue // code by indentation
		}
		if f := fenceOf(t); f != "" {
			switch {
			case fence == "":
				fence = f
				continue
			case f[0] == fence[0] && len(f) >= len(fence) && strings.Trim(t, f[:1]+" \t") == "":
				fence = ""
				continue
			}
		}
		if fence != "" {
			continue
		}
		if level := atxLevel(t); level > 0 {
			add(i+1, level, strings.TrimRight(strings.TrimSpace(t[level:]), "#"))
		} else if level := underline(t); level > 0 && i > first && isParagraph(lines[i-1]) {
			add(i, level, lines[i-1])
		}
	}
	for i := range all {
		for _, later := range all[i+1:] {
			if later.level <= all[i].level {
				all[i].to = later.from - 1
				break
			}
		}
	}
	return all
}

// fenceOf returns the run of backticks or tildes that opens or closes a code
// fence, or "".
func fenceOf(t string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(t) - len(strings.TrimLeft(t, c)); n >= 3 {
			return t[:n]
		}
	}
	return ""
}

// frontLines is the number of lines of the front matter.
func frontLines(lines []string) int {
	if len(lines) == 0 || strings.TrimRight(strings.TrimPrefix(lines[0], "\ufeff"), " \t") != "---" {
		return 0
	}
	for i, l := range lines[1:] {
		if l = strings.TrimRight(l, " \t"); l == "---" || l == "..." {
			return i + 2
		}
	}
	return 0
}

// atxLevel is the number of # that begin a heading, or 0.
func atxLevel(t string) int {
	level := len(t) - len(strings.TrimLeft(t, "#"))
	if level > 6 || len(t) > level && t[level] != ' ' && t[level] != '\t' {
		return 0
	}
	return level
}

// underline is the level that a line of = or - gives to the line above it.
func underline(t string) int {
	t = strings.TrimRight(t, " \t")
	switch {
	case len(t) < 2:
	case strings.Trim(t, "=") == "":
		return 1
	case strings.Trim(t, "-") == "":
		return 2
	}
	return 0
}

// isParagraph tells whether a line can be an underlined heading: text, and no
// list, quote, table, rule or heading of its own.
func isParagraph(l string) bool {
	t := strings.TrimSpace(l)
	return t != "" && len(t) <= 300 && !strings.ContainsRune("|>-*+`~<:=#", rune(t[0]))
}

var (
	explicitID = regexp.MustCompile(`\s*\{#[^}]*\}\s*$`)
	inlineLink = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	inlineTag  = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
)

// headingText is a heading as a reader sees it.
func headingText(h string) string {
	h = inlineLink.ReplaceAllString(explicitID.ReplaceAllString(clip(h, 600), ""), "$1")
	if strings.ContainsRune(h, '`') {
		h = strings.ReplaceAll(h, "`", "")
	} else {
		h = strings.NewReplacer("**", "", "__", "", "*", "").Replace(inlineTag.ReplaceAllString(h, ""))
	}
	return strings.Join(strings.Fields(html.UnescapeString(h)), " ")
}

// headingSlug is the fragment by which GitHub links to a heading: lower case,
// letters, digits, - and _ alone, blanks as -.
func headingSlug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '-' || r == '_':
			b.WriteRune(r)
		case r == ' ' || r == '\t':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// findSection finds a heading by its slug or its words; where there is none,
// by its letters and digits alone, since not everyone makes slugs alike.
func findSection(all []section, want string) (section, bool) {
	slug := headingSlug(want)
	loose := func(s string) string { return strings.Map(letterOrDigit, strings.ToLower(s)) }
	for _, same := range []func(section) bool{
		func(s section) bool { return s.slug == want },
		func(s section) bool {
			return strings.EqualFold(s.title, strings.TrimSpace(want)) || slug != "" && s.slug == slug
		},
		func(s section) bool { return loose(want) != "" && loose(s.title) == loose(want) },
	} {
		if i := slices.IndexFunc(all, same); i >= 0 {
			return all[i], true
		}
	}
	return section{}, false
}

func letterOrDigit(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsNumber(r) {
		return r
	}
	return -1
}
