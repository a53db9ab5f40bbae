package oauth

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"satchel/auth"
	"satchel/internal/fault"
)

// client returns the client of an authorization request. known is true for a vendor's
// pinned client. The error is a fault to show to the person.
func (s *Server) client(ctx context.Context, id, redirect string) (c auth.Client, known bool, err error) {
	if !strings.HasPrefix(id, "https://") {
		c, err = s.o.Store.Client(ctx, id)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.Wrap(err, fault.NotFound, "This server does not know the application, or has removed it because it was not used. Remove the connection in the application and add it again.")
		}
		return c, false, err
	}
	if c, ok := pinned(id); ok {
		if s.docs == nil {
			return c, true, nil
		}
		for _, r := range c.RedirectURIs {
			if sameRedirect(r, redirect) {
				return c, true, nil
			}
		}
		// The vendor may have changed its document since it was pinned.
		if fetched, err := s.docs.get(ctx, id); err == nil {
			return fetched, false, nil
		}
		return c, true, nil
	}
	if s.docs == nil {
		return c, false, fault.New(fault.NotFound, "This server does not accept applications that identify themselves by a metadata document.")
	}
	c, err = s.docs.get(ctx, id)
	return c, false, err
}

// checkDocumentID returns the host of a client ID, or the reason why the URL cannot be a
// client ID (client ID metadata document draft, section 3).
func checkDocumentID(id string) (host string, err error) {
	u, err := parseURL(id)
	switch {
	case err != nil:
		return "", err
	case len(id) > maxClientID:
		return "", errors.New("it is too long")
	case !strings.HasPrefix(id, "https://"):
		return "", errors.New("it must begin with https://")
	case u.userinfo:
		return "", errors.New("it must not have a user")
	case strings.Contains(id, "#"):
		return "", errors.New("it must not have a fragment")
	}
	if err := checkHost(u.host); err != nil {
		return "", err
	}
	path, _, _ := strings.Cut(u.path, "?")
	if path == "" || path == "/" {
		return "", errors.New("it must have a path")
	}
	for _, segment := range strings.Split(path, "/") {
		if s := strings.ReplaceAll(strings.ToLower(segment), "%2e", "."); s == "." || s == ".." {
			return "", errors.New("its path must not have segments of dots")
		}
	}
	return strings.ToLower(u.host), nil
}

// documents fetches and caches metadata documents. It does not cache error responses (draft,
// section 5.2). After a failure, it fetches the document again only after RetryDocument.
type documents struct {
	o      Options
	http   *http.Client
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	entries *simplelru.LRU[string, document]
	flights map[string]*flight
	hosts   map[string]int // number of flights per host
}

type document struct {
	client auth.Client
	failed bool // the fetch failed; until is when to try again
	until  time.Time
}

type flight struct {
	done   chan struct{}
	client auth.Client
	err    error
}

const (
	maxPerHost = 2
	// defaultFresh is how long a document is cached if its response states no lifetime.
	defaultFresh = time.Hour
)

func newDocuments(o Options) *documents {
	entries, _ := simplelru.NewLRU[string, document](o.MaxDocuments, nil)
	d := &documents{
		o: o, slots: make(chan struct{}, o.MaxFetches),
		entries: entries, flights: map[string]*flight{}, hosts: map[string]int{},
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	client := *o.HTTP
	// Redirects are not followed (draft, section 5).
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d.http = &client
	return d
}

func (d *documents) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.wg.Wait()
}

// get returns the client of a document, from the cache or after a fetch. Concurrent callers
// share a fetch.
func (d *documents) get(ctx context.Context, id string) (auth.Client, error) {
	host, err := checkDocumentID(id)
	if err != nil {
		return auth.Client{}, fault.Wrap(err, fault.Invalid, "The application's id is not the URL of a metadata document: %s.", err)
	}
	d.mu.Lock()
	if c, ok, err := d.kept(id); ok {
		d.mu.Unlock()
		return c, err
	}
	f := d.flights[id]
	if f == nil {
		// A fetch continues after its caller has gone, so the number of fetches is limited.
		if d.closed || len(d.flights) >= 8*d.o.MaxFetches || d.hosts[host] >= maxPerHost {
			d.mu.Unlock()
			return auth.Client{}, &fault.Error{Code: fault.Limited, RetryAfter: d.o.RetryDocument, Public: "Too many applications are being looked up. Try again in a few seconds."}
		}
		f = &flight{done: make(chan struct{})}
		d.flights[id] = f
		d.hosts[host]++
		d.wg.Add(1)
		go d.fly(id, host, f)
	}
	d.mu.Unlock()
	select {
	case <-f.done:
		return f.client, f.err
	case <-ctx.Done():
		return auth.Client{}, fault.Wrap(ctx.Err(), fault.Canceled, "The request was canceled.")
	}
}

// kept returns the cached client of id, or an error if its fetch failed recently. The caller
// holds the lock.
func (d *documents) kept(id string) (auth.Client, bool, error) {
	doc, ok := d.entries.Get(id)
	if !ok {
		return auth.Client{}, false, nil
	}
	wait := doc.until.Sub(d.o.Now())
	if wait <= 0 {
		d.entries.Remove(id)
		return auth.Client{}, false, nil
	}
	if doc.failed {
		return auth.Client{}, true, &fault.Error{Code: fault.Unavailable, RetryAfter: wait, Public: "The application's description could not be fetched a moment ago. Try again in a few seconds."}
	}
	return doc.client, true, nil
}

func (d *documents) fly(id, host string, f *flight) {
	defer d.wg.Done()
	ctx, cancel := context.WithTimeout(d.ctx, d.o.DocumentTimeout)
	defer cancel()
	var fresh time.Duration
	select {
	case d.slots <- struct{}{}:
		f.client, fresh, f.err = d.fetch(ctx, id)
		<-d.slots
	case <-ctx.Done():
		f.err = fault.Wrap(ctx.Err(), fault.Unavailable, "Too many applications are being looked up. Try again in a few seconds.")
	}
	if f.err != nil {
		d.o.Logger.InfoContext(ctx, "A client's metadata document could not be fetched.", "client", clip(id), "error", f.err)
	}
	d.mu.Lock()
	delete(d.flights, id)
	if d.hosts[host]--; d.hosts[host] == 0 {
		delete(d.hosts, host)
	}
	switch {
	case f.err != nil:
		d.entries.Add(id, document{failed: true, until: d.o.Now().Add(d.o.RetryDocument)})
	case fresh > 0:
		d.entries.Add(id, document{client: f.client, until: d.o.Now().Add(fresh)})
	}
	d.mu.Unlock()
	close(f.done)
}

func (d *documents) fetch(ctx context.Context, id string) (auth.Client, time.Duration, error) {
	const cannot = "The application's description could not be fetched from %s."
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return auth.Client{}, 0, fault.Wrap(err, fault.Invalid, cannot, id)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Satchel")
	resp, err := d.http.Do(req)
	if err != nil {
		// Why the fetch failed is only in the wrapped error, for the log, because it could
		// reveal the server's network.
		return auth.Client{}, 0, fault.Wrap(err, fault.Unavailable, cannot, id)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return auth.Client{}, 0, fault.New(fault.Unavailable, "The application's description could not be fetched from %s: the answer has the status %d.", id, resp.StatusCode)
	}
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || t != "application/json" && !(strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json")) {
		return auth.Client{}, 0, fault.New(fault.Invalid, "The application's description at %s is not application/json.", id)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, d.o.MaxDocumentBytes+1))
	if err != nil {
		return auth.Client{}, 0, fault.Wrap(err, fault.Unavailable, cannot, id)
	}
	if int64(len(body)) > d.o.MaxDocumentBytes {
		return auth.Client{}, 0, fault.New(fault.TooLarge, "The application's description at %s is larger than %d bytes.", id, d.o.MaxDocumentBytes)
	}
	m, err := parseClientMetadata(body)
	var c auth.Client
	if err == nil {
		c, err = m.document(id)
	}
	if err != nil {
		return auth.Client{}, 0, fault.Wrap(err, fault.Invalid, "The application's description at %s cannot be used: %s.", id, err)
	}
	return c, min(freshness(resp.Header), max(0, d.o.DocumentCache)), nil
}

// freshness returns how long a response may be cached (RFC 9111 section 4.2).
func freshness(h http.Header) time.Duration {
	fresh := defaultFresh
	for _, directive := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
			if err != nil {
				return 0
			}
			fresh = time.Duration(seconds) * time.Second
		}
	}
	if age, err := strconv.ParseUint(h.Get("Age"), 10, 31); err == nil {
		fresh -= time.Duration(age) * time.Second
	}
	return max(0, fresh)
}
