package tools

import (
	"bytes"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/frontmatter"
)

// isBinary uses git's rule: a NUL among the first 8,000 bytes.
func isBinary(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0
}

// imageType returns the type of an image that clients take, by its content,
// or "".
func imageType(b []byte) string {
	switch t := http.DetectContentType(b); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t
	}
	return ""
}

// validText returns the bytes as valid UTF-8; repaired tells that some were not.
func validText(b []byte) (s string, repaired bool) {
	if utf8.Valid(b) {
		return string(b), false
	}
	return strings.ToValidUTF8(string(b), "\ufffd"), true
}

// splitText cuts a text in lines, without their ends.
func splitText(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// section is a part of a Markdown text under one heading.
type section struct {
	title    string
	slug     string
	level    int
	from, to int // lines from 1, to included, with the sections under it
}

// sections lists a Markdown text's ATX headings ("## Title"), outside of code
// fences and front matter. Slugs are GitHub's: a repeated one gets -1, -2, ….
func sections(lines []string) []section {
	var all []section
	seen := map[string]int{}
	fence := ""
	for i := frontLines(lines); i < len(lines); i++ {
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
		level := len(t) - len(strings.TrimLeft(t, "#"))
		if level < 1 || level > 6 || len(t) > level && t[level] != ' ' && t[level] != '\t' {
			continue
		}
		title := strings.TrimSpace(strings.TrimRight(strings.TrimSpace(t[level:]), "#"))
		slug := headingSlug(title)
		if n := seen[slug]; n > 0 {
			seen[slug]++
			slug += "-" + strconv.Itoa(n)
		} else {
			seen[slug] = 1
		}
		all = append(all, section{title: title, slug: slug, level: level, from: i + 1, to: len(lines)})
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

// findSection finds a heading by its slug or its words.
func findSection(all []section, want string) (section, bool) {
	for _, s := range all {
		if s.slug == want {
			return s, true
		}
	}
	slug := headingSlug(want)
	for _, s := range all {
		if strings.EqualFold(s.title, strings.TrimSpace(want)) || slug != "" && headingSlug(s.title) == slug {
			return s, true
		}
	}
	return section{}, false
}

// titleOf is a document's title: its front matter's title or name, its first
// heading, or its file's name.
func titleOf(p string, doc []byte) string {
	d, _ := frontmatter.Parse(doc)
	for _, key := range []string{"title", "name"} {
		if t := d.String(key); t != "" {
			return clip(t, 200)
		}
	}
	body, _ := validText(d.Body[:min(len(d.Body), 16<<10)])
	if all := sections(splitText(body)); len(all) > 0 && all[0].title != "" {
		return clip(all[0].title, 200)
	}
	return path.Base(p)
}

// plural writes a number with its noun: "1 file", "12,345 files".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + many
}

// thousands writes a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
