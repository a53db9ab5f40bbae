package web_test

import (
	"bytes"
	"html"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/pages"
)

// read returns a file of ada's space at head; ok is false if there is none.
func (h *held) read(p string) (content string, ok bool) {
	h.t.Helper()
	b, _, ok, err := h.git.Blob(h.t.Context(), h.space.ID, "", space.Path(p))
	must(h.t, err)
	if !ok {
		return "", false
	}
	data, err := h.git.ReadBlob(h.t.Context(), h.space.ID, b)
	must(h.t, err)
	return string(data), true
}

func (h *held) holds(p, want string) {
	h.t.Helper()
	if got, ok := h.read(p); !ok || got != want {
		h.t.Errorf("%s holds %q (%v), want %q", p, got, ok, want)
	}
}

func (h *held) lacks(p string) {
	h.t.Helper()
	if got, ok := h.read(p); ok {
		h.t.Errorf("%s is there: %q", p, got)
	}
}

func (h *held) head() space.CommitID {
	h.t.Helper()
	id, err := h.git.Head(h.t.Context(), h.space.ID)
	must(h.t, err)
	return id
}

func (h *held) last() space.Commit {
	h.t.Helper()
	c, err := h.git.Show(h.t.Context(), h.space.ID, h.head())
	must(h.t, err)
	return c
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// fields returns the hidden fields of the first form with a field of the name.
func fields(body string) url.Values {
	v := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(body, -1) {
		v.Set(m[1], html.UnescapeString(m[2]))
	}
	return v
}

var typed = regexp.MustCompile(`(?s)<textarea id="text"[^>]*>\n(.*?)</textarea>`)

// shownText returns the content of a field.
func shownText(body string) string {
	m := typed.FindStringSubmatch(body)
	if m == nil {
		return "no field"
	}
	return html.UnescapeString(m[1])
}

// edit opens the page of a file and returns the fields of its form.
func (b *browser) edit(h *held, p string) url.Values {
	b.w.t.Helper()
	a := b.get(h.in("edit/%s", p))
	want(b.w.t, "open "+p, a, http.StatusOK)
	f := fields(a.body)
	f.Set("text", shownText(a.body))
	return f
}

// save sends a text.
func (b *browser) save(h *held, p string, f url.Values, text string) answer {
	b.w.t.Helper()
	f.Set("text", strings.ReplaceAll(text, "\n", "\r\n")) // as browsers send it
	f.Set("act", "save")
	return b.send(h.in("edit/%s", p), f)
}

func problemOf(body string) string {
	m := regexp.MustCompile(`(?s)id="problem"[^>]*><p><strong>(.*?)</strong>`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// TestEdit checks that a file is saved as typed, and no other byte of it changes.
func TestEdit(t *testing.T) {
	for _, tt := range []struct{ name, before, typed, after string }{
		{"LF", "one\ntwo\n", "one\n2\n", "one\n2\n"},
		{"CRLF stays", "one\r\ntwo\r\n", "one\n2\nthree\n", "one\r\n2\r\nthree\r\n"},
		{"no newline at the end stays", "one\ntwo", "one\n2", "one\n2"},
		{"a byte order mark stays", "\ufeffone\n", "two\n", "\ufefftwo\n"},
		{"line ends that differ stay with their lines", "a\r\nb\nc\n", "a\nb\nC\n", "a\r\nb\nC\n"},
		{"a first empty line is no line of HTML", "\n\nx\n", "\n\ny\n", "\n\ny\n"},
		{"what looks like the end of the field", "</textarea><script>alert(1)</script>\n", "</textarea>&lt;b&gt;\n", "</textarea>&lt;b&gt;\n"},
		{"emptied", "x\n", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHeld(t, "notes/a b%2f.md", tt.before)
			b := h.as(h.ada)
			form := b.edit(h, "notes/a%20b%252f.md")
			a := b.save(h, "notes/a%20b%252f.md", form, form.Get("text"))
			want(t, "save it as it was", a, http.StatusSeeOther)
			h.holds("notes/a b%2f.md", tt.before)
			form.Set("message", "Say it better")
			a = b.save(h, "notes/a%20b%252f.md", form, tt.typed)
			want(t, "save", a, http.StatusSeeOther)
			if !strings.HasSuffix(a.location(), h.in("files/notes/a%%20b%%252f.md?done=saved")) {
				t.Errorf("it leads to %s", a.location())
			}
			h.holds("notes/a b%2f.md", tt.after)
			if c := h.last(); c.Message != "Say it better" || c.Tool != "web" || c.Client != "browser" || c.Author.Name != "ada" {
				t.Errorf("the commit is %+v", c)
			}
		})
	}
}

func TestEditKeepsTheMode(t *testing.T) {
	h := newHeld(t)
	_, err := h.git.Commit(t.Context(), h.space.ID, space.ChangeSet{Changes: []space.Change{{Path: "run.sh", Mode: space.Executable, Content: []byte("#!/bin/sh\n")}}}, space.Meta{})
	must(t, err)
	b := h.as(h.ada)
	want(t, "save", b.save(h, "run.sh", b.edit(h, "run.sh"), "#!/bin/sh\ntrue\n"), http.StatusSeeOther)
	if _, mode, _, _ := h.git.Blob(t.Context(), h.space.ID, "", "run.sh"); mode != space.Executable {
		t.Error("it is no program any more")
	}
	h.holds("run.sh", "#!/bin/sh\ntrue\n")
}

func TestPreviewSavesNothing(t *testing.T) {
	h := newHeld(t, "a.md", "# Old\n", "b.txt", "old")
	b := h.as(h.ada)
	head := h.head()
	form := b.edit(h, "a.md")
	form.Set("act", "preview")
	form.Set("text", "---\ntitle: T\n---\n# New <script>alert(1)</script>\r\n\r\n[x](javascript:alert(1)) **bold**\r\n")
	form.Set("message", "why")
	a := b.send(h.in("edit/a.md"), form)
	want(t, "preview", a, http.StatusOK)
	for _, s := range []string{"<strong>bold</strong>", `value="why"`, `data-unsaved`, form.Get("base")} {
		if !strings.Contains(a.body, s) {
			t.Errorf("the page has no %s", s)
		}
	}
	for _, s := range []string{"<script>alert", `href="javascript`} {
		if strings.Contains(a.body, s) {
			t.Errorf("the page has %s", s)
		}
	}
	if got := shownText(a.body); got != "---\ntitle: T\n---\n# New <script>alert(1)</script>\n\n[x](javascript:alert(1)) **bold**\n" {
		t.Errorf("the field has %q", got)
	}
	form = b.edit(h, "b.txt")
	form.Set("act", "preview")
	form.Set("text", "<b>as it is</b>")
	if a := b.send(h.in("edit/b.txt"), form); !strings.Contains(a.body, "&lt;b&gt;as it is&lt;/b&gt;</pre>") {
		t.Error("a text is not shown as it is")
	}
	if h.head() != head {
		t.Error("a preview made a commit")
	}
}

// TestWhatCannotBeEdited checks that the page says why a file cannot be edited, and what
// to do.
func TestWhatCannotBeEdited(t *testing.T) {
	h := newHeld(t, "binary", "\x00\x01", "latin", "caf\xe9", "long", strings.Repeat("x", 1<<20+1), "d/f", "x")
	_, err := h.git.Commit(t.Context(), h.space.ID, space.ChangeSet{Changes: []space.Change{{Path: "link", Mode: space.Symlink, Content: []byte("d/f")}}}, space.Meta{})
	must(t, err)
	b := h.as(h.ada)
	for p, status := range map[string]int{"binary": 400, "latin": 400, "long": 413, "d": 400, "link": 400, "none": 404, "d/f/x": 404} {
		want(t, p, b.get(h.in("edit/%s", p)), status)
	}
	// Attack: a forged form for a file that is not text.
	for _, p := range []string{"link", "d"} {
		a := b.save(h, p, url.Values{"mode": {"regular"}}, "mine")
		if a.StatusCode < 400 {
			t.Errorf("%s was written: %d", p, a.StatusCode)
		}
	}
	h.holds("link", "d/f")
	h.holds("d/f", "x")
}

func TestNewFile(t *testing.T) {
	h := newHeld(t, "there.md", "x", "dir/f", "x")
	b := h.as(h.ada)
	for q, path := range map[string]string{"": "", "dir=dir": "dir/", "kind=note": "knowledge/", "kind=skill": "skills/", "kind=fact": "memory/preference/", "dir=../..&kind=evil": ""} {
		a := b.get(h.in("new?%s", q))
		want(t, q, a, http.StatusOK)
		if !strings.Contains(a.body, `name="path" class="mono" value="`+path+`"`) {
			t.Errorf("%s does not begin at %q", q, path)
		}
	}
	post := func(path, text string) answer {
		return b.send(h.in("new?dir=dir"), url.Values{"path": {path}, "text": {text}, "act": {"save"}})
	}
	a := post("knowledge/new.md", "# New\r\nno end")
	want(t, "create", a, http.StatusSeeOther)
	h.holds("knowledge/new.md", "# New\nno end\n")
	for path, as := range map[string]string{"knowledge/plain?note": "knowledge/plain.md", "knowledge/a.txt?note": "knowledge/a.txt", "skills/bake?skill": "skills/bake/SKILL.md", "LICENSE?": "LICENSE"} {
		typed, kind, _ := strings.Cut(path, "?")
		want(t, path, b.send(h.in("new?kind=%s", kind), url.Values{"path": {typed}, "text": {"x"}, "act": {"save"}}), http.StatusSeeOther)
		h.holds(as, "x\n")
	}
	head := h.head()
	for _, tt := range []struct {
		name, path string
		status     int
	}{
		{"a file that is there", "there.md", 409},
		{"a directory that is there", "dir", 409},
		{"below a file", "there.md/x", 409},
		{"nothing", "", 422},
		{"what the path of a note begins with", "knowledge/", 422},
		{"no name before the ending", "knowledge/.md", 422},
		{"attack: up", "../x", 422},
		{"attack: up in the middle", "a/../../x", 422},
		{"attack: absolute", "/etc/passwd", 422},
		{"attack: git's directory", ".git/config", 422},
		{"attack: as a Mac reads it", "a/.g\u200cit/config", 422},
		{"attack: as Windows reads it", "GIT~1/config", 422},
		{"attack: a control character", "a\x1bb", 422},
		{"attack: a line end", "a\nb", 422},
		{"attack: NUL", "a\x00b", 400},
		{"attack: no text", "a\xff", 400},
		{"attack: a workflow", ".github/workflows/x.yml", 403},
		{"attack: a workflow in capitals", ".GitHub/Workflows/x.yml", 403},
		{"too long", strings.Repeat("x", 256), 422},
		{"too deep", strings.Repeat("d/", 40) + "x", 422},
	} {
		a := post(tt.path, "what I typed")
		want(t, tt.name, a, tt.status)
		if tt.status != 400 && (shownText(a.body) != "what I typed" || problemOf(a.body) == "" || !strings.Contains(a.body, `href="#path"`)) {
			t.Errorf("%s: the text is gone, or nothing points at the path: %s", tt.name, problemOf(a.body))
		}
	}
	if h.head() != head {
		t.Error("something was committed")
	}
}

// TestScreened checks that a secret is rejected at its field and the typed text stays.
func TestScreened(t *testing.T) {
	h := newHeld(t, "a.md", "one\n")
	b := h.as(h.ada)
	form := b.edit(h, "a.md")
	h.screen = screening
	form.Set("message", "note")
	a := b.save(h, "a.md", form, "token=abc\n")
	want(t, "save", a, http.StatusForbidden)
	if problemOf(a.body) != "It holds what looks like a key. Take it out." || shownText(a.body) != "token=abc\n" || !strings.Contains(a.body, `value="note"`) {
		t.Errorf("%q: %q", problemOf(a.body), shownText(a.body))
	}
	h.holds("a.md", "one\n")
}

// TestScreenedNote checks that the page reports a note that was left out, because the
// change is saved.
func TestScreenedNote(t *testing.T) {
	h := newHeld(t, "a.md", "one\n")
	h.screen = func(p space.Path, _ []byte) error {
		if p == space.CommentPath {
			return screening(p, nil)
		}
		return nil
	}
	b := h.as(h.ada)
	form := b.edit(h, "a.md")
	form.Set("message", "token=abc")
	a := b.save(h, "a.md", form, "two\n")
	want(t, "save", a, http.StatusOK)
	if !strings.Contains(a.body, "saved without its comment") || !strings.Contains(a.body, h.in("files/a.md")) {
		t.Error("it does not say so, or leads nowhere")
	}
	h.holds("a.md", "two\n")
}

// TestWarnedText checks that the page reports what looks like a secret in a saved text.
func TestWarnedText(t *testing.T) {
	h := newHeld(t, "a.md", "one\n")
	h.screen = func(space.Path, []byte) error { return gitstore.Warned{Why: "Line 1 looks like a secret."} }
	b := h.as(h.ada)
	a := b.save(h, "a.md", b.edit(h, "a.md"), "two\n")
	want(t, "save", a, http.StatusOK)
	if !strings.Contains(a.body, "a.md: Line 1 looks like a secret.") || !strings.Contains(a.body, h.in("files/a.md")) {
		t.Error("it does not say so, or leads nowhere")
	}
	h.holds("a.md", "two\n")
}

// screening rejects every content.
func screening(space.Path, []byte) error {
	return fault.New(fault.Forbidden, "It holds what looks like a key. Take it out.")
}

// serve restarts the server with other options.
func (w *world) serve(change func(*web.Options)) {
	w.t.Helper()
	o := w.made
	change(&o)
	s, err := pages.New(o)
	must(w.t, err)
	w.t.Cleanup(s.Close)
	w.server = s
}

// TestAReaderIsOfferedNoEdit checks that the page of facts has no way to change them for
// people who only read.
func TestAReaderIsOfferedNoEdit(t *testing.T) {
	h := newHeld(t, "memory/person/ann.md", "---\nvalue: v\n---\n")
	a := h.as(h.bob).get(h.in("memory"))
	want(t, "a reader sees facts", a, http.StatusOK)
	for _, s := range []string{"Correct", "Forget", "Still true", "/confirm", "Add a fact"} {
		if strings.Contains(a.body, s) {
			t.Errorf("a reader sees %q", s)
		}
	}
}

// TestHugeForms checks that a form that is too large is rejected before it is read
// completely.
func TestHugeForms(t *testing.T) {
	h := newHeld(t, "a.md", "one\n")
	for name, tt := range map[string]struct {
		who  *browser
		path string
		most int
	}{
		"a text": {h.as(h.ada), "edit/a.md", 4 << 20}, "a new file": {h.as(h.ada), "new", 4 << 20},
		"an upload of who only reads": {h.as(h.bob), "upload", 128 << 10}, "of a stranger": {h.as(h.eve), "upload", 128 << 10},
	} {
		body := &counted{}
		token := tt.who.token()
		a := tt.who.request(http.MethodPost, h.in("%s", tt.path), "", func(r *http.Request) {
			r.Header.Set("X-Satchel-Form", token)
			r.Body = body
		})
		want(t, name, a, http.StatusRequestEntityTooLarge)
		if body.read > tt.most {
			t.Errorf("%s: %d bytes were read", name, body.read)
		}
	}
}

// counted is an endless body.
type counted struct{ read int }

func (c *counted) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	c.read += len(p)
	return len(p), nil
}

func (c *counted) Close() error { return nil }

// upload sends files to a space, given as pairs of name and content.
func (b *browser) upload(h *held, form url.Values, files ...string) answer {
	return b.sendForm(h.in("upload"), form, files...)
}

// sendFiles sends files, given as pairs of name and content.
func (b *browser) sendFiles(page string, files ...string) answer {
	return b.sendForm(page, url.Values{}, files...)
}

func (b *browser) sendForm(page string, form url.Values, files ...string) answer {
	b.w.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	form.Set("form", b.token())
	for k, vs := range form {
		for _, v := range vs {
			must(b.w.t, w.WriteField(k, v))
		}
	}
	for i := 0; i+1 < len(files); i += 2 {
		f, err := w.CreateFormFile("files", files[i])
		must(b.w.t, err)
		_, err = f.Write([]byte(files[i+1]))
		must(b.w.t, err)
	}
	must(b.w.t, w.Close())
	return b.request(http.MethodPost, page, body.String(), func(r *http.Request) { r.Header.Set("Content-Type", w.FormDataContentType()) })
}

func small(o *web.Options) { o.Editing = web.EditLimits{MaxFile: 1000, MaxChange: 3000, MaxFiles: 5} }
