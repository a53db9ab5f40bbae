package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// packFrom is the size in bytes from which a page is worth compressing. A smaller page fits into
// one packet anyway. packLevel is the gzip level for pages, which are compressed for each answer.
const (
	packFrom  = 1 << 10
	packLevel = gzip.BestSpeed
)

// packs reports whether the page that answers a request is compressed. The size of a
// compressed page depends on text that the page has twice, such as a word of the address that
// is also in a private file. So an attacker who sees the network must not choose the address.
// Therefore a page is compressed only if the browser says that no other site caused the request.
func packs(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return takesGzip(r)
	}
	return false
}

// pack returns a compressed page.
func (s *Site) pack(page []byte) []byte {
	w, ok := s.packers.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, packLevel) // fails only for an unknown level
	}
	defer s.packers.Put(w)
	return compress(w, page)
}

// compress compresses a body with w.
func compress(w *gzip.Writer, body []byte) []byte {
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(body) // a write to a buffer never fails
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
