package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
)

const (
	// maxSitemaps bounds the sitemaps of a site that are read.
	maxSitemaps = 50
	// maxListBytes bounds a sitemap or an llms.txt after it is unpacked. The protocol of
	// sitemaps allows 50 MB, but the sitemaps of documentation are much smaller.
	maxListBytes = 16 << 20
)

// listing is what a site says about its own pages.
type listing struct {
	pages   []*url.URL
	seen    map[string]bool
	titles  map[string]string    // the titles that llms.txt states, by the key of the page
	changed map[string]time.Time // the last changes that sitemaps state, by the key of the page
	// markdown has the addresses at which pages are Markdown, by the key of the page.
	markdown map[string]*url.URL
}

func (l *listing) add(u *url.URL) {
	if k := key(u); !l.seen[k] {
		l.seen[k] = true
		l.pages = append(l.pages, u)
	}
}

// discover reads robots.txt, the sitemaps and llms.txt of each host, and fills the queue.
func (c *crawl) discover(ctx context.Context) error {
	for _, start := range c.w.scope.starts {
		client := c.clients[start.Host]
		if client == nil {
			client = newWebClient(c.w, c.env)
			c.clients[start.Host] = client
			sitemaps, err := client.readRobots(ctx, start)
			if errors.Is(err, errFailed) {
				return fault.Wrap(err, fault.Unavailable, "The site %s does not answer.", start.Host)
			}
			if err != nil {
				return err
			}
			if err := c.readSitemaps(ctx, client, start, sitemaps); err != nil {
				return err
			}
		}
		if err := c.readIndex(ctx, client, start); err != nil {
			return err
		}
	}
	// Some sitemaps, such as those of Read the Docs, list only the start page.
	c.follow = c.w.follow || len(c.list.pages) < 2
	for _, u := range c.w.scope.starts {
		if c.follow || c.w.scope.has(u) {
			c.enqueue(u, 0)
		}
	}
	c.starts = len(c.queue)
	for _, u := range c.list.pages {
		c.enqueue(u, 0)
	}
	c.expect()
	return nil
}

// fetchList requests a file with a list of pages. It returns nil if robots.txt disallows
// the file, the site does not have it, or it cannot be read.
func (c *crawl) fetchList(ctx context.Context, client *webClient, u *url.URL) (*answer, error) {
	if !client.allowed(u) {
		return nil, nil
	}
	limit := client.limit
	client.limit = maxListBytes
	defer func() { client.limit = limit }()
	a, err := client.get(ctx, u, nil, func(*url.URL) error { return nil })
	if errors.Is(err, errTooLarge) || isOutside(err) || errors.Is(err, errFailed) {
		c.env.Logger.WarnContext(ctx, "a list of pages cannot be read", "url", u.String(), "error", err)
		return nil, nil
	}
	if err != nil || a.status != http.StatusOK {
		return nil, err
	}
	return a, nil
}

// readSitemaps reads the sitemaps that robots.txt names, or else those in the usual places.
func (c *crawl) readSitemaps(ctx context.Context, client *webClient, start *url.URL, named []string) error {
	var queue []*url.URL
	for _, s := range named {
		if u, err := start.Parse(s); err == nil {
			queue = append(queue, tidy(u))
		}
	}
	if len(queue) == 0 {
		for _, p := range []string{prefixOf(start) + "sitemap.xml", "/sitemap.xml"} {
			queue = append(queue, start.ResolveReference(&url.URL{Path: p}))
		}
	}
	done := map[string]bool{}
	for len(queue) > 0 && len(done) < maxSitemaps {
		u := queue[0]
		queue = queue[1:]
		if done[u.String()] || u.Host != start.Host {
			continue
		}
		done[u.String()] = true
		a, err := c.fetchList(ctx, client, u)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		for _, more := range c.readSitemap(unpack(a.content)) {
			if s, err := u.Parse(more); err == nil {
				queue = append(queue, tidy(s))
			}
		}
	}
	return nil
}

// unpack returns the content of a file that may be packed with gzip. It returns nil if the content
// cannot be unpacked or is too large.
func unpack(content []byte) []byte {
	if !bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		return content
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil
	}
	out, err := io.ReadAll(io.LimitReader(z, maxListBytes+1))
	if err != nil && len(out) == 0 || len(out) > maxListBytes {
		return nil
	}
	return out
}

// readSitemap adds the pages of a sitemap to the list. If the file is an index of sitemaps,
// readSitemap returns their addresses. A sitemap can be a text with an address on each line.
func (c *crawl) readSitemap(content []byte) (sitemaps []string) {
	if !bytes.HasPrefix(bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\ufeff"))), []byte("<")) {
		for l := range strings.Lines(string(content)) {
			c.listPage(strings.TrimSpace(l), "")
		}
		return nil
	}
	d := xml.NewDecoder(bytes.NewReader(content))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		t, err := d.Token()
		if err != nil {
			return sitemaps
		}
		start, ok := t.(xml.StartElement)
		if !ok || start.Name.Local != "url" && start.Name.Local != "sitemap" {
			continue
		}
		var entry struct {
			Loc     string `xml:"loc"`
			Lastmod string `xml:"lastmod"`
		}
		if err := d.DecodeElement(&entry, &start); err != nil {
			return sitemaps
		}
		if start.Name.Local == "sitemap" {
			if len(sitemaps) < maxSitemaps {
				sitemaps = append(sitemaps, strings.TrimSpace(entry.Loc))
			}
			continue
		}
		c.listPage(strings.TrimSpace(entry.Loc), strings.TrimSpace(entry.Lastmod))
	}
}

// listPage adds a page of a sitemap. It keeps the query of the address, because the site lists it.
func (c *crawl) listPage(address, lastmod string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || len(c.list.pages) >= maxMaxPages {
		return
	}
	u = tidy(u)
	if !c.w.scope.has(u) || !isPage(u) {
		return
	}
	c.list.add(u)
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, lastmod); err == nil {
			c.list.changed[key(u)] = t.UTC()
			break
		}
	}
}

// linkInList finds the links of an llms.txt.
var linkInList = regexp.MustCompile(`\[([^\]\n]{0,300})\]\(\s*<?([^)\s>]+)`)

// readIndex reads the llms.txt for a start address. An llms.txt lists pages, often as Markdown,
// which is better than a conversion. llms-full.txt repeats the pages, so it is not a page.
func (c *crawl) readIndex(ctx context.Context, client *webClient, start *url.URL) error {
	for _, p := range slices.Compact([]string{prefixOf(start) + "llms.txt", "/llms.txt"}) {
		at := start.ResolveReference(&url.URL{Path: p})
		if c.indexes[at.String()] {
			return nil
		}
		c.indexes[at.String()] = true
		a, err := c.fetchList(ctx, client, at)
		if err != nil {
			return err
		}
		// Many sites answer every address with an HTML page, which is not an llms.txt.
		if a == nil || strings.HasPrefix(strings.TrimSpace(string(a.content[:min(len(a.content), 200)])), "<") {
			continue
		}
		for _, m := range linkInList.FindAllStringSubmatch(string(a.content), maxMaxPages) {
			u, err := a.url.Parse(m[2])
			if err != nil {
				continue
			}
			c.listIndexed(plain(u), m[1])
		}
		return nil
	}
	return nil
}

func (c *crawl) listIndexed(u *url.URL, title string) {
	base := path.Base(u.Path)
	if u.Host == "" || !isPage(u) || base == "llms.txt" || base == "llms-full.txt" || len(c.list.pages) >= maxMaxPages {
		return
	}
	page := u
	if strings.HasSuffix(u.Path, ".md") {
		page = plain(u)
		page.RawPath = ""
		page.Path = strings.TrimSuffix(u.Path, ".md") // page.md becomes page, and page.html.md becomes page.html
		if path.Base(page.Path) == "index" {
			page.Path = strings.TrimSuffix(page.Path, "index")
		}
		page.Path = strings.TrimSuffix(page.Path, "index.html")
	}
	if !c.w.scope.has(page) && !c.w.scope.has(u) {
		return
	}
	if page != u {
		c.list.markdown[key(page)] = u
		if !c.list.seen[key(page)] { // the page may exist only as Markdown
			page = u
			c.alias[key(plainMarkdown(u))] = key(u)
		}
	}
	if c.list.titles[key(page)] == "" {
		c.list.titles[key(page)] = strings.TrimSpace(title)
	}
	c.list.add(page)
}

// plainMarkdown returns the address of a Markdown page without the extensions .md and .html.
func plainMarkdown(u *url.URL) *url.URL {
	t := *u
	t.RawPath = ""
	t.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, ".md"), ".html")
	return &t
}
