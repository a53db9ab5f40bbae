package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"

	"satchel/internal/fault"
)

// webAgent identifies the server to web sites. robots.txt can address it as "satchel".
const webAgent = "Satchel/1.0 (reads documentation for AI agents)"

const (
	maxRedirects = 5
	// maxTries bounds how often a request is sent if it fails, or the site asks to repeat it.
	maxTries = 3
	// maxPatience is the longest wait that a site can ask for within a sync. If a site asks
	// for more, the sync ends, and runs again later.
	maxPatience = time.Minute
	// maxRobots is how many bytes of a robots.txt are read. RFC 9309 asks crawlers to read at
	// least as many.
	maxRobots = 500 << 10
)

// webClient requests the pages of one host, one at a time.
type webClient struct {
	http    *http.Client
	wait    func(context.Context, time.Duration) error
	now     func() time.Time
	timeout time.Duration
	limit   int64
	robots  *robotstxt.RobotsData
	pause   time.Duration
	next    time.Time // the earliest time of the next request
}

// answer is what a site answers to a request.
type answer struct {
	url     *url.URL // after redirects
	status  int
	header  http.Header
	content []byte
}

// The reasons why a request has no answer.
var (
	errTooLarge = errors.New("the answer is over the size limit")
	errRobots   = errors.New("robots.txt disallows the address")
	errFailed   = errors.New("the site does not answer")
)

// outsideError is a redirect to an address that does not belong to the source.
type outsideError struct{ to *url.URL }

func (e *outsideError) Error() string {
	return fmt.Sprintf("the redirect to %s leaves the source", e.to)
}

func isOutside(err error) bool {
	_, ok := errors.AsType[*outsideError](err)
	return ok
}

func newWebClient(w *web, env *Env) *webClient {
	client := *env.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &webClient{http: &client, wait: w.wait, now: env.Now, timeout: w.timeout, limit: env.MaxFileBytes, pause: webPause}
}

// readRobots reads the site's robots.txt, and returns its sitemaps. A site without the file
// allows everything. So does a site whose file is too large or on another host. If the site
// does not answer properly, RFC 9309 allows nothing, so readRobots returns an error.
func (c *webClient) readRobots(ctx context.Context, site *url.URL) ([]string, error) {
	at := site.ResolveReference(&url.URL{Path: "/robots.txt"})
	limit := c.limit
	c.limit = max(limit, 10*maxRobots)
	a, err := c.get(ctx, at, nil, func(*url.URL) error { return nil })
	c.limit = limit
	switch {
	case errors.Is(err, errTooLarge), isOutside(err):
		return nil, nil
	case err != nil:
		return nil, err
	case a.status >= 400 && a.status < 500, a.status == http.StatusNotModified:
		return nil, nil
	case a.status != http.StatusOK:
		return nil, fault.New(fault.Unavailable, "The site %s cannot answer now.", site.Host)
	}
	data, err := robotstxt.FromBytes(tolerant(a.content[:min(len(a.content), maxRobots)]))
	if err != nil {
		return nil, fault.Wrap(err, fault.Forbidden, "The robots.txt of %s cannot be read.", site.Host)
	}
	c.robots = data
	if g := data.FindGroup(webAgent); g != nil {
		c.pause = min(max(webPause, g.CrawlDelay), maxPause)
	}
	return data.Sitemaps, nil
}

// tolerant returns the lines of a robots.txt that robotstxt understands. The library rejects
// a file for one wrong line. For a group whose only rule is an empty Disallow, the library
// uses the rules of the next group. tolerant therefore writes an Allow instead.
func tolerant(file []byte) []byte {
	var out bytes.Buffer
	agent := false
	for l := range strings.Lines(strings.TrimPrefix(strings.ToValidUTF8(string(file), ""), "\ufeff")) {
		l, _, _ = strings.Cut(l, "#")
		name, value, ok := strings.Cut(l, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if !ok {
			continue
		}
		switch name {
		case "user-agent":
			agent = true
		case "sitemap":
		case "disallow", "allow":
			if !agent {
				continue
			}
			if value == "" {
				name, value = "allow", "/"
			}
		case "crawl-delay":
			if d, err := strconv.ParseFloat(value, 64); !agent || err != nil || d < 0 || d > 1e6 {
				continue
			}
		default:
			continue
		}
		fmt.Fprintf(&out, "%s: %s\n", name, value)
	}
	return out.Bytes()
}

// allowed reports whether robots.txt allows an address.
func (c *webClient) allowed(u *url.URL) bool {
	return c.robots == nil || c.robots.TestAgent(u.RequestURI(), webAgent)
}

// get requests an address and follows redirects that check allows. A redirect to another host is
// an outsideError. get repeats the request if the site is busy or the answer is broken. header
// returns further headers for an address.
func (c *webClient) get(ctx context.Context, u *url.URL, header func(*url.URL) http.Header, check func(*url.URL) error) (*answer, error) {
	for redirects := 0; ; redirects++ {
		a, err := c.try(ctx, u, header)
		if err != nil {
			return nil, err
		}
		switch a.status {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return a, nil
		}
		next, err := u.Parse(a.header.Get("Location"))
		if err != nil || a.header.Get("Location") == "" || redirects == maxRedirects {
			return nil, fmt.Errorf("%w: a redirect of %s leads nowhere", errFailed, u)
		}
		next = tidy(next)
		if next.Host != u.Host {
			return nil, &outsideError{next}
		}
		if err := check(next); err != nil {
			return nil, err
		}
		u = next
	}
}

// try requests an address until it has an answer, at most maxTries times. It returns a
// fault.Limited if the site asks for a long wait, or asks to wait at the last try.
func (c *webClient) try(ctx context.Context, u *url.URL, header func(*url.URL) http.Header) (*answer, error) {
	var last error
	for n := 1; ; n++ {
		if err := c.wait(ctx, c.next.Sub(c.now())); err != nil {
			return nil, err
		}
		a, err := c.once(ctx, u, header)
		c.next = c.now().Add(c.pause)
		backoff := time.Second << n
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errTooLarge):
			return nil, err
		case err != nil:
			last = fmt.Errorf("%w: %w", errFailed, err)
		case a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable:
			after := retryAfter(a.header, c.now())
			if after > maxPatience || n == maxTries {
				return nil, &fault.Error{Code: fault.Limited, RetryAfter: cmp.Or(after, 5*time.Minute),
					Public: fmt.Sprintf("The site %s asks Satchel to wait.", u.Host), Err: fmt.Errorf("%s answers %d", u, a.status)}
			}
			backoff = max(after, backoff)
			c.pause = min(2*c.pause, maxPause)
			last = fmt.Errorf("%w: status %d", errFailed, a.status)
		case a.status >= 500:
			last = fmt.Errorf("%w: status %d", errFailed, a.status)
		default:
			return a, nil
		}
		if n == maxTries {
			return nil, last
		}
		c.next = c.now().Add(max(backoff, c.pause))
	}
}

func (c *webClient) once(ctx context.Context, u *url.URL, header func(*url.URL) http.Header) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", u, err)
	}
	if header != nil {
		for k, v := range header(u) {
			req.Header[k] = v
		}
	}
	req.Header.Set("User-Agent", webAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	a := &answer{url: u, status: res.StatusCode, header: res.Header}
	if res.StatusCode != http.StatusOK {
		return a, nil
	}
	// The transport unpacks gzip, so the limit also bounds what a small answer grows to.
	a.content, err = io.ReadAll(io.LimitReader(res.Body, c.limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", u, err)
	}
	if int64(len(a.content)) > c.limit {
		return nil, errTooLarge
	}
	return a, nil
}

// retryAfter returns how long an answer asks to wait, or 0. The header has seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil && s >= 0 && s < 1e7 {
		return time.Duration(s) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
