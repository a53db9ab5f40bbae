package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"satchel/internal/fault"
)

func TestWebSettings(t *testing.T) {
	for settings, field := range map[string]string{
		`{}`: "url", `{"url": "ftp://x.example/"}`: "url", `{"url": "https://a:b@x.example/"}`: "url", `{"urls": ["x"]}`: "urls",
		`{"url": "https://x.example/", "include": ["guide"]}`: "include", `{"url": "https://x.example/", "depth": -1}`: "depth",
		`{"url": "https://x.example/", "max_pages": 1000000}`: "max_pages", `{"url": "https://x.example/", "pages": 1}`: "pages",
	} {
		if _, err := Open("web", []byte(settings)); fault.CodeOf(err) != fault.Invalid || fault.FieldOf(err) != field {
			t.Errorf("%s gives %v in %q", settings, err, fault.FieldOf(err))
		}
	}
	k, u, err := Recognize("docs.example.com/guide/")
	if err != nil || k.Name != "web" || u.(*web).URL != "https://docs.example.com/guide/" || u.(*web).MaxPages != defaultMaxPages {
		t.Errorf("%+v %+v %v", k, u, err)
	}
	if b, err := json.Marshal(u); err != nil || !bytes.Contains(b, []byte(`"max_pages":1000`)) {
		t.Errorf("%s %v", b, err)
	}
}

func TestWebScope(t *testing.T) {
	for _, c := range []struct {
		start, include, exclude, path string
		want                          bool
	}{
		{"https://x.example/guide/", "", "", "/guide/a", true},
		{"https://x.example/guide/", "", "", "/guides", false},
		{"https://x.example/guide", "", "", "/guide/a", true},
		{"https://x.example/guide", "", "", "/guide", true},
		{"https://x.example/guide/index.html", "", "", "/guide/a", true},
		{"https://x.example/guide/v1.2", "", "", "/guide/v1.2/a", true},
		{"https://x.example/guide/v1.2", "", "", "/guide/v1.3/a", false},
		{"https://x.example/", "/guide/**", "", "/guide", true},
		{"https://x.example/", "/guide/**", "", "/guide/a/b", true},
		{"https://x.example/", "/guide/*", "", "/guide/a/b", false},
		{"https://x.example/", "/*/guide/**", "", "/en/guide/b", true},
		{"https://x.example/", "**/api/**", "", "/en/v2/api/x", true},
		{"https://x.example/", "", "/blog/**", "/blog/x", false},
		{"https://x.example/", "", "**.html", "/a/b.html", false},
	} {
		list := func(s string) string {
			if s == "" {
				return "[]"
			}
			return `["` + s + `"]`
		}
		u, err := Open("web", fmt.Appendf(nil, `{"url": %q, "include": %s, "exclude": %s}`, c.start, list(c.include), list(c.exclude)))
		if err != nil {
			t.Fatal(err)
		}
		if got := u.(*web).scope.has(&url.URL{Scheme: "https", Host: "x.example", Path: c.path}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestWebPaths(t *testing.T) {
	for address, want := range map[string]string{
		"/": "index.md", "/guide/install/": "guide/install.md", "/guide/install": "guide/install.md", "/guide/install.html": "guide/install.md",
		"/guide/index.html": "guide.md", "/index.html": "index.md", "/a/../b": "a/b.md", "/.git/config": "git/config.md", "/x.md/y": "x-md/y.md",
		"/caf%C3%A9/%E2%80%AEx": "café/x.md", "/a%2Fb": "a/b.md", "/v1.2/use": "v1.2/use.md", "/a%00b": "a-b.md", "/p?id=1&x=/..": "p-id-1-x.md",
		"/" + strings.Repeat("a/", 40): "page-", "/" + strings.Repeat("ü", 300): strings.Repeat("ü", 40) + "-",
	} {
		u, err := url.Parse("https://x.example" + address)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(fileOf(u, ".md")); got != want && !(strings.HasSuffix(want, "-") && strings.HasPrefix(got, want)) {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}
