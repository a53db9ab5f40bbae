//go:build linux

package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// pagesSuite measures the pages of a space with 10,000 files: the time until the last byte, and
// the compressed bytes of a page with everything that it loads.
func pagesSuite(ctx context.Context, b *bench) error {
	s, c, err := b.serveOne(ctx, "pages")
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	dir := filepath.Join(b.dir, "pages-corpus")
	if err := makeCorpus(dir, b.size(searchPages), searchPage); err != nil {
		return err
	}
	if err := s.importDir(ctx, "ada", dir); err != nil {
		return err
	}
	if err := s.admin(ctx, new(any), "reindex", "--changed", os.DevNull, "--user", "ada"); err != nil {
		return err
	}
	if _, err := c.call(ctx, "remember", map[string]any{"facts": []map[string]any{{"type": "preference", "key": "drink", "value": "Tea"}}}); err != nil {
		return err
	}
	w, err := s.signIn(ctx, "ada")
	if err != nil {
		return err
	}
	_, home, err := w.get(ctx, "/")
	if err != nil {
		return err
	}
	space := spaceLink.FindString(home)
	if space == "" {
		return errors.New("the page Home has no link to a space")
	}
	for _, p := range []struct{ name, path string }{
		{"home", "/"}, {"files", space + "/files"}, {"directory", space + "/files/" + filepath.Dir(pagePath(0))},
		{"file", space + "/files/" + pagePath(0)}, {"history", space + "/history/" + pagePath(0)},
		{"edit", space + "/edit/" + pagePath(0)}, {"search", space + "/search?q=" + url.QueryEscape(queries(2)[1])},
		{"memory", space + "/memory"}, {"activity", space + "/activity"}, {"sources", "/library"},
		{"connect", "/connect"}, {"settings", space}, {"account", "/account"},
	} {
		if err := w.measure(ctx, b, p.name, p.path); err != nil {
			return err
		}
	}
	return nil
}

var (
	spaceLink = regexp.MustCompile(`/spaces/[a-z0-9_]+`)
	formField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
	formURL   = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
	loaded    = regexp.MustCompile(`(?:<script[^>]* src|<link[^>]* rel="stylesheet"[^>]* href|<link[^>]* href)="(/[^"]*)"`)
)

// browser is the browser of a signed-in person. It runs no scripts.
type browser struct {
	base string
	http *http.Client
}

// signIn signs in with a one-time link.
func (s *server) signIn(ctx context.Context, name string) (*browser, error) {
	var link struct{ URL string }
	if err := s.admin(ctx, &link, "login-link", "--user", name); err != nil {
		return nil, err
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	w := &browser{u.Scheme + "://" + u.Host, &http.Client{Jar: jar}}
	_, page, err := w.get(ctx, u.RequestURI())
	if err != nil {
		return nil, err
	}
	form := url.Values{}
	for _, m := range formField.FindAllStringSubmatch(page, -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	action := formURL.FindStringSubmatch(page)
	if action == nil {
		return nil, errors.New("the page of a sign-in link has no form")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+html.UnescapeString(action[1]), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", w.base)
	res, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("signing in answered %s", res.Status)
	}
	return w, nil
}

// get requests a path. It returns the text of the answer, and its compressed size in bytes.
func (w *browser) get(ctx context.Context, path string) (int64, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := w.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, "", fmt.Errorf("GET %s answered %s", path, res.Status)
	}
	sent := &countedReader{r: res.Body}
	var body io.Reader = sent
	if res.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(sent); err != nil {
			return 0, "", err
		}
	}
	text, err := io.ReadAll(body)
	return sent.n, string(text), err
}

// countedReader counts the bytes that are read.
type countedReader struct {
	r io.Reader
	n int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// measure prints the figures of a page. The first request is not timed.
func (w *browser) measure(ctx context.Context, b *bench, name, path string) error {
	size, page, err := w.get(ctx, path)
	if err != nil {
		return err
	}
	for _, m := range loaded.FindAllStringSubmatch(page, -1) {
		n, _, err := w.get(ctx, html.UnescapeString(m[1]))
		if err != nil {
			return err
		}
		size += n
	}
	var took times
	for range b.runs(60) {
		if err := took.add(func() error {
			_, _, err := w.get(ctx, path)
			return err
		}); err != nil {
			return err
		}
	}
	b.alone("page_"+name+"_p50", took.median(), "ms")
	b.alone("page_"+name+"_p95", took.p(0.95), "ms")
	b.alone("page_"+name+"_size", float64(size)/1000, "kB")
	return nil
}
