package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/testenv"
)

func TestWebFollowsLinks(t *testing.T) {
	pages := map[string]string{
		"/guide/":         webHTML("Guide", "Begin here, and <a href=install/#steps>install</a>.", "install/", "/guide/use.html", "/guide/twin", "/blog/", "https://elsewhere.example/guide/"),
		"/guide/install/": webHTML("Install", "How to install, or <a href=../use.html?tab=2#more>use</a> it.", "/guide/deep/a", "/guide/old", "/guide/logo.png"),
		"/guide/use.html": webHTML("Use", "How to use it. See <a href=/blog/>the blog</a> and <a href=old>the old page</a>."),
		"/guide/twin":     webHTML("Twin", "How to use it. See <a href=/blog/>the blog</a> and <a href=old>the old page</a>."),
		"/guide/old":      "/guide/new",
		"/guide/new":      webHTML("New", "The new page", "/guide/secret/x", "/guide/gone"),
		"/guide/deep/a":   strings.Replace(webHTML("A", "The text of A"), "<head>", `<head><link rel=canonical href="/guide/deep/b">`, 1),
		"/guide/deep/b":   webHTML("B", "The text of B"),
		"/guide/secret/x": webHTML("X", "A secret"),
		"/blog/":          webHTML("Blog", "Not a part of the guide"),
	}
	pages["/guide/twin"] = strings.Replace(pages["/guide/twin"], "<h1>Twin</h1>", "<h1>Use</h1>", 1)
	w := newWebWorld(t, webPages(pages))
	w.settings(`{"url": "SITE/guide/", "exclude": ["/guide/secret/**"]}`)
	state := w.mustSync()
	w.wantPaths("guide.md", "guide/deep/b.md", "guide/install.md", "guide/new.md", "guide/use.md")
	if got, want := w.sink.skipped, map[string]Reason{w.site.URL + "/guide/gone": Missing}; !maps.Equal(got, want) {
		t.Errorf("skipped %v, want %v", got, want)
	}
	if w.sink.done < len(w.sink.files) {
		t.Errorf("the progress ends at %d of %d pages", w.sink.done, len(w.sink.files))
	}
	for path, want := range map[string]string{
		"guide.md":         "Begin here, and [install](guide/install.md#steps).",
		"guide/install.md": "How to install, or [use](use.md#more) it.",
		"guide/use.md":     "How to use it. See [the blog](" + w.site.URL + "/blog/) and [the old page](new.md).",
	} {
		d, err := frontmatter.Parse([]byte(w.sink.content[path]))
		if err != nil || d.String("title") == "" || !strings.HasPrefix(d.String("url"), w.site.URL) {
			t.Errorf("the front matter of %s is %v (%v)", path, d.Fields, err)
		}
		if !strings.Contains(string(d.Body), want) {
			t.Errorf("%s is\n%s\nwithout %s", path, d.Body, want)
		}
	}

	// Without changes, only the start page is read again, because its links lead to the others.
	if again := w.mustSync(); again != state {
		t.Errorf("the state changed from %s to %s", state, again)
	}
	w.wantPaths("guide.md", "guide/deep/b.md", "guide/install.md", "guide/new.md", "guide/use.md")
	if len(w.sink.kept) != 4 || len(w.sink.put) != 1 {
		t.Errorf("kept %v, asked %v", w.sink.kept, w.asked)
	}

	// A page stays while an unchanged page leads to it, and is deleted when nothing does.
	pages["/guide/install/"] = webHTML("Install", "Nothing more")
	w.mustSync()
	w.wantPaths("guide.md", "guide/install.md", "guide/new.md", "guide/use.md")
	pages["/guide/use.html"], pages["/guide/twin"] = webHTML("Use", "Nothing more to use"), webHTML("Twin", "A page of its own")
	w.mustSync()
	w.wantPaths("guide.md", "guide/install.md", "guide/twin.md", "guide/use.md")
}

func TestWebEndsInTraps(t *testing.T) {
	w := newWebWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" || strings.HasSuffix(r.URL.Path, ".xml") || strings.HasSuffix(r.URL.Path, ".txt") {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html")
		n := len(r.URL.Path)
		_, _ = io.WriteString(rw, webHTML(r.URL.Path, fmt.Sprint("Page ", r.URL), strings.TrimSuffix(r.URL.Path, "/")+"/next/", fmt.Sprintf("/%d?day=%d", n, n), fmt.Sprintf("%s-%d", r.URL.Path, n), "?sort=1", "?sort=2"))
	})
	w.settings(`{"url": "SITE/", "depth": 5}`)
	w.mustSync()
	for _, asked := range w.asked {
		if strings.Contains(asked, "?") || strings.Count(asked, "next") > 2 {
			t.Errorf("asked for %s", asked)
		}
	}
	w.settings(`{"url": "SITE/", "max_pages": 10}`)
	w.mustSync()
	if len(w.sink.put)+len(w.sink.kept) != 10 || !slices.Contains(slices.Collect(maps.Values(w.sink.skipped)), TooMany) {
		t.Errorf("put %d, kept %d, skipped %v", len(w.sink.put), len(w.sink.kept), w.sink.skipped)
	}
}

func TestWebReadsListsOfPages(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `<urlset><url><loc>SITE/c?lang=en</loc><lastmod>2026-02-03</lastmod></url></urlset>`)
	_ = z.Close()
	pages := map[string]string{
		"/robots.txt": "User-agent: *\nDisallow:\n\nUser-agent: Other\nDisallow: /\n\nSitemap: SITE/index.xml\nnonsense\n",
		"/index.xml":  `<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>SITE/map1.xml</loc></sitemap><sitemap><loc>SITE/map2.xml.gz</loc></sitemap></sitemapindex>`,
		"/map1.xml":   `<urlset><url><loc>SITE/a</loc></url><url><loc>https://elsewhere.example/a</loc></url><url><loc>SITE/b</loc></url></urlset>`,
		"/llms.txt":   "# Site\n\n- [Page B](SITE/b.md): the page\n- [Page D](/d.md)\n- [All](/llms-full.txt)\n",
		"/a":          webHTML("A", "The text of A with a <a href=/unlisted>link</a> and <a href=d>D</a>"),
		"/b":          webHTML("B", "The text of B"),
		"/b.md":       "# B\n\nB as Markdown, with [A](/a#x) and `[no](link)`.\n\n```\n[no](link)\n```\n",
		"/c?lang=en":  webHTML("C", "The text of C"),
		"/d.md":       "---\ntitle: The D\nurl: https://elsewhere.example/\n---\nD as Markdown.\n",
		"/":           webHTML("Home", "The home page"),
		"/unlisted":   webHTML("Unlisted", "A page that no list has"),
	}
	w := newWebWorld(t, nil)
	for k, v := range pages {
		pages[k] = strings.ReplaceAll(v, "SITE", w.site.URL)
	}
	packed.Reset()
	z = gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, strings.ReplaceAll(`<urlset><url><loc>SITE/c?lang=en</loc><lastmod>2026-02-03</lastmod></url></urlset>`, "SITE", w.site.URL))
	_ = z.Close()
	pages["/map2.xml.gz"] = packed.String()
	w.handler = webPages(pages)
	w.settings(`{"url": "SITE"}`)
	w.mustSync()
	w.wantPaths("a.md", "b.md", "c-lang-en.md", "d.md", "index.md")
	if f := w.sink.known[w.site.URL+"/c?lang=en"]; !f.Changed.Equal(time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the sitemap's date is not kept: %+v", f)
	}
	if f := w.sink.known[w.site.URL+"/d.md"]; f.Title != "The D" {
		t.Errorf("the title of the front matter is not kept: %+v", f)
	}
	// The page must not lead people to another site as if it came from there.
	if d, want := w.sink.content["d.md"], "---\nurl: \""+w.site.URL+"/d.md\"\ntitle: The D\noriginal_url: https://elsewhere.example/\n---\nD as Markdown.\n"; d != want {
		t.Errorf("d.md is\n%s\nwant\n%s", d, want)
	}
	b := w.sink.content["b.md"]
	if want := "---\ntitle: \"B\"\nurl: \"" + w.site.URL + "/b\"\n---\n\n# B\n\nB as Markdown, with [A](a.md#x) and `[no](link)`.\n\n```\n[no](link)\n```\n"; b != want {
		t.Errorf("b.md is\n%s\nwant\n%s", b, want)
	}
	if a := w.sink.content["a.md"]; !strings.Contains(a, "[link]("+w.site.URL+"/unlisted)") || !strings.Contains(a, "[D](d.md)") {
		t.Errorf("a.md is\n%s", a)
	}
	w.mustSync()
	if len(w.sink.put) != 0 || len(w.sink.kept) != 5 {
		t.Errorf("put %v, kept %v", w.sink.put, w.sink.kept)
	}
	for _, asked := range w.asked {
		if !strings.HasPrefix(asked, "?") && !slices.Contains([]string{"/robots.txt", "/index.xml", "/map1.xml", "/map2.xml.gz", "/llms.txt"}, asked) {
			t.Errorf("asked for %s without a condition", asked)
		}
	}
	// Other settings may change the links of each page.
	w.settings(`{"url": "SITE", "exclude": ["/d*"]}`)
	w.mustSync()
	w.wantPaths("a.md", "b.md", "c-lang-en.md", "index.md")
	if len(w.sink.kept) != 0 || !strings.Contains(w.sink.content["a.md"], "[D]("+w.site.URL+"/d)") {
		t.Errorf("kept %v", w.sink.kept)
	}
}

func TestWebIsPolite(t *testing.T) {
	pages := map[string]string{
		"/robots.txt": "User-agent: satchel\nCrawl-delay: 3\nDisallow: /private/\n\nUser-agent: *\nDisallow: /\n",
		"/":           webHTML("Home", "The home page", "/a", "/private/b"),
		"/a":          webHTML("A", "Page A"),
	}
	serve := webPages(pages)
	busy := 1
	agents := map[string]bool{}
	w := newWebWorld(t, nil)
	retry := "7"
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		agents[r.UserAgent()] = true
		if r.URL.Path == "/a" && busy > 0 {
			busy--
			rw.Header().Set("Retry-After", retry)
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		serve(rw, r)
	}
	w.settings(`{"url": "SITE/"}`)
	w.mustSync()
	w.wantPaths("a.md", "index.md")
	if got := w.sink.skipped[w.site.URL+"/private/b"]; got != Disallowed || slices.Contains(w.asked, "/private/b") {
		t.Errorf("a disallowed page was %s, asked %v", got, w.asked)
	}
	if !slices.Contains(w.waited, 3*time.Second) || !slices.Contains(w.waited, 7*time.Second) {
		t.Errorf("waited %v", w.waited)
	}
	if len(agents) != 1 || !agents[webAgent] {
		t.Errorf("the agents are %v", agents)
	}

	before := w.sink.paths()
	for _, retry = range []string{"3600", w.now.Add(time.Hour + time.Minute).Format(http.TimeFormat)} {
		busy = 1
		_, err := w.sync(testenv.Context(t))
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Limited || f.RetryAfter < 50*time.Minute || f.RetryAfter > 2*time.Hour {
			t.Errorf("Retry-After %s gives %v", retry, err)
		}
	}
	retry, busy = "", 100
	if _, err := w.sync(testenv.Context(t)); fault.CodeOf(err) != fault.Limited {
		t.Errorf("a site that stays busy gives %v", err)
	}
	w.wantPaths(before...)
}

// A long Crawl-delay does not hold a place of the syncs for hours.
func TestWebLimitsTheCrawlDelay(t *testing.T) {
	w := newWebWorld(t, webPages(map[string]string{
		"/robots.txt": "User-agent: *\nCrawl-delay: 60\n", "/": webHTML("Home", "The home page", "/a", "/b"), "/a": webHTML("A", "Page A"), "/b": webHTML("B", "Page B"),
	}))
	w.settings(`{"url": "SITE/"}`)
	w.mustSync()
	w.wantPaths("a.md", "b.md", "index.md")
	if longest := slices.Max(w.waited); longest != maxPause {
		t.Errorf("it waits %s between two requests", longest)
	}
}

func TestWebSaysWhyASiteCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		pages map[string]string
		want  fault.Code
	}{
		"no page":                  {map[string]string{}, fault.NotFound},
		"forbidden":                {map[string]string{"/docs/": "403"}, fault.Forbidden},
		"broken":                   {map[string]string{"/docs/": "500"}, fault.Unavailable},
		"broken robots.txt":        {map[string]string{"/robots.txt": "500", "/docs/": webHTML("A", "a")}, fault.Unavailable},
		"disallowed":               {map[string]string{"/robots.txt": "User-agent: *\nDisallow: /", "/docs/": webHTML("A", "a")}, fault.Forbidden},
		"moved to another host":    {map[string]string{"/docs/": "https://elsewhere.example/"}, fault.Invalid},
		"moved to another path":    {map[string]string{"/docs/": "/other/", "/other/": webHTML("A", "a")}, fault.Invalid},
		"a redirect to itself":     {map[string]string{"/docs/": "/docs/"}, fault.Unavailable},
		"only a picture":           {map[string]string{"/docs/": "<html><body><canvas></canvas></body></html>"}, fault.NotFound},
		"an answer over the limit": {map[string]string{"/docs/": webHTML("A", strings.Repeat("a ", 1<<20))}, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebWorld(t, webPages(c.pages))
			w.settings(`{"url": "SITE/docs/"}`)
			_, err := w.sync(testenv.Context(t))
			if fault.CodeOf(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// A site with some broken pages is read without them, and keeps what it had of them.
func TestWebKeepsPagesThatFail(t *testing.T) {
	pages := map[string]string{"/": webHTML("Home", "The home page", "/a", "/b", "/c", "/d", "/e", "/f")}
	for _, p := range []string{"/a", "/b", "/c", "/d", "/e"} {
		pages[p] = webHTML(p, "The text of "+p)
	}
	pages["/f"], pages["/f/"] = "/f/", webHTML("/f/", "The text of /f/")
	serve := webPages(pages)
	w := newWebWorld(t, serve)
	w.settings(`{"url": "SITE/"}`)
	w.mustSync()
	w.wantPaths("a.md", "b.md", "c.md", "d.md", "e.md", "f.md", "index.md")

	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write([]byte("<p>"))
	_, _ = z.Write(bytes.Repeat([]byte{'a'}, 16<<20))
	_ = z.Close()
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a": // promises more than it sends
			rw.Header().Set("Content-Length", "10000")
			_, _ = io.WriteString(rw, "<p>half")
		case "/b", "/f":
			rw.WriteHeader(http.StatusInternalServerError)
		case "/c":
			rw.WriteHeader(http.StatusForbidden)
		case "/d":
			http.NotFound(rw, r)
		case "/e":
			rw.Header().Set("Content-Encoding", "gzip")
			rw.Header().Set("Content-Type", "text/html")
			_, _ = rw.Write(bomb.Bytes())
		default:
			serve(rw, r)
		}
	}
	w.mustSync()
	w.wantPaths("a.md", "b.md", "c.md", "e.md", "f.md", "index.md")
	want := map[string]Reason{w.site.URL + "/a": Failed, w.site.URL + "/b": Failed, w.site.URL + "/c": Blocked, w.site.URL + "/e": TooLarge, w.site.URL + "/f/": Failed}
	if !maps.Equal(w.sink.skipped, want) {
		t.Errorf("skipped %v, want %v", w.sink.skipped, want)
	}
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			serve(rw, r)
			return
		}
		rw.WriteHeader(http.StatusBadGateway)
	}
	if _, err := w.sync(testenv.Context(t)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a site that fails for all pages gives %v", err)
	}
}

func TestWebEndsWithItsContext(t *testing.T) {
	reached := make(chan struct{}, 1)
	release := make(chan struct{})
	w := newWebWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = io.WriteString(rw, "<p>")
			rw.(http.Flusher).Flush()
			reached <- struct{}{}
			<-release
			return
		}
		http.NotFound(rw, r)
	})
	t.Cleanup(func() { close(release) })
	w.settings(`{"url": "SITE/"}`)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	go func() { testenv.Receive(t, "the request", reached); cancel() }()
	if _, err := w.sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWebConvertsDocuments(t *testing.T) {
	w := newWebWorld(t, webPages(map[string]string{
		"/":           webHTML("Home", "The <a href=/a.pdf>manual</a>"),
		"/a.pdf":      "%PDF-1.7",
		"/notes.txt":  "Notes with <tags>",
		"/robots.txt": "",
	}))
	w.settings(`{"urls": ["SITE/", "SITE/notes.txt"]}`)
	w.mustSync()
	w.wantPaths("index.md", "notes.txt")
	if r := w.sink.skipped[w.site.URL+"/a.pdf"]; r != Unreadable {
		t.Errorf("a document without a converter is %s", r)
	}
	w.env.Convert = func(_ context.Context, name string, content []byte) ([]byte, error) {
		return []byte(name + " " + string(content)), nil
	}
	w.mustSync()
	w.wantPaths("a.pdf.md", "index.md", "notes.txt")
	if !strings.HasSuffix(w.sink.content["a.pdf.md"], "a.pdf %PDF-1.7") || !strings.Contains(w.sink.content["index.md"], "[manual](a.pdf.md)") {
		t.Errorf("%v", w.sink.content)
	}
	if w.sink.content["notes.txt"] != "Notes with <tags>" {
		t.Errorf("%q", w.sink.content["notes.txt"])
	}
}
