package parse

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"satchel/internal/frontmatter"
)

// frontMatter holds the fields of a page's front matter. A malformed value, or a value of an
// unexpected type, counts as absent.
type frontMatter struct {
	Title       string
	Description string
	URL         string // the address of the page on the web; "" if there is none
	Tags        []string
	Files       []string // relevant_files: the source files that are the page's subject
	Lang        string
	Version     string
	Date        time.Time
	// Conversation reports that the page is a conversation. Its title and headings do not say
	// what is in it.
	Conversation bool
}

// Limits of untrusted front matter.
const (
	maxFieldBytes = 1 << 10
	MaxListItems  = 64
)

// CutFrontMatter returns the front matter of a page and the byte at which its
// body begins.
func CutFrontMatter(text []byte) (fm frontMatter, body int) {
	written, body := readFrontMatter(text)
	list := func(keys ...string) (all []string) {
		for _, k := range keys {
			for _, v := range written(k) {
				if v = tidy(v); v != "" && len(all) < MaxListItems {
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
	fm.URL = webAddress(first("url"))
	fm.Files = list("relevant_files")
	fm.Lang = strings.ToLower(first("lang", "language", "locale"))
	fm.Version = first("version")
	fm.Conversation = strings.EqualFold(first("type"), "conversation")
	for _, k := range []string{"tags", "keywords", "aliases"} {
		tags := list(k)
		if len(tags) == 1 {
			tags = strings.Split(tags[0], ",")
		}
		for _, t := range tags {
			if t = strings.TrimSpace(t); t != "" && len(fm.Tags) < MaxListItems {
				fm.Tags = append(fm.Tags, t)
			}
		}
	}
	for _, v := range list("updated", "lastmod", "last_updated", "last_confirmed", "date", "published") {
		if t, ok := Date(v); ok && t.After(fm.Date) {
			fm.Date = t
		}
	}
	return fm, body
}

// maxAddressBytes limits the address of a page, which answers to AIs contain.
const maxAddressBytes = 512

// webAddress returns s if it is an absolute http or https URL, and "" otherwise. It refuses
// characters that no address needs and that could make a text for an AI of an address.
func webAddress(s string) string {
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"<>\^{|}`+"`", r) }
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	if s = u.String(); len(s) > maxAddressBytes || strings.ContainsFunc(s, odd) {
		return ""
	}
	return s
}

// readFrontMatter reads the block at the start of a page, in the formats of static site
// generators: YAML, TOML between lines of "+++", or JSON. It returns a function that returns
// the values of a key, given in lower case, and the byte at which the body begins.
func readFrontMatter(text []byte) (written func(key string) []string, body int) {
	if fields, n := tomlFrontMatter(text); n > 0 {
		return func(k string) []string { return fields[k] }, n
	}
	if fields, n := jsonFrontMatter(text); n > 0 {
		return func(k string) []string { return fields[k] }, n
	}
	d := frontmatter.ParseLoosely(text)
	return d.Written, len(text) - len(d.Body)
}

// skipFrontMatter returns the byte at which a page's body begins.
func skipFrontMatter(text []byte) int {
	if bytes.HasPrefix(text, []byte("+++")) || bytes.HasPrefix(text, []byte("{")) {
		_, body := readFrontMatter(text)
		return body
	}
	return frontmatter.Skip(text)
}

// tomlFrontMatter reads strings, numbers, dates and flat lists at the top level and in the
// tables taxonomies and extra. Pages need nothing else of TOML.
func tomlFrontMatter(text []byte) (fields map[string][]string, body int) {
	first, rest, ok := bytes.Cut(text, []byte("\n"))
	if !ok || string(bytes.TrimRight(first, " \t\r")) != "+++" {
		return nil, 0
	}
	block := rest[:min(len(rest), frontmatter.MaxBytes)]
	fields = map[string][]string{}
	at := len(text) - len(rest)
	top := true
	for len(block) > 0 {
		n := bytes.IndexByte(block, '\n') + 1
		if n == 0 {
			n = len(block)
		}
		l := strings.TrimSpace(strings.ToValidUTF8(string(block[:n]), ""))
		block = block[n:]
		at += n
		if l == "+++" {
			return fields, at
		}
		if strings.HasPrefix(l, "[") {
			top = strings.EqualFold(l, "[taxonomies]") || strings.EqualFold(l, "[extra]")
		}
		k, v, ok := strings.Cut(l, "=")
		if k = strings.ToLower(strings.Trim(strings.TrimSpace(k), `"'`)); !ok || !top || k == "" || len(fields) == frontmatter.MaxValues {
			continue
		}
		if _, again := fields[k]; !again {
			fields[k] = tomlValues(strings.TrimSpace(v))
		}
	}
	return nil, 0 // never closed, so it is text
}

// tomlValues reads one value, or a list on one line.
func tomlValues(v string) (all []string) {
	list := strings.HasPrefix(v, "[")
	v = strings.TrimPrefix(v, "[")
	for len(all) < MaxListItems {
		v = strings.TrimLeft(v, " \t,")
		if v == "" || v[0] == ']' || v[0] == '#' {
			break
		}
		var item string
		if q := v[0]; q == '"' || q == '\'' {
			end := 1
			for end < len(v) && v[end] != q {
				if v[end] == '\\' && q == '"' {
					end++
				}
				end++
			}
			end = min(end, len(v))
			item, v = v[1:end], v[min(end+1, len(v)):]
			if q == '"' {
				item = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, " ", `\t`, " ").Replace(item)
			}
		} else {
			end := strings.IndexAny(v, ",]#")
			if !list || end < 0 {
				if end = strings.IndexByte(v, '#'); end < 0 {
					end = len(v)
				}
			}
			item, v = strings.TrimSpace(v[:end]), v[end:]
		}
		if item != "" {
			all = append(all, item)
		}
		if !list {
			break
		}
	}
	return all
}

// jsonFrontMatter reads an object at the start of a page. The "{" must be alone on its line.
// The line end after the object does not belong to the body.
func jsonFrontMatter(text []byte) (fields map[string][]string, body int) {
	first, _, ok := bytes.Cut(text, []byte("\n"))
	if !ok || string(bytes.TrimSpace(first)) != "{" {
		return nil, 0
	}
	dec := json.NewDecoder(bytes.NewReader(text[:min(len(text), frontmatter.MaxBytes)]))
	var all map[string]any
	if dec.Decode(&all) != nil {
		return nil, 0
	}
	fields = make(map[string][]string, len(all))
	for k, v := range all {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, e := range list[:min(len(list), MaxListItems)] {
			switch e := e.(type) {
			case string:
				fields[strings.ToLower(k)] = append(fields[strings.ToLower(k)], e)
			case float64:
				fields[strings.ToLower(k)] = append(fields[strings.ToLower(k)], strconv.FormatFloat(e, 'f', -1, 64))
			}
		}
	}
	body = int(dec.InputOffset())
	for body < len(text) && (text[body] == ' ' || text[body] == '\r' || text[body] == '\t') {
		body++
	}
	if body < len(text) && text[body] == '\n' {
		body++
	}
	return fields, body
}

// tidy returns a field on one line, shortened to maxFieldBytes.
func tidy(s string) string { return Clip(strings.Join(strings.Fields(s), " "), maxFieldBytes) }

var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006/01/02", "2006-01", "2006"}

// Date reads a date in one of the usual notations. A date without a zone is in UTC.
func Date(s string) (time.Time, bool) {
	for _, l := range dateLayouts {
		if t, err := time.Parse(l, strings.TrimSpace(s)); err == nil && t.Year() >= 1000 && t.Year() <= 9999 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// Clip shortens s to at most n bytes, and never cuts within a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
