package index

import (
	"strings"
	"time"

	"satchel/internal/frontmatter"
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

// Bounds of what is kept of front matter, which is a stranger's.
const (
	maxFieldBytes = 1 << 10
	maxListItems  = 64
)

// cutFrontMatter returns the front matter of a page and the byte at which its
// body begins.
func cutFrontMatter(text []byte) (fm frontMatter, body int) {
	d := frontmatter.ParseLoosely(text)
	list := func(keys ...string) (all []string) {
		for _, k := range keys {
			for _, v := range d.Written(k) {
				if v = tidy(v); v != "" && len(all) < maxListItems {
					all = append(all, v)
				}
			}
		}
		return all
	}
	first := func(keys ...string) string {
		if all := list(keys...); len(all) > 0 {
			return all[0]
		}
		return ""
	}
	fm.Title = first("title", "name")
	fm.Description = first("description", "summary")
	fm.Files = list("relevant_files")
	fm.Lang = strings.ToLower(first("lang", "language", "locale"))
	fm.Version = first("version")
	for _, k := range []string{"tags", "keywords", "aliases"} {
		tags := list(k)
		if len(tags) == 1 {
			tags = strings.Split(tags[0], ",")
		}
		for _, t := range tags {
			if t = strings.TrimSpace(t); t != "" && len(fm.Tags) < maxListItems {
				fm.Tags = append(fm.Tags, t)
			}
		}
	}
	for _, v := range list("updated", "lastmod", "last_updated", "last_confirmed", "date", "published") {
		if t, ok := parseDate(v); ok && t.After(fm.Date) {
			fm.Date = t
		}
	}
	return fm, len(text) - len(d.Body)
}

// tidy makes a field one line of bounded length.
func tidy(s string) string { return clip(strings.Join(strings.Fields(s), " "), maxFieldBytes) }

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
