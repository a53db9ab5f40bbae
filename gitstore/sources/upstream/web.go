package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
)

// The defaults and limits of a web site.
const (
	// defaultMaxPages is more than most documentation sites have. With webPause between
	// requests, 1,000 pages take some ten minutes.
	defaultMaxPages = 1000
	maxMaxPages     = 20_000
	// defaultDepth reaches all pages of a site with navigation on each page, and ends a
	// chain of generated links.
	defaultDepth = 8
	maxDepth     = 30
	maxStarts    = 20
	maxPatterns  = 100
	// webPause is the time between two requests to a host. It keeps the load below that of
	// one person who reads fast.
	webPause = 200 * time.Millisecond
	// maxPause bounds the time between two requests, whatever robots.txt or a busy site asks for.
	// A site of 1,000 pages could otherwise hold up the syncs of other sources for most of a day.
	maxPause = 5 * time.Second
	// webTimeout bounds a request with its answer.
	webTimeout = time.Minute
)

// web is a web site. Its pages become Markdown.
type web struct {
	URL      string   `json:"url,omitempty"`
	URLs     []string `json:"urls,omitempty"`
	Include  []string `json:"include,omitempty"`
	Exclude  []string `json:"exclude,omitempty"`
	Depth    int      `json:"depth,omitempty"`
	MaxPages int      `json:"max_pages,omitempty"`

	// follow is set if the settings have a depth. Then the crawl follows the links of pages even
	// if the site lists its pages.
	follow bool
	scope  scope
	// wait waits for a duration. Tests replace it.
	wait func(context.Context, time.Duration) error
	// timeout is webTimeout, except in tests, which need a longer one.
	timeout time.Duration
}

func newWeb() Upstream { return &web{} }

// recognizeWeb takes every https address, so web must be the last kind.
func recognizeWeb(u *url.URL) Upstream {
	if u.Scheme != "https" || u.User != nil {
		return nil
	}
	return &web{URL: u.String()}
}

func (w *web) Validate() error {
	invalid := func(field, format string, args ...any) error {
		return fault.New(fault.Invalid, format, args...).In(field)
	}
	starts := slices.Clone(w.URLs)
	if w.URL != "" {
		starts = append([]string{w.URL}, starts...)
	}
	if len(starts) == 0 {
		return invalid("url", "Enter the address where the documentation begins, such as https://docs.example.com/guide/.")
	}
	if len(starts) > maxStarts {
		return invalid("urls", "A source can begin at %d addresses at most. Make several sources.", maxStarts)
	}
	field := "urls"
	if w.URL != "" {
		field = "url"
	}
	w.scope = scope{}
	for _, s := range starts {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return invalid(field, "%q is not the address of a web page. It must begin with https://.", s)
		}
		if u.User != nil {
			return invalid(field, "The address must not contain a password.")
		}
		w.scope.starts = append(w.scope.starts, tidy(u))
	}
	var err error
	if w.scope.include, err = patterns("include", w.Include); err != nil {
		return err
	}
	if w.scope.exclude, err = patterns("exclude", w.Exclude); err != nil {
		return err
	}
	if w.Depth < 0 || w.Depth > maxDepth {
		return invalid("depth", "The depth must be between 1 and %d.", maxDepth)
	}
	if w.MaxPages < 0 || w.MaxPages > maxMaxPages {
		return invalid("max_pages", "The limit of pages must be between 1 and %d.", maxMaxPages)
	}
	w.follow = w.Depth > 0
	w.Depth = cmp.Or(w.Depth, defaultDepth)
	w.MaxPages = cmp.Or(w.MaxPages, defaultMaxPages)
	w.timeout = cmp.Or(w.timeout, webTimeout)
	if w.wait == nil {
		w.wait = pause
	}
	return nil
}

// Check returns no state, because no single request shows whether a site has changed. Fetch
// asks for each page whether it has changed.
func (w *web) Check(context.Context, *Env) (State, error) { return "", nil }

// Fetch reads the site in two steps. First it downloads and converts each page. When all
// pages are known, it replaces the links between them by relative ones and gives the pages
// to the sink.
func (w *web) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	c, err := newCrawl(w, env, sink)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(c.dir)
	if err := c.discover(ctx); err != nil {
		return "", err
	}
	if err := c.run(ctx); err != nil {
		return "", err
	}
	if len(c.pages) == 0 {
		if c.startErr != nil {
			return "", c.startErr
		}
		return "", fault.New(fault.NotFound, "The site has no page that can be read. Check the address and the patterns.")
	}
	if err := c.give(ctx); err != nil {
		return "", err
	}
	return c.state(), nil
}

// settingsHash returns a hash of the settings, which decide what a page becomes.
func (w *web) settingsHash() string {
	b, err := json.Marshal(w)
	if err != nil { // w has only texts, lists and numbers, which Marshal accepts
		panic(err)
	}
	return shortHash(b)
}

func shortHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// pause waits for a duration or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
