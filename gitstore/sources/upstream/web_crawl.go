package upstream

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxFailures is how many pages in a row may fail until the site counts as unreachable.
const maxFailures = 5

// crawl is one sync of a site.
type crawl struct {
	w       *web
	env     *Env
	sink    Sink
	dir     string // the directory of the converted pages
	mark    string // the start of each mark that stands for a link's address in a converted page
	clients map[string]*webClient
	list    listing
	indexes map[string]bool // the llms.txt files that were read
	follow  bool            // whether the crawl follows the links of pages
	hash    string          // the hash of the settings

	queue    []job
	starts   int             // how many jobs at the beginning of the queue are start pages
	seen     map[string]bool // the keys of the addresses that enqueue does not add again
	visited  map[string]bool
	pages    []*webPage
	byKey    map[string]*webPage
	byHash   map[string]*webPage
	alias    map[string]string // maps the key of a replaced page to the key of its replacement
	nav      map[string]bool   // the links of the start pages
	navHash  string
	fresh    int // how many pages the site gave, or confirmed as unchanged
	failures int // how many pages failed in a row
	startErr error
}

// job is an address to request.
type job struct {
	url   *url.URL
	depth int
}

// webPage is a page of the source.
type webPage struct {
	File
	url  *url.URL
	kept bool
	hash string // the hash of the content
	file string // the path of the converted page in the directory of the crawl
	text bool   // whether the page is plain text, not Markdown
}

func newCrawl(w *web, env *Env, sink Sink) (*crawl, error) {
	dir, err := os.MkdirTemp(env.Scratch, "web")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the pages: %w", err)
	}
	return &crawl{
		w: w, env: env, sink: sink, dir: dir, hash: w.settingsHash(), mark: "link" + rand.Text() + ".",
		clients: map[string]*webClient{}, indexes: map[string]bool{},
		list: listing{seen: map[string]bool{}, titles: map[string]string{}, changed: map[string]time.Time{}, markdown: map[string]*url.URL{}},
		seen: map[string]bool{}, visited: map[string]bool{}, byKey: map[string]*webPage{}, byHash: map[string]*webPage{}, alias: map[string]string{}, nav: map[string]bool{},
	}, nil
}

// enqueue adds an address to the queue, unless its page is there already or the queue is full.
func (c *crawl) enqueue(u *url.URL, depth int) {
	k := key(u)
	if c.seen[k] || c.alias[k] != "" && c.seen[c.alias[k]] || len(c.queue) >= 2*c.w.MaxPages+maxStarts {
		return
	}
	c.seen[k] = true
	c.queue = append(c.queue, job{u, depth})
}

// followable returns the address of a link without its query, if its page belongs to the source.
func (c *crawl) followable(u *url.URL) *url.URL {
	if u = plain(u); c.w.scope.has(u) && isPage(u) && !trap(u) {
		return u
	}
	return nil
}

func (c *crawl) expect() { c.sink.Expect(min(len(c.queue), c.w.MaxPages)) }

// run requests the pages in the queue, which grows with the links of the pages.
func (c *crawl) run(ctx context.Context) error {
	for i := 0; i < len(c.queue); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		j := c.queue[i]
		if i >= c.w.MaxPages {
			if i == c.w.MaxPages {
				c.env.Logger.WarnContext(ctx, "the site has more pages than the limit", "limit", c.w.MaxPages, "found", len(c.queue))
			}
			// skip keeps a page that the source already has. Of the other pages, at most one is
			// reported, to keep reports short.
			if _, at := c.known(j.url); at != nil || i == c.w.MaxPages {
				if err := c.skip(ctx, j.url, TooMany); err != nil {
					return err
				}
			}
			continue
		}
		if i == c.starts {
			c.navHash = shortHash([]byte(strings.Join(slices.Sorted(maps.Keys(c.nav)), "\n")))
		}
		if c.byKey[key(j.url)] != nil {
			continue // a redirect of another page led to this page
		}
		c.visited[key(j.url)] = true
		before := len(c.queue)
		if err := c.visit(ctx, j, i < c.starts); err != nil {
			return err
		}
		if len(c.queue) != before {
			c.expect()
		}
		c.sink.Progress(i + 1)
	}
	if c.fresh == 0 {
		c.pages = nil
	}
	return nil
}

// visit requests a page and adds it to the source.
func (c *crawl) visit(ctx context.Context, j job, start bool) error {
	client := c.clients[j.url.Host]
	if !client.allowed(j.url) {
		if start {
			c.startErr = fault.New(fault.Forbidden, "The robots.txt of %s disallows %s.", j.url.Host, j.url.Path)
		}
		return c.skip(ctx, j.url, Disallowed)
	}
	a, err := c.request(ctx, client, j, start)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errTooLarge):
		return c.skip(ctx, j.url, TooLarge)
	case errors.Is(err, errRobots):
		return c.skip(ctx, j.url, Disallowed)
	case isOutside(err):
		if out, _ := errors.AsType[*outsideError](err); start {
			c.startErr = fault.Wrap(err, fault.Invalid, "%s leads to %s. Enter the new address.", j.url, out.to).In("url")
		}
		return nil
	case errors.Is(err, errFailed):
		if c.failures++; start || c.failures >= maxFailures {
			return fault.Wrap(err, fault.Unavailable, "The site %s does not answer.", j.url.Host)
		}
		c.env.Logger.WarnContext(ctx, "a page cannot be read", "url", j.url.String(), "error", err)
		return c.skip(ctx, j.url, Failed)
	default:
		return err
	}
	c.failures = 0
	switch a.status {
	case http.StatusOK:
		return c.accept(ctx, j, a, start)
	case http.StatusNotModified:
		known, ok := c.sink.Known(c.idOf(j, a).String())
		if !ok {
			return c.skip(ctx, j.url, Failed)
		}
		return c.keep(ctx, j, a, known)
	case http.StatusNotFound, http.StatusGone:
		if start {
			c.startErr = fault.New(fault.NotFound, "There is no page at %s. Check the address.", j.url)
		}
		if _, at := c.known(j.url); at != nil {
			return nil // the page no longer exists, so the sync removes its file
		}
		return c.skip(ctx, j.url, Missing)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		if start {
			c.startErr = fault.New(fault.Forbidden, "The site %s refuses this server. Ask its operator, or choose another address.", j.url.Host)
		}
		return c.skip(ctx, j.url, Blocked)
	}
	return c.skip(ctx, j.url, Failed)
}

// request requests a page, as Markdown if the site offers it. If the crawl follows links, start
// pages are requested as HTML, because only HTML has the links of the navigation.
func (c *crawl) request(ctx context.Context, client *webClient, j job, start bool) (*answer, error) {
	header := func(at *url.URL) http.Header {
		id := at
		if md := c.list.markdown[key(j.url)]; md != nil && key(md) == key(at) {
			id = j.url
		}
		known, ok := c.sink.Known(id.String())
		if !ok {
			return nil
		}
		if t := readTag(known.Tag); c.usable(t, start) {
			return t.header()
		}
		return nil
	}
	check := func(next *url.URL) error {
		if !client.allowed(next) {
			return errRobots
		}
		if !c.w.scope.has(next) {
			return &outsideError{next}
		}
		return nil
	}
	if md := c.list.markdown[key(j.url)]; md != nil && !(start && c.follow) && client.allowed(md) {
		a, err := client.get(ctx, md, header, check)
		if err != nil && !isOutside(err) && !errors.Is(err, errRobots) || err == nil && (a.status == http.StatusOK || a.status == http.StatusNotModified) {
			return a, err
		}
	}
	return client.get(ctx, j.url, header, check)
}

// idOf returns the address that identifies a page: the one after redirects. A page that was
// requested as Markdown keeps its own address.
func (c *crawl) idOf(j job, a *answer) *url.URL {
	if md := c.list.markdown[key(j.url)]; md != nil && key(md) == key(a.url) {
		return j.url
	}
	return a.url
}

// add registers a page under its own address and under the address that was requested.
func (c *crawl) add(j job, p *webPage) {
	k := key(p.url)
	if k != key(j.url) {
		c.alias[key(j.url)] = k
	}
	c.seen[k] = true
	c.pages = append(c.pages, p)
	c.byKey[k] = p
	if p.hash != "" && c.byHash[p.hash] == nil {
		c.byHash[p.hash] = p
	}
}

// keep keeps an unchanged page and follows the links that it had.
func (c *crawl) keep(ctx context.Context, j job, a *answer, known File) error {
	u := c.idOf(j, a)
	if c.byKey[key(u)] != nil {
		c.alias[key(j.url)] = key(u)
		return nil
	}
	c.fresh++
	t := readTag(known.Tag)
	c.add(j, &webPage{File: known, url: u, kept: true, hash: t.Hash})
	if c.follow && j.depth < c.w.Depth {
		for _, l := range t.Links {
			if link, err := u.Parse(l); err == nil {
				c.enqueue(link, j.depth+1)
			}
		}
	}
	return c.sink.Keep(ctx, known)
}

// skip reports a page that cannot be fetched. Its file stays if there is one.
func (c *crawl) skip(ctx context.Context, u *url.URL, r Reason) error {
	if known, at := c.known(u); at != nil {
		u = at
		if c.byKey[key(u)] == nil {
			c.add(job{url: u}, &webPage{File: known, url: u, kept: true, hash: readTag(known.Tag).Hash})
		}
	}
	return c.sink.Skip(ctx, u.String(), r)
}

// known returns the known file of a page, and its address, which may differ in the slash at
// its end. The address is nil for an unknown page.
func (c *crawl) known(u *url.URL) (File, *url.URL) {
	other := *u
	if other.RawPath = ""; strings.HasSuffix(u.Path, "/") {
		other.Path = strings.TrimSuffix(u.Path, "/")
	} else {
		other.Path += "/"
	}
	for _, at := range []*url.URL{u, &other} {
		if f, ok := c.sink.Known(at.String()); ok {
			return f, at
		}
	}
	return File{}, nil
}

// give turns the placeholders of links into final links, and gives the new pages to the sink.
func (c *crawl) give(ctx context.Context) error {
	taken := map[string]bool{}
	fold := func(p space.Path) string { return strings.ToLower(string(p)) }
	for _, p := range c.pages {
		if p.kept {
			taken[fold(p.Path)] = true
		}
	}
	// Pages keep their paths between syncs. New pages get the paths that are free.
	for _, p := range c.pages {
		if known, ok := c.sink.Known(p.URL); ok && !p.kept && !taken[fold(known.Path)] {
			p.Path = known.Path
			taken[fold(p.Path)] = true
		}
	}
	for _, p := range c.pages {
		if p.Path != "" {
			continue
		}
		extension := ".md"
		if p.text {
			extension = ".txt"
		}
		p.Path = fileOf(p.url, extension)
		if taken[fold(p.Path)] {
			p.Path = space.Path(strings.TrimSuffix(string(p.Path), extension) + "-" + shortHash([]byte(key(p.url)))[:8] + extension)
		}
		taken[fold(p.Path)] = true
	}
	c.sink.Expect(len(c.pages))
	for _, p := range c.pages {
		if p.kept {
			continue
		}
		content, err := os.ReadFile(p.file)
		if err != nil {
			return fmt.Errorf("read a converted page: %w", err)
		}
		content = c.finish(p, content)
		if int64(len(content)) > c.env.MaxFileBytes {
			err = c.sink.Skip(ctx, p.URL, TooLarge)
		} else {
			err = c.sink.Put(ctx, p.File, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// save stores a converted page until all pages are known.
func (c *crawl) save(p *webPage, content []byte) error {
	p.file = filepath.Join(c.dir, strconv.Itoa(len(c.pages)))
	if err := os.WriteFile(p.file, content, 0o600); err != nil {
		return fmt.Errorf("store a converted page: %w", err)
	}
	return nil
}

// state returns a hash of all pages.
func (c *crawl) state() State {
	lines := make([]string, 0, len(c.pages))
	for _, p := range c.pages {
		lines = append(lines, string(p.Path)+" "+cmp.Or(p.hash, p.Tag))
	}
	slices.Sort(lines)
	return State(shortHash([]byte(strings.Join(lines, "\n"))))
}
