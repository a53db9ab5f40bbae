package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"satchel/internal/space"
)

// pagesOfFiles returns the addresses of the pages of files for a path and a commit,
// without the space.
func pagesOfFiles(path, at string) []string {
	return []string{
		"files/", "files/" + path, "files/" + path + "?view=source", "files/" + path + "?at=" + at, "raw/" + path, "raw/" + path + "?at=" + at + "&download",
		"history/", "history/" + path, "history/?after=" + at, "commits/" + at, "compare?from=" + at, "compare?from=" + at + "&to=" + at + "&path=" + path,
		"search", "search?q=secret", "download/bundle", "download/zip", "download/zip?at=" + at, "files", "history",
	}
}

// TestAnothersFilesAreNotThere checks that to people who are not members, every page of a
// space looks as if the space did not exist.
func TestAnothersFilesAreNotThere(t *testing.T) {
	h := newHeld(t, "secret.md", "the secret")
	head, err := h.git.Head(t.Context(), h.space.ID)
	must(t, err)
	eve, nobody := h.as(h.eve), h.browser()
	for _, p := range pagesOfFiles("secret.md", string(head)) {
		a := eve.get(h.in("%s", p))
		none := eve.get("/spaces/s_aaaaaaaaaaaaaaaaaaaaaaaaaa/" + p)
		if a.StatusCode != http.StatusNotFound || withoutToken(a.body) != withoutToken(none.body) || strings.Contains(a.body, "secret.md") {
			t.Errorf("%s: %d, and of no space %d", p, a.StatusCode, none.StatusCode)
		}
		if a := nobody.get(h.in("%s", p)); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.location(), issuer+"/signin") {
			t.Errorf("%s without an account: %d %s", p, a.StatusCode, a.location())
		}
		// Eve's own space has no commit of ada's.
		if strings.Contains(p, string(head)) {
			if a := eve.get("/spaces/" + string(h.evil.ID) + "/" + p); a.StatusCode != http.StatusNotFound {
				t.Errorf("%s in another space: %d", p, a.StatusCode)
			}
		}
	}
	a := eve.send(h.in("restore"), url.Values{"all": {"1"}, "at": {string(head)}})
	want(t, "restoring another's", a, http.StatusNotFound)
	a = eve.send("/spaces/"+string(h.evil.ID)+"/restore", url.Values{"all": {"1"}, "at": {string(head)}})
	want(t, "restoring to another's commit", a, http.StatusNotFound)
}

// TestPathTricks checks that an address reaches only files of the space, each by one name.
func TestPathTricks(t *testing.T) {
	h := newHeld(t, "dir/a.md", "content", "b.md", "content")
	b := h.as(h.ada)
	long := strings.Repeat("a", 300)
	for name, p := range map[string]string{
		"dots": "dir/../b.md", "dots at once": "../../admin", "encoded dots": "dir/%2e%2e/b.md", "half-encoded dots": "dir/.%2e/b.md", "double-encoded dots": "%252e%252e/b.md",
		"an encoded slash": "dir%2fa.md", "an encoded slash, upper case": "dir%2Fa.md", "a double-encoded slash": "dir%252fa.md", "dots and encoded slashes": "%2e%2e%2f%2e%2e%2fadmin",
		"NUL": "b.md%00", "NUL and a name": "b.md%00.png", "a backslash": `dir%5ca.md`, "dots and backslashes": `..%5c..%5cb.md`, "a double slash": "dir//a.md", "an absolute path": "/b.md", "an encoded absolute path": "%2fb.md",
		"a dot": "./b.md", "an encoded dot": "%2e/b.md", "git's own": ".git/config", "git's own, upper case": ".GIT/config", "git's own, encoded": "%2egit/config", "git's own below": "dir/.git/HEAD", "git's own by NTFS": "git~1/config", "git's own with a dot": ".git./config", "git's own by HFS": ".g%e2%80%8cit/config",
		"a long name": long, "a long path": strings.Repeat("aa/", 600) + "a", "deep": strings.Repeat("a/", 40) + "a", "no text": "%ff%fe", "no text in a name": "b%c3.md", "a line end": "b.md%0a", "a header": "b.md%0d%0aX-Evil:%201", "a control character": "b%01.md", "a line separator": "b%e2%80%a8.md",
		"a drive": "C:%5cwindows", "a device": "dir/CON", "a stream": "b.md::$DATA", "a semicolon": "b.md;x", "a trailing dot": "b.md.", "a blank": "b.md%20", "another case": "B.md", "a full address": "https://evil.test/", "a template": "{{.}}", "a star": "*",
	} {
		for _, page := range []string{"files", "raw", "history"} {
			a := b.get(h.in("%s/%s", page, p))
			// The router leads to the clean form of an address of this server.
			for hops := 0; a.StatusCode >= 300 && a.StatusCode < 400 && hops < 3; hops++ {
				u, err := url.Parse(a.location())
				must(t, err)
				if u.Host != "" && u.Host != "satchel.test" {
					t.Fatalf("%s: %s leads to %s", name, page, a.location())
				}
				a = b.get(u.RequestURI())
				if strings.HasPrefix(u.Path, h.in("%s/", page)) && !strings.Contains(u.Path, "..") {
					break // as the clean name that it is
				}
			}
			clean := name == "dots" || name == "a dot" || name == "a double slash" || name == "an absolute path"
			if a.StatusCode == http.StatusOK && !clean || a.StatusCode >= 500 || a.Header.Get("X-Evil") != "" {
				t.Errorf("%s: %s/%.80s answers %d", name, page, p, a.StatusCode)
			}
		}
		if raw, err := url.PathUnescape(p); err == nil && !strings.Contains(raw, "\x00") && name != "a trailing dot" {
			if a := b.get(h.in("compare?from=HEAD&path=%s", url.QueryEscape(raw))); a.StatusCode >= 500 {
				t.Errorf("%s: compare answers %d", name, a.StatusCode)
			}
		}
	}
}

// TestCommitTricks checks that an invalid commit is not found.
func TestCommitTricks(t *testing.T) {
	h := newHeld(t, "a.md", "a")
	b := h.as(h.ada)
	blob, _, _, err := h.git.Blob(t.Context(), h.space.ID, "", "a.md")
	must(t, err)
	for name, at := range map[string]string{
		"unknown": strings.Repeat("0", 40), "a blob": string(blob), "a range": "HEAD..HEAD", "a branch": "main", "the parent": "HEAD^", "a reflog": "HEAD@{1}", "an option": "--output=x", "upper case": strings.ToUpper(string(blob)),
		"a path": "../../x", "a tree of a path": "HEAD:a.md", "long": strings.Repeat("a", 3000), "NUL": "abc\x00def", "no text": "\xff", "short": "abc",
	} {
		q := url.QueryEscape(at)
		for _, p := range []string{"files/?at=" + q, "files/a.md?at=" + q, "raw/a.md?at=" + q, "history/?at=" + q, "history/?after=" + q, "commits/" + url.PathEscape(at), "compare?from=" + q, "compare?from=HEAD&to=" + q, "download/zip?at=" + q} {
			if a := b.get(h.in("%s", p)); a.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %.60s answers %d", name, p, a.StatusCode)
			}
		}
	}
}

// runs returns the parts of a page that a browser would run, or that lead to something
// that runs.
func runs(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	must(t, err)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		icon := n.Data == "svg" && attr(n, "class") == "icon" // of the templates: a text cannot have a class
		if !writesTimes(n) && !runsFrame(n) && beside(n) == "" && !icon && slices.Contains([]string{"script", "iframe", "object", "embed", "base", "style", "svg", "math"}, n.Data) {
			return n.Data
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || a.Key == "formaction" {
				return a.Key
			}
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
				return a.Val
			}
		}
	}
	return ""
}

// TestScriptInWhatOthersWrote checks that names, pages, messages, clients and front matter
// are shown as text on every page.
func TestScriptInWhatOthersWrote(t *testing.T) {
	const evil = `<script>alert(1)</script>`
	const handler = `"><img src=x onerror=alert(1)>`
	h := newHeld(t)
	path := "a<script>alert(1)<b.md"
	c := h.commitAs(space.Meta{Author: space.Person{Name: evil + handler, Email: "e@example.com"}, Message: evil + "\n\n" + handler, Tool: "bash", Client: evil + handler, Time: h.now},
		path, "---\ntitle: "+evil+"\ntags: ['"+handler+"', \""+evil+"\"]\n\""+evil+"\": x\n---\n# "+evil+"\n\n"+handler+"\n\n[x](javascript:alert(1))\n",
		`q"onmouseover="alert(1).go`, "// "+evil+"\nvar x = \""+handler+"\"\n", evil[:7]+"/SKILL.md", evil, `x'><svg onload=alert(1)>.svg`, "<svg onload=alert(1)>")
	h.commit("then", path, "changed "+evil)
	h.indexed()
	b := h.as(h.ada)
	all := []string{"files/", "history/", "commits/" + string(c.ID), "compare?from=" + string(c.ID), "search?q=alert", "search?q=" + url.QueryEscape(evil+handler), "search?q=x&under=" + url.QueryEscape(evil[:7])}
	files, err := h.git.Files(t.Context(), h.space.ID, "", "")
	must(t, err)
	for _, f := range files {
		segs := strings.Split(string(f.Path), "/")
		for i := range segs {
			segs[i] = url.PathEscape(segs[i])
		}
		p := strings.Join(segs, "/")
		all = append(all, "files/"+p, "files/"+p+"?view=source", "files/"+p+"?at="+string(c.ID), "history/"+p)
		if a := b.get(h.in("raw/%s", p)); strings.Contains(a.Header.Get("Content-Type"), "html") || strings.Contains(a.Header.Get("Content-Type"), "svg") || !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("raw %s: %v", p, a.Header)
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d pages", len(all))
	}
	for _, p := range all {
		a := b.get(h.in("%s", p))
		want(t, p, a, http.StatusOK)
		if m := runs(t, a.body); m != "" {
			t.Errorf("%s holds %q", p, m)
		}
		if csp := a.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || strings.Contains(theFrame.ReplaceAllString(csp, ""), "script-src") || a.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %s", p, csp)
		}
	}
}

// TestPagesAreLight checks that a browser loads less than 100 kB besides the content.
func TestPagesAreLight(t *testing.T) {
	h := newHeld(t, "README.md", "# Hello\n", "a.md", "# A\n")
	b := h.as(h.ada)
	static := regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`)
	for _, p := range []string{"files/", "files/a.md", "history/", "search?q=hello", "compare?from=HEAD"} {
		a := b.get(h.in("%s", p))
		want(t, p, a, http.StatusOK)
		size := len(a.body)
		for _, m := range static.FindAllStringSubmatch(a.body, -1) {
			s := b.get(m[1])
			want(t, m[1], s, http.StatusOK)
			size += len(s.body)
		}
		t.Logf("%s: %d bytes", p, size)
		if size > 100_000 {
			t.Errorf("%s has %d bytes", p, size)
		}
	}
}
