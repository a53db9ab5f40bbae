package web_test

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"satchel/web"
)

// accepts sets headers of a request, given as pairs of name and value.
func accepts(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i+1 < len(pairs); i += 2 {
			r.Header.Set(pairs[i], pairs[i+1])
		}
	}
}

// unpacked returns the text of a compressed answer.
func unpacked(t *testing.T, body string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(body))
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

// Static files are compressed for clients that accept gzip.
func TestCompressedStatic(t *testing.T) {
	w := newWorld(t)
	plain := w.browser().get("/static/style.css", accepts("Accept-Encoding", "identity"))
	for value, packed := range map[string]bool{"gzip, deflate, br": true, "br;q=1, gzip;q=0.5": true, "gzip;q=0": false, "br": false} {
		a := w.browser().get("/static/style.css", accepts("Accept-Encoding", value))
		if got := a.Header.Get("Content-Encoding") == "gzip"; got != packed || !strings.Contains(a.Header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("%s: %v", value, a.Header)
		}
		if !packed {
			continue
		}
		if text := unpacked(t, a.body); text != plain.body || len(a.body) > len(text)/2 {
			t.Errorf("%s: %d bytes for %d", value, len(a.body), len(text))
		}
	}
}

// Pages are compressed for clients that accept gzip, also those of errors.
func TestCompressedPages(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	for path, status := range map[string]int{"/account": 200, "/nothing": 404} {
		a := b.get(path, accepts("Accept-Encoding", "gzip", "Sec-Fetch-Site", "same-origin"))
		want(t, path, a, status)
		if a.Header.Get("Content-Encoding") != "gzip" || a.Header.Get("Content-Length") != strconv.Itoa(len(a.body)) || !strings.Contains(a.Header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("%s: %v", path, a.Header)
			continue
		}
		plain := b.get(path, accepts("Accept-Encoding", "br"))
		if text := unpacked(t, a.body); len(text) != len(plain.body) || heading(text) != heading(plain.body) || plain.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d bytes, and %d uncompressed", path, len(text), len(plain.body))
		}
	}
}

// Attack: another site makes a browser ask for addresses of its choice, and somebody on the
// network measures the answers (BREACH).
func TestAttackSizesOfAnswersToOtherSites(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	for _, site := range []string{"cross-site", "same-site"} {
		if a := b.get("/account", accepts("Accept-Encoding", "gzip", "Sec-Fetch-Site", site)); a.StatusCode != http.StatusOK || a.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d, %v", site, a.StatusCode, a.Header)
		}
	}
}

// An event arrives when it is sent, because streams are not compressed.
func TestStreamsAreNotCompressed(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	s := a.as(a.bob).stream(a.serve(), a.in("events"), accepts("Accept-Encoding", "gzip", "Sec-Fetch-Site", "same-origin"))
	if s.header.Get("Content-Encoding") != "" {
		t.Error(s.header)
	}
	c := a.by("claude-code", "", "a.md", "a")
	if got := s.until("id: "); got != "id: "+string(c.ID) {
		t.Error(got)
	}
}

// The token of forms looks different in each answer, and each form is accepted.
func TestFormTokensAreMasked(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	first, second := b.token(), b.token()
	if first == second || first[:16] == second[:16] || first[len(first)-16:] == second[len(second)-16:] {
		t.Errorf("two answers have the tokens %s and %s", first, second)
	}
	try := func(token string) answer {
		return b.request(http.MethodPost, "/theme", url.Values{"form": {token}, "theme": {"dark"}}.Encode())
	}
	for _, token := range []string{first, second, first} {
		want(t, "a masked token", try(token), http.StatusSeeOther)
	}
	both, err := base64.RawURLEncoding.DecodeString(first)
	must(t, err)
	pad, masked := both[:len(both)/2], both[len(both)/2:]
	plain := make([]byte, len(pad))
	for i := range pad {
		plain[i] = pad[i] ^ masked[i]
	}
	encode := base64.RawURLEncoding.EncodeToString
	mixed, err := base64.RawURLEncoding.DecodeString(second)
	must(t, err)
	for name, token := range map[string]string{
		"no pad": encode(plain), "only the pad": encode(pad), "twice the token": encode(append(plain, plain...)), "another pad": encode(append(mixed[:len(pad):len(pad)], masked...)),
		"cut off": first[:len(first)-4], "longer": first + first, "another session's": w.as(w.ada).token(), "zeros": strings.Repeat("A", len(first)),
	} {
		want(t, "attack: "+name, try(token), http.StatusForbidden)
	}
}
