package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"

	"satchel/gitstore/sources/htmlmark"
	"satchel/internal/frontmatter"
)

// webVersion must change when the conversion changes, so that the next sync converts all pages
// again.
const webVersion = 1

// maxTagLinks bounds the bytes of the links in a tag. A page whose links have more bytes is
// requested in full each time.
const maxTagLinks = 4096

// webTag is the content of File.Tag for a page, as JSON. It tells the next sync whether the page
// has changed.
type webTag struct {
	Version  int    `json:"v"`
	Settings string `json:"s"`
	ETag     string `json:"e,omitempty"`
	Modified string `json:"m,omitempty"`
	Hash     string `json:"h"`
	// Nav is the hash of the start pages' links. Links are the links of the page that the start
	// pages do not have. They are stored because the answer for an unchanged page has no content.
	Nav   string   `json:"n,omitempty"`
	Links []string `json:"l,omitempty"`
}

func readTag(s string) webTag {
	var t webTag
	if json.Unmarshal([]byte(s), &t) != nil {
		return webTag{}
	}
	return t
}

// usable reports whether a page whose tag is t can be requested with a conditional request.
func (c *crawl) usable(t webTag, start bool) bool {
	return t.Version == webVersion && t.Settings == c.hash && (t.ETag != "" || t.Modified != "") &&
		(!c.follow || !start && t.Nav == c.navHash)
}

func (t webTag) header() http.Header {
	h := http.Header{}
	if t.ETag != "" {
		h.Set("If-None-Match", t.ETag)
	}
	if t.Modified != "" {
		h.Set("If-Modified-Since", t.Modified)
	}
	return h
}

// accept converts a page that the site answered with, and follows its links.
func (c *crawl) accept(ctx context.Context, j job, a *answer, start bool) error {
	p := &webPage{url: c.idOf(j, a)}
	k := key(p.url)
	if c.byKey[k] != nil {
		c.alias[key(j.url)] = k
		return nil
	}
	p.URL = p.url.String()
	content, canonical, links, err := c.convert(ctx, p, a)
	reason := Unreadable
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.env.Logger.DebugContext(ctx, "a page cannot be converted", "url", p.URL, "error", err)
		content = nil
		if r, ok := errors.AsType[*Refusal](err); ok {
			reason = r.Reason
		}
	}
	extra := c.enqueueLinks(j, links, start)
	if content == nil {
		return c.skip(ctx, p.url, reason)
	}
	if !c.w.scope.has(p.url) {
		return nil // a start page that the patterns exclude
	}
	if other := c.canonical(p, canonical); other != nil {
		c.fresh++
		c.alias[k] = key(other)
		c.alias[key(j.url)] = key(other)
		c.enqueue(other, j.depth)
		return nil
	}
	c.fresh++
	p.hash = shortHash(c.neutral(content))
	if same := c.byHash[p.hash]; same != nil && same.url.Host == p.url.Host {
		c.alias[k] = key(same.url)
		c.alias[key(j.url)] = key(same.url)
		return nil
	}
	t := webTag{Version: webVersion, Settings: c.hash, Hash: p.hash}
	if size := len(strings.Join(extra, " ")); size <= maxTagLinks {
		t.ETag, t.Modified = validator(a.header, "ETag"), validator(a.header, "Last-Modified")
		if c.follow {
			t.Nav, t.Links = c.navHash, extra
		}
	}
	tag, err := json.Marshal(t)
	if err != nil {
		return err
	}
	p.Tag = string(tag)
	p.Changed = c.list.changed[k]
	if p.Title == "" {
		p.Title = c.list.titles[k]
	}
	if err := c.save(p, content); err != nil {
		return err
	}
	c.add(j, p)
	return nil
}

func validator(h http.Header, name string) string {
	if v := h.Get(name); len(v) <= 512 {
		return v
	}
	return ""
}

// enqueueLinks follows the links of a page. It returns those that the start pages do not have.
func (c *crawl) enqueueLinks(j job, links []*url.URL, start bool) []string {
	if !c.follow {
		return nil
	}
	var extra []string
	for _, l := range links {
		u := c.followable(l)
		if u == nil {
			continue
		}
		s := u.String()
		switch {
		case start:
			c.nav[s] = true
		case !c.nav[s]:
			extra = append(extra, s)
		}
		if j.depth < c.w.Depth {
			c.enqueue(u, j.depth+1)
		}
	}
	slices.Sort(extra)
	return slices.Compact(extra)
}

// canonical returns the address u, which p names as the original of its content, or nil if the
// crawl does not use it. Some sites name their start page on every page, so a start page does not
// count.
func (c *crawl) canonical(p *webPage, u *url.URL) *url.URL {
	if u == nil {
		return nil
	}
	u = plain(u)
	k := key(u)
	if k == key(p.url) || !c.w.scope.has(u) || u.Host != p.url.Host || c.alias[k] != "" || !c.clients[u.Host].allowed(u) {
		return nil
	}
	if slices.ContainsFunc(c.w.scope.starts, func(s *url.URL) bool { return key(s) == k }) {
		return nil
	}
	if c.visited[k] && c.byKey[k] == nil {
		return nil // u could not be fetched
	}
	return u
}

// convert returns the content of an answer as Markdown with marks in the place of links. The
// content is nil if the answer cannot be read.
func (c *crawl) convert(ctx context.Context, p *webPage, a *answer) (content []byte, canonical *url.URL, links []*url.URL, err error) {
	media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	extension := strings.ToLower(path.Ext(a.url.Path))
	if media == "" {
		media, _, _ = mime.ParseMediaType(http.DetectContentType(a.content))
	}
	if (media == "text/plain" || media == "application/octet-stream") && (extension == ".md" || extension == ".mdx" || extension == ".markdown") {
		media = "text/markdown"
	}
	switch media {
	case "text/html", "application/xhtml+xml":
		page, err := htmlmark.Convert(a.content, a.header.Get("Content-Type"), a.url, c.token)
		p.Title = page.Title
		return page.Markdown, page.Canonical, page.Links, err
	case "text/markdown", "text/x-markdown":
		text, links := c.markdownLinks(c.text(a), a.url)
		d, _ := frontmatter.Parse(text) // a page with broken front matter still has its text
		if p.Title = d.String("title"); p.Title == "" {
			p.Title = firstHeading(d.Body)
		}
		return text, nil, links, nil
	case "text/plain":
		p.text = true
		return c.text(a), nil, nil, nil
	}
	if c.env.Convert == nil || strings.HasPrefix(media, "image/") || strings.HasPrefix(media, "video/") || strings.HasPrefix(media, "audio/") || strings.HasPrefix(media, "font/") {
		return nil, nil, nil, nil
	}
	name := path.Base(a.url.Path)
	if extension == "" {
		if known, _ := mime.ExtensionsByType(media); len(known) > 0 {
			name += known[0]
		}
	}
	text, err := c.env.Convert(ctx, name, a.content)
	return text, nil, nil, err
}

// text returns the content of an answer in UTF-8.
func (c *crawl) text(a *answer) []byte {
	e, _, certain := charset.DetermineEncoding(a.content, a.header.Get("Content-Type"))
	if certain || !isUTF8(a.content) {
		if text, err := e.NewDecoder().Bytes(a.content); err == nil {
			return text
		}
	}
	return bytes.ToValidUTF8(a.content, []byte("\ufffd"))
}

func isUTF8(b []byte) bool { return bytes.Equal(b, bytes.ToValidUTF8(b, nil)) }

// firstHeading returns the text of the first heading of level 1 outside of code blocks, or "".
func firstHeading(markdown []byte) string {
	fenced := false
	for l := range bytes.Lines(markdown) {
		if bytes.HasPrefix(bytes.TrimSpace(l), []byte("```")) {
			fenced = !fenced
		}
		if h, ok := bytes.CutPrefix(l, []byte("# ")); ok && !fenced {
			return strings.TrimSpace(strings.TrimRight(string(h), "# \n\r"))
		}
	}
	return ""
}
