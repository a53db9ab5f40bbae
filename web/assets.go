package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed templates static
var files embed.FS

// asset is a file that pages include. Its address changes with its content, so
// that browsers keep it for good.
type asset struct {
	body []byte
	mime string
	url  string
}

func loadAssets() (map[string]asset, error) {
	list, err := fs.ReadDir(files, "static")
	if err != nil {
		return nil, fmt.Errorf("static files: %w", err)
	}
	out := map[string]asset{}
	for _, f := range list {
		body, err := fs.ReadFile(files, "static/"+f.Name())
		if err != nil {
			return nil, fmt.Errorf("static files: %w", err)
		}
		var mime string
		switch path.Ext(f.Name()) {
		case ".css":
			mime = "text/css; charset=utf-8"
		case ".js":
			mime = "text/javascript; charset=utf-8"
		case ".svg":
			mime = "image/svg+xml"
		default:
			return nil, fmt.Errorf("static files: %s has no type", f.Name())
		}
		sum := sha256.Sum256(body)
		out[f.Name()] = asset{body: body, mime: mime, url: "/static/" + f.Name() + "?" + hex.EncodeToString(sum[:6])}
	}
	return out, nil
}

// static serves what pages include.
func (s *Site) static(w http.ResponseWriter, r *http.Request) {
	s.secureHeaders(w, r)
	a, ok := s.assets[r.PathValue("name")]
	if !ok {
		s.Fail(&Visit{W: w, R: r}, ErrNoPage)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.mime)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "public, max-age=3600")
	if strings.HasSuffix(a.url, "?"+r.URL.RawQuery) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(a.body)))
}

// pageTemplate is the template of a page.
type pageTemplate struct {
	*template.Template
	times bool // it prints some
}

// loadTemplates parses each page together with the layout. labels are what the
// providers are called, by their names.
func loadTemplates(assets map[string]asset, labels map[string]string, now func() time.Time) (map[string]pageTemplate, error) {
	base, err := template.New("layout").Funcs(template.FuncMap{
		"count":  count,
		"asset":  func(name string) string { return assets[name].url },
		"time":   timesAt(now),
		"span":   Span,
		"device": DeviceOf,
		"method": func(m string) string { return method(m, labels) },
		"short":  func(s string) string { return Shorten(s, 80) },
		"path":   func(p string) string { return ShownPath(p, 120) },
	}).ParseFS(files, "templates/layout.html")
	if err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	list, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	out := map[string]pageTemplate{}
	for _, f := range list {
		name := strings.TrimSuffix(path.Base(f), ".html")
		if name == "layout" {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(files, f)
		}
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		text, err := fs.ReadFile(files, f)
		if err != nil {
			return nil, fmt.Errorf("page %s: %w", name, err)
		}
		out[name] = pageTemplate{t, bytes.Contains(text, []byte("{{time "))}
	}
	return out, nil
}

// method is what a way to sign in is called on pages.
func method(m string, labels map[string]string) string {
	if l := labels[m]; l != "" {
		return l
	}
	switch m {
	case "link":
		return "one-time link"
	case "github":
		return "GitHub"
	case "oidc":
		return "single sign-on"
	}
	return m
}
