package index

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// frontMatter is what a page says about itself. What is malformed, or of
// another type than expected, counts as absent.
type frontMatter struct {
	Title       string
	Description string
	Tags        []string
	Files       []string // relevant_files: the source files that the page is about
	Lang        string
	Version     string
	Date        time.Time
}

// Bounds of front matter, which is a stranger's YAML.
const (
	maxFrontMatterBytes = 16 << 10
	maxFieldBytes       = 1 << 10
	maxListItems        = 64
)

// cutFrontMatter returns the front matter of a page and the byte at which its
// body begins. A page without one, or with one that is not closed within
// maxFrontMatterBytes, is all body.
func cutFrontMatter(text []byte) (fm frontMatter, body int) {
	start := 0
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		start = 3
	}
	rest := text[start:]
	line, _, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || string(bytes.TrimRight(line, " \t\r")) != "---" {
		return fm, 0
	}
	from := len(line) + 1
	for at := from; at < len(rest) && at <= maxFrontMatterBytes; {
		line, _, _ := bytes.Cut(rest[at:], []byte("\n"))
		next := at + len(line) + 1
		if t := string(bytes.TrimRight(line, " \t\r")); t == "---" || t == "..." {
			fm = parseFrontMatter(rest[from:at])
			return fm, min(start+next, len(text))
		}
		at = next
	}
	return fm, 0
}

func parseFrontMatter(src []byte) (fm frontMatter) {
	var root yaml.Node
	if err := decodeYAML(src, &root); err != nil || len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return looseFrontMatter(src)
	}
	m := root.Content[0]
	for i := 0; i+1 < len(m.Content); i += 2 {
		fm.set(m.Content[i].Value, scalars(m.Content[i+1]))
	}
	return fm
}

// decodeYAML parses into a node tree, in which aliases are not expanded, so
// that no document can grow; a panic of the parser counts as malformed.
func decodeYAML(src []byte, into *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml parser: %v", p)
		}
	}()
	return yaml.Unmarshal(src, into)
}

// scalars returns the texts of a scalar or of a flat list.
func scalars(n *yaml.Node) []string {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil
		}
		return []string{n.Value}
	case yaml.SequenceNode:
		var s []string
		for _, c := range n.Content {
			if c.Kind == yaml.ScalarNode && len(s) < maxListItems {
				s = append(s, c.Value)
			}
		}
		return s
	}
	return nil
}

// looseFrontMatter reads "key: value" lines of front matter that is not YAML,
// such as a title with an unquoted colon.
func looseFrontMatter(src []byte) (fm frontMatter) {
	for line := range bytes.Lines(src) {
		k, v, ok := strings.Cut(string(line), ":")
		if !ok || k != strings.TrimSpace(k) {
			continue
		}
		if v = strings.Trim(strings.TrimSpace(v), `"'`); v != "" {
			fm.set(k, []string{v})
		}
	}
	return fm
}

func (fm *frontMatter) set(key string, values []string) {
	if len(values) == 0 {
		return
	}
	for i := range values {
		values[i] = clip(strings.Join(strings.Fields(strings.ToValidUTF8(values[i], "")), " "), maxFieldBytes)
	}
	first := values[0]
	switch strings.ToLower(key) {
	case "title", "name":
		if fm.Title == "" {
			fm.Title = first
		}
	case "description", "summary":
		if fm.Description == "" {
			fm.Description = first
		}
	case "tags", "keywords", "aliases":
		if len(values) == 1 && strings.Contains(first, ",") {
			values = strings.Split(first, ",")
		}
		for _, v := range values {
			if v = strings.TrimSpace(v); v != "" && len(fm.Tags) < maxListItems {
				fm.Tags = append(fm.Tags, v)
			}
		}
	case "relevant_files":
		fm.Files = append(fm.Files, values...)
	case "lang", "language", "locale":
		fm.Lang = strings.ToLower(first)
	case "version":
		fm.Version = first
	case "updated", "lastmod", "last_updated", "last_confirmed", "date", "published":
		if t, ok := parseDate(first); ok && t.After(fm.Date) {
			fm.Date = t
		}
	}
}

var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006/01/02", "2006-01", "2006"}

// parseDate reads the forms of a date that people write; without a zone it is
// in UTC.
func parseDate(s string) (time.Time, bool) {
	for _, l := range dateLayouts {
		if t, err := time.Parse(l, strings.TrimSpace(s)); err == nil && t.Year() >= 1000 && t.Year() <= 9999 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// clip shortens s to at most n bytes at a character's boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
