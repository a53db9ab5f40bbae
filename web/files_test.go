package web_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/damagetest"
	"satchel/web"
)

const page1 = "---\ntitle: Deploying\ntags: [ops, web]\n---\n# Deploy\n\nSee [the list](checklist.md) and ![it](img/a.png).\n\n## When things go *wrong*\n\n- [x] call\n- [ ] fix\n\n```go\nfunc main() { // go\n}\n```\n"

func TestFilesAreShown(t *testing.T) {
	h := newHeld(t, "README.md", "# Ada's\n\nHello.", "knowledge/deploy.md", page1, "knowledge/checklist.md", "one\n", "main.go", "package main\n", "empty", "", "pic.png", "\x89PNG\r\n\x1a\n\x00", "blob", "\x00\x01", "large", strings.Repeat("a line\n", 1800))
	b := h.as(h.bob)
	for _, tt := range []struct {
		name, target string
		want         []string
	}{
		{"the root", "files/", []string{`>README.md</bdi>`, `href="/spaces/` + string(h.space.ID) + `/files/knowledge/"`, "Hello.", "Write what there is", "15 bytes", "12.4 kB"}},
		{"a directory", "files/knowledge/", []string{`deploy.md`, `aria-current="page"`}},
		{"a page", "files/knowledge/deploy.md", []string{`<h2 id="deploy">`, `<h3 id="when-things-go-wrong">`, `/files/knowledge/checklist.md"`, `/raw/knowledge/img/a.png"`, `<th scope="row"><bdi>title</bdi></th><td><bdi>Deploying</bdi>`, `<span class="tk">func</span>`, `aria-label="done"`}},
		{"its source", "files/knowledge/deploy.md?view=source", []string{`id="L1"`, `# Deploy`}},
		{"a program", "files/main.go", []string{`id="L1"`, `<span class="tk">package</span>`}},
		{"nothing in it", "files/empty", []string{"The file is empty"}},
		{"a picture", "files/pic.png", []string{`<img src="/spaces/`}},
		{"bytes", "files/blob", []string{"not text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := b.get(h.in("%s", tt.target))
			want(t, tt.target, a, http.StatusOK)
			for _, w := range tt.want {
				if !strings.Contains(a.body, w) {
					t.Errorf("the page lacks %q\n%s", w, a.body)
				}
			}
			if strings.Contains(a.body, "/edit/") {
				t.Error("a reader is offered to edit")
			}
		})
	}
	for from, to := range map[string]string{"files": "files/", "files/knowledge": "files/knowledge/", "files/main.go/": "files/main.go", "files/knowledge?at=": "files/knowledge/?at="} {
		if a := b.get(h.in("%s", from)); a.StatusCode != http.StatusSeeOther || a.location() != issuer+h.in("%s", to) {
			t.Errorf("%s leads with %d to %s", from, a.StatusCode, a.location())
		}
	}
}

// Links to the editor lead to one that can edit the file.
func TestOnlyWhatCanBeEditedIsOfferedToBe(t *testing.T) {
	for _, tt := range []struct {
		name, file, content string
		edited, uploaded    bool
	}{
		{"a page", "a.md", page1, true, false},
		{"a program", "main.go", "package main\n", true, false},
		{"nothing in it", "empty", "", true, false},
		{"a long text", "long.txt", strings.Repeat("a line\n", 10_000), false, true},
		{"a long page", "long.md", strings.Repeat("a line\n", 10_000), false, true},
		{"a text in an older encoding", "old.txt", "caf\xe9\n", false, true},
		{"bytes", "sub/blob", "\x00\x01", false, true},
		{"a picture", "pic.png", "\x89PNG\r\n\x1a\n\x00", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHeldWith(t, func(o *web.Options) { o.Editing.MaxText = 64 << 10 }, tt.file, tt.content)
			b := h.as(h.ada)
			a := b.get(h.in("files/%s", tt.file))
			if got := strings.Contains(a.body, `"`+h.in("edit/%s", tt.file)+`"`); got != tt.edited {
				t.Errorf("the editor is offered: %v", got)
			}
			if got := b.get(h.in("edit/%s", tt.file)).StatusCode == http.StatusOK; got != tt.edited {
				t.Errorf("the editor takes it: %v", got)
			}
			to := h.in("upload")
			if dir, _, ok := strings.Cut(tt.file, "/"); ok {
				to += "?dir=" + dir
			}
			if got := strings.Contains(a.body, `"`+to+`">Upload a new version`); got != tt.uploaded {
				t.Errorf("an upload is offered: %v", got)
			}
		})
	}
}

func TestFilesOfAnotherTime(t *testing.T) {
	h := newHeld(t, "a.md", "old words")
	then, err := h.git.Head(t.Context(), h.space.ID)
	must(t, err)
	h.commit("Say it anew", "a.md", "new words", "b.md", "b")
	h.commit("Take it away", "b.md", "\x00")
	b := h.as(h.ada)
	a := b.get(h.in("files/a.md?at=%s", then))
	if !strings.Contains(a.body, "old words") || !strings.Contains(a.body, "You are viewing an earlier version") || strings.Contains(a.body, "/edit/") {
		t.Errorf("%d: %s", a.StatusCode, a.body)
	}
	if a := b.get(h.in("files/?at=%s", then)); strings.Contains(a.body, "b.md") || !strings.Contains(a.body, "/files/a.md?at="+string(then)) {
		t.Errorf("%d: %s", a.StatusCode, a.body)
	}
	if a := b.get(h.in("raw/a.md?at=%s", then.Short())); a.body != "old words" {
		t.Errorf("%d: %s", a.StatusCode, a.body)
	}
	a = b.get(h.in("files/b.md"))
	want(t, "a file that is gone", a, http.StatusNotFound)
	if !strings.Contains(a.body, "Take it away") {
		t.Error("it does not lead to what took it away")
	}
	other, err := h.git.Head(t.Context(), h.evil.ID)
	must(t, err)
	h.commit("More", "c.md", "c") // so that the two spaces' histories differ
	for _, at := range []string{string(other) + "x", strings.Repeat("a", 40), "main", "HEAD~1", "../x", "-rf", strings.Repeat("a", 5000), "%00", "refs/heads/main"} {
		for _, page := range []string{"files/", "files/a.md", "raw/a.md"} {
			want(t, page+" at "+at[:min(20, len(at))], b.get(h.in("%s?at=%s", page, url.QueryEscape(at))), http.StatusNotFound)
		}
	}
}

func TestRawFiles(t *testing.T) {
	h := newHeld(t, "page.html", "<script>alert(1)</script>", "pic.svg", "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
		"a.png", "\x89PNG\r\n\x1a\n\x00", "false.png", "<html><script>alert(1)</script>", "b.pdf", "%PDF-1.4\x00", "r\u00e4um \"x\".bin", "\x00\x01")
	b := h.as(h.ada)
	for _, tt := range []struct{ path, kind, disposition string }{
		{"page.html", "text/plain; charset=utf-8", ""},
		{"pic.svg", "text/plain; charset=utf-8", ""},
		{"a.png", "image/png", ""},
		{"false.png", "text/plain; charset=utf-8", ""},
		{"b.pdf", "application/octet-stream", "attachment; filename=b.pdf"},
		{"r\u00e4um \"x\".bin", "application/octet-stream", "attachment; filename*=utf-8''r%C3%A4um%20_x_.bin"},
	} {
		a := b.get(h.in("raw/%s", url.PathEscape(tt.path)))
		hd := a.Header
		if hd.Get("Content-Type") != tt.kind || hd.Get("Content-Disposition") != tt.disposition || hd.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(hd.Get("Content-Security-Policy"), "sandbox") || strings.Contains(hd.Get("Content-Security-Policy"), "allow-") {
			t.Errorf("%s: %v", tt.path, hd)
		}
	}
	a := b.get(h.in("raw/page.html"))
	etag := func(r *http.Request) { r.Header.Set("If-None-Match", a.Header.Get("ETag")) }
	want(t, "what did not change", b.get(h.in("raw/page.html"), etag), http.StatusNotModified)
	part := b.get(h.in("raw/page.html"), func(r *http.Request) { r.Header.Set("Range", "bytes=1-6") })
	if part.StatusCode != http.StatusPartialContent || part.body != "script" {
		t.Errorf("a part: %d %q", part.StatusCode, part.body)
	}
	if d := b.get(h.in("raw/page.html?download")).Header.Get("Content-Disposition"); d != "attachment; filename=page.html" {
		t.Errorf("a download: %q", d)
	}
	want(t, "a directory", b.get(h.in("raw/")), http.StatusNotFound)
}

// TestADamagedFileHasAPageThatSaysSo also covers its directory. Everything else is shown,
// and uploading the file again repairs it.
func TestADamagedFileHasAPageThatSaysSo(t *testing.T) {
	h := newHeld(t, "knowledge/readme.md", "# Readme\n\nHello.\n", "knowledge/good.md", "good\n")
	damagetest.TurnByte(t, filepath.Join(h.dir, string(h.space.ID)+".git"), "main:knowledge/readme.md")
	b := h.as(h.ada)
	for target, words := range map[string][]string{
		"files/knowledge/readme.md": {"knowledge/readme.md", "satchel doctor"},
		"raw/knowledge/readme.md":   {"knowledge/readme.md", "satchel doctor"},
	} {
		a := b.get(h.in("%s", target))
		want(t, target, a, http.StatusInternalServerError)
		for _, w := range words {
			if !strings.Contains(a.body, w) {
				t.Errorf("%s lacks %q\n%s", target, w, a.body)
			}
		}
	}
	want(t, "the directory", b.get(h.in("files/knowledge/")), http.StatusOK)
	want(t, "another file", b.get(h.in("files/knowledge/good.md")), http.StatusOK)
	h.commit("Write it again", "knowledge/readme.md", "# Readme\n\nHello.\n")
	want(t, "the file written again", b.get(h.in("files/knowledge/readme.md")), http.StatusOK)
}

// The page of a path at which there is nothing names the path, and leads to the nearest directory
// and to a history.
func TestMissingPath(t *testing.T) {
	h := newHeld(t, "notes/a.md", "a\n", "notes/old/b.md", "b\n")
	first := h.head()
	h.commit("Take b out", "notes/old/b.md", "\x00")
	restores := `action="` + h.in("restore") + `"`
	for _, tt := range []struct {
		path        string
		has, hasNot []string
	}{
		{"notes/old/b.md", []string{h.in("files/notes/") + `"`, h.in("history/notes/old/b.md") + `"`, h.in("files/notes/old/b.md?at=%s", first), "Take b out", restores}, []string{h.in("files/notes/old/") + `"`}},
		{"notes/old/c.md", []string{h.in("files/notes/") + `"`, h.in("history/notes") + `"`}, []string{restores, "?at="}},
		{"notes/a.md/x", []string{h.in("files/notes/") + `"`}, []string{h.in("files/notes/a.md"), restores}},
		{"notes/old/b.md?at=" + string(h.head()), []string{h.in("history/notes/old/b.md") + `"`}, []string{h.in("files/notes/old/b.md") + `"`}},
		{"nowhere/x", []string{h.in("files/") + `"`, h.in("history/") + `"`}, []string{h.in("files/nowhere"), restores}},
		{"notes/old/c.md?at=" + string(first), []string{h.in("files/notes/old/?at=%s", first), h.in("history/notes/old") + `"`}, []string{restores}},
	} {
		a := h.as(h.ada).get(h.in("files/%s", tt.path))
		want(t, tt.path, a, http.StatusNotFound)
		checkPage(t, tt.path, a)
		path, _, _ := strings.Cut(tt.path, "?")
		contains(t, tt.path, a.body, append(tt.has, "<code>"+path+"</code>")...)
		lacks(t, tt.path, a.body, tt.hasNot...)
	}
	if a := h.as(h.bob).get(h.in("files/notes/old/b.md")); strings.Contains(a.body, restores) || !strings.Contains(a.body, h.in("files/notes/old/b.md?at=%s", first)) {
		t.Error("a reader may open the last version and not restore it")
	}
}
