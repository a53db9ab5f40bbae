package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed templates static
var files embed.FS

// asset is a static file. Its address changes with its content, so that browsers can
// cache it forever.
type asset struct {
	body []byte
	mime string
	url  string
	// gzip returns the compressed body. Only static files are compressed, because the size of a
	// compressed page could reveal the secrets in it (BREACH).
	gzip func() []byte
}

// compress returns a body compressed with gzip.
func compress(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// takesGzip reports whether a client accepts gzip (RFC 9110, section 12.5.3).
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" {
			_, q, _ := strings.Cut(weight, "=")
			n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return err != nil || n > 0
		}
	}
	return false
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
		out[f.Name()] = asset{
			body: body, mime: mime, url: "/static/" + f.Name() + "?" + hex.EncodeToString(sum[:6]),
			gzip: sync.OnceValue(func() []byte { return compress(body) }),
		}
	}
	return out, nil
}

// HasAsset reports whether there is a static file. The editor is missing in a server that was
// built without it; see scripts/editor.
func (s *Site) HasAsset(name string) bool {
	_, ok := s.assets[name]
	return ok
}

// static serves the static files.
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
	h.Set("Vary", "Accept-Encoding")
	body := a.body
	if takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = a.gzip()
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
