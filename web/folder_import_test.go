package web_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"satchel/web"
)

// folder sends files as a browser sends a chosen folder, given as pairs of path and content.
func (b *browser) folder(page, act string, form url.Values, files ...string) answer {
	b.w.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	must(b.w.t, w.WriteField("form", b.token()))
	must(b.w.t, w.WriteField("act", act))
	for name, values := range form {
		must(b.w.t, w.WriteField(name, values[0]))
	}
	for i := 0; i+1 < len(files); i += 2 {
		f, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="folder"; filename="%s"`, files[i])}})
		must(b.w.t, err)
		_, err = f.Write([]byte(files[i+1]))
		must(b.w.t, err)
	}
	must(b.w.t, w.Close())
	return b.request(http.MethodPost, page, body.String(), func(r *http.Request) { r.Header.Set("Content-Type", w.FormDataContentType()) })
}

// A folder keeps its subfolders. The page of the result offers to undo the one commit.
func TestImportAFolder(t *testing.T) {
	h := newHeld(t, "there.md", "x\n")
	b := h.as(h.ada)
	page := h.in("bring/folder")
	before := h.head()
	files := []string{"notes/a.md", "# A\n", "notes/deep/er/b.md", "# B\n", "notes/.git/config", "[core]\n", "notes/ü ß.md", "ü"}
	a := b.folder(page, "preview", nil, files...)
	want(t, "a preview", a, http.StatusOK)
	if h.head() != before || strings.Contains(a.body, "/commits/") {
		t.Error("a preview changed something")
	}
	// The script sends the number of the hidden files that it left out.
	a = b.folder(page, "preview", url.Values{"hidden": {"7"}}, files[:2]...)
	want(t, "a preview without hidden files", a, http.StatusOK)
	if !strings.Contains(a.body, "<bdi>7 hidden files</bdi>") {
		t.Error("the page does not say how many files were left out")
	}
	a = b.folder(page, "import", url.Values{"dir": {" /in/ "}}, files...)
	want(t, "an import", a, http.StatusOK)
	h.holds("in/notes/a.md", "# A\n")
	h.holds("in/notes/deep/er/b.md", "# B\n")
	h.holds("in/notes/ü ß.md", "ü")
	h.lacks("in/notes/.git/config")
	c := h.last()
	if c.Parent != before || c.Tool != "web" || c.Message != "Import the folder notes" {
		t.Errorf("the commit is %+v", c)
	}
	if !strings.Contains(a.body, h.in("files/in/notes")) || !strings.Contains(a.body, h.in("commits/%s", c.ID)) {
		t.Error("nothing leads to the files, or to the change")
	}
	undo := fields(a.body)
	want(t, "undo", b.send(h.in("revert?path=in"), url.Values{"commit": undo["commit"]}), http.StatusSeeOther)
	h.lacks("in/notes/a.md")
	h.holds("there.md", "x\n")
}

// Attack: a path that leaves the space, or that no other form may write. Nothing is written,
// and what the person entered stays.
func TestAttackNamesInAFolder(t *testing.T) {
	h := newHeld(t)
	b := h.as(h.ada)
	before := h.head()
	for name, bad := range map[string]string{
		"up": "../x.md", "up in the middle": "notes/../../x.md", "absolute": "/etc/passwd", "NUL": "notes/x\x00.md", "a control character": "notes/x\x1b.md",
		"no text": "notes/\xff.md", "an empty name": "notes//x.md", "as Windows writes it": `notes\\..\\..\\x.md`, "a drive": "C:/x.md", "too deep": strings.Repeat("d/", 40) + "x.md",
	} {
		a := b.folder(h.in("bring/folder"), "import", url.Values{"dir": {"mine"}, "replace": {"1"}}, "notes/a.md", "A", bad, "bad", "notes/b.md", "B")
		want(t, name, a, http.StatusBadRequest)
		// A header with a control character is no header.
		if name != "NUL" && name != "a control character" && (!strings.Contains(a.body, `href="#folder"`) || !strings.Contains(a.body, `value="mine"`)) {
			t.Errorf("%s: nothing points at the folder, or the directory is gone: %s", name, heading(a.body))
		}
	}
	want(t, "another directory", b.folder(h.in("bring/folder"), "import", url.Values{"dir": {"../x"}}, "notes/a.md", "A"), http.StatusBadRequest)
	if h.head() != before {
		t.Error("something was written")
	}
}

// A folder that is too large changes nothing, and the page says what to do.
func TestLimitsOfAFolder(t *testing.T) {
	h := newHeld(t)
	h.serve(small)
	b := h.as(h.ada)
	before := h.head()
	page := h.in("bring/folder")
	for name, files := range map[string][]string{
		"too many": {"d/1", "", "d/2", "", "d/3", "", "d/4", "", "d/5", "", "d/6", ""},
		"too much": {"d/1", strings.Repeat("x", 1000), "d/2", strings.Repeat("x", 1000), "d/3", strings.Repeat("x", 1001)},
	} {
		a := b.folder(page, "import", nil, files...)
		want(t, name, a, http.StatusRequestEntityTooLarge)
		if problemOf(a.body) == "" || !strings.Contains(a.body, `href="#folder"`) {
			t.Errorf("%s: nothing points at the folder", name)
		}
	}
	want(t, "no folder", b.folder(page, "import", nil), http.StatusUnprocessableEntity)
	want(t, "no button", b.folder(page, "", nil, "d/1", "x"), http.StatusUnprocessableEntity)
	if h.head() != before {
		t.Error("something was written")
	}
	// An upload can have as many files as its page says, although each is a part of the form.
	h.serve(func(*web.Options) {})
	var many []string
	for i := range web.DefaultMaxFiles {
		many = append(many, fmt.Sprintf("d/%d.md", i), "x")
	}
	want(t, "as many as are allowed", b.folder(page, "preview", nil, many...), http.StatusOK)
	many = append(many, "d/one more.md", "x")
	want(t, "one more", b.folder(page, "preview", nil, many...), http.StatusRequestEntityTooLarge)
}

// The page of the result lists each file that the import creates or replaces. It shows the first ones
// until a person asks for the others.
func TestTheFilesOfAnImport(t *testing.T) {
	h := newHeld(t, "n/page 04.md", "4")
	b := h.as(h.ada)
	listed := func(files []string) (shown, more []string) {
		a := b.folder(h.in("bring/folder"), "preview", nil, files...)
		want(t, "a preview", a, http.StatusOK)
		first, rest, _ := strings.Cut(a.body, "<summary>Show the other")
		path := regexp.MustCompile(`<li><bdi>(.*?)</bdi>`)
		for _, m := range path.FindAllStringSubmatch(first, -1) {
			shown = append(shown, m[1])
		}
		for _, m := range path.FindAllStringSubmatch(rest, -1) {
			more = append(more, m[1])
		}
		return shown, more
	}
	var files []string
	for i := range 12 {
		files = append(files, fmt.Sprintf("m/page %02d.md", 11-i), "x")
	}
	shown, more := listed(files)
	if len(shown) != 10 || shown[0] != "m/page 00.md" || shown[9] != "m/page 09.md" || !slices.Equal(more, []string{"m/page 10.md", "m/page 11.md"}) {
		t.Errorf("the page shows %q, and then %q", shown, more)
	}
	// The list lacks a file that the space has already.
	for i := 0; i < len(files); i += 2 {
		files[i] = strings.Replace(files[i], "m/", "n/", 1)
	}
	files[15] = "4"
	if shown, more = listed(files); len(shown) != 10 || slices.Contains(shown, "n/page 04.md") || !slices.Equal(more, []string{"n/page 11.md"}) {
		t.Errorf("the page shows %q, and then %q", shown, more)
	}
}

// Two folders at once are both named.
func TestImportTwoFolders(t *testing.T) {
	h := newHeld(t, "there.md", "x\n")
	a := h.as(h.ada).folder(h.in("bring/folder"), "import", url.Values{"dir": {"in"}}, "notes/a.md", "# A\n", "photos/b.md", "# B\n")
	want(t, "an import", a, http.StatusOK)
	h.holds("in/photos/b.md", "# B\n")
	if c := h.last(); c.Message != "Import the folders notes, photos" {
		t.Errorf("the commit is %q", c.Message)
	}
	if !strings.Contains(a.body, "<bdi>notes, photos</bdi>") || !strings.Contains(a.body, `href="`+h.in("files/in")+`"`) {
		t.Error("the page does not name both folders, or leads to one of them")
	}
}
