package upstream

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"satchel/internal/frontmatter"
)

// token returns a mark for an address, which finish replaces when all pages are known.
func (c *crawl) token(u *url.URL) string {
	return c.mark + base64.RawURLEncoding.EncodeToString([]byte(u.String())) + "."
}

// tokens replaces each mark in a text by the result of f for the address in the mark.
func (c *crawl) tokens(text []byte, f func(u *url.URL) string) []byte {
	var out bytes.Buffer
	for {
		before, rest, found := bytes.Cut(text, []byte(c.mark))
		out.Write(before)
		if !found {
			return out.Bytes()
		}
		encoded, after, _ := bytes.Cut(rest, []byte("."))
		address, err := base64.RawURLEncoding.DecodeString(string(encoded))
		u, err2 := url.Parse(string(address))
		if errors.Join(err, err2) == nil {
			out.WriteString(f(u))
		}
		text = after
	}
}

// neutral returns a page with absolute addresses, so that equal pages have equal hashes in
// every sync.
func (c *crawl) neutral(text []byte) []byte {
	return c.tokens(text, func(u *url.URL) string { return u.String() })
}

// finish returns the file for a page: with front matter, relative links to pages of the
// source, and absolute links to all else.
func (c *crawl) finish(p *webPage, text []byte) []byte {
	text = c.tokens(text, func(u *url.URL) string {
		to := c.find(u)
		switch {
		case to == nil:
			return strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(u.String())
		case u.Fragment != "" && to == p:
			return "#" + u.EscapedFragment()
		case u.Fragment != "":
			return relative(p.Path, to.Path) + "#" + u.EscapedFragment()
		}
		return relative(p.Path, to.Path)
	})
	if p.text {
		return text
	}
	return withFrontMatter(text, p.Title, p.URL)
}

// find returns the page of the source at an address, or nil.
func (c *crawl) find(u *url.URL) *webPage {
	for _, k := range []string{key(tidy(u)), key(plain(u))} {
		for range 5 { // a page can replace a page that has replaced another
			if p := c.byKey[k]; p != nil {
				return p
			}
			if k = c.alias[k]; k == "" {
				break
			}
		}
	}
	return nil
}

// withFrontMatter adds the title and the address to the front matter of a page. The address that
// the page itself gives as url becomes original_url, because the page could name any address.
func withFrontMatter(text []byte, title, address string) []byte {
	var out bytes.Buffer
	out.WriteString("---\n")
	d, err := frontmatter.Parse(text)
	if err == nil && d.Fields != nil {
		if d.String("title") == "" && title != "" {
			frontMatterLine(&out, "title", title)
		}
		frontMatterLine(&out, "url", address)
		block, body := text[:len(text)-len(d.Body)], d.Body
		_, rest, _ := bytes.Cut(block, []byte("\n"))
		out.Write(ownAddress.ReplaceAll(rest, []byte("original_url:")))
		out.Write(body)
		if d, err = frontmatter.Parse(out.Bytes()); err == nil && d.String("url") == address {
			return out.Bytes()
		}
	}
	return append(frontMatter([2]string{"title", title}, [2]string{"url", address}), d.Body...)
}

var (
	ownAddress    = regexp.MustCompile(`(?mi)^["']?url["']?\s*:`) // in front matter
	inlineLink    = regexp.MustCompile(`(\]\(\s*<?)([^)\s>]+)`)
	referenceLink = regexp.MustCompile(`^(\s{0,3}\[[^\]]+\]:\s*<?)([^\s>]+)`)
)

// markdownLinks replaces the addresses of the links of a Markdown page by marks, and returns the
// addresses.
func (c *crawl) markdownLinks(text []byte, at *url.URL) ([]byte, []*url.URL) {
	var links []*url.URL
	replace := func(s string) string {
		u, err := at.Parse(s)
		if err != nil || strings.HasPrefix(s, "#") || u.Scheme != "http" && u.Scheme != "https" {
			return s
		}
		links = append(links, plain(u))
		return c.token(u)
	}
	var out bytes.Buffer
	fence := ""
	for l := range bytes.Lines(text) {
		trimmed := strings.TrimLeft(string(l), " >")
		marks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`~"))]
		switch {
		case fence != "":
			if strings.HasPrefix(marks, fence) && strings.TrimSpace(trimmed) == marks {
				fence = ""
			}
			out.Write(l)
			continue
		case strings.HasPrefix(marks, "```"), strings.HasPrefix(marks, "~~~"):
			fence = marks
			out.Write(l)
			continue
		}
		for i, part := range strings.Split(string(l), "`") {
			if i > 0 {
				out.WriteByte('`')
			}
			if i%2 == 1 { // code
				out.WriteString(part)
				continue
			}
			part = inlineLink.ReplaceAllStringFunc(part, func(m string) string {
				s := inlineLink.FindStringSubmatch(m)
				return s[1] + replace(s[2])
			})
			if i == 0 {
				part = referenceLink.ReplaceAllStringFunc(part, func(m string) string {
					s := referenceLink.FindStringSubmatch(m)
					return s[1] + replace(s[2])
				})
			}
			out.WriteString(part)
		}
	}
	return out.Bytes(), links
}
