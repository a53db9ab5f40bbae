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
	gzip func() []byte // returns the compressed body
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
		case ".png":
			mime = "image/png"
		default:
			return nil, fmt.Errorf("static files: %s has no type", f.Name())
		}
		sum := sha256.Sum256(body)
		out[f.Name()] = asset{
			body: body, mime: mime, url: "/static/" + f.Name() + "?" + hex.EncodeToString(sum[:6]),
			gzip: sync.OnceValue(func() []byte { return compress(gzip.NewWriter(nil), body) }),
		}
	}
	return out, nil
}

// HasAsset reports whether there is a static file with the name. The file of the editor is missing
// in a server that was built without the editor; see scripts/editor.
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
