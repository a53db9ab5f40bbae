package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// ask opens a page that moves or deletes, and returns the fields of its form.
func (b *browser) ask(h *held, kind, p string) url.Values {
	b.w.t.Helper()
	a := b.get(h.in("%s/%s", kind, p))
	want(b.w.t, kind+" "+p, a, http.StatusOK)
	return fields(a.body)
}

func TestRename(t *testing.T) {
	h := newHeld(t, "a.md", "one\r\n", "dir/x.md", "x", "dir/sub/y.md", "y", "other/z", "z")
	b := h.as(h.ada)
	form := b.ask(h, "rename", "a.md")
	form.Set("to", "new place/b.md")
	want(t, "a file", b.send(h.in("rename/a.md"), form), http.StatusSeeOther)
	h.lacks("a.md")
	h.holds("new place/b.md", "one\r\n")
	if c := h.last(); len(c.Files) != 2 || c.Message != "Move a.md to new place/b.md" || c.Tool != "web-move" {
		t.Errorf("it is no one commit of a move: %+v", c)
	}
	form = b.ask(h, "rename", "new%20place/b.md")
	form.Set("to", "dir/")
	want(t, "into a directory", b.send(h.in("rename/new%%20place/b.md"), form), http.StatusSeeOther)
	h.holds("dir/b.md", "one\r\n")
	form = b.ask(h, "rename", "other/z")
	form.Set("to", "fresh/dir/")
	want(t, "into a directory that is made", b.send(h.in("rename/other/z"), form), http.StatusSeeOther)
	h.holds("fresh/dir/z", "z")
	h.commit("Put it back", "other/z", "z")
	form = b.ask(h, "rename", "dir")
	form.Set("to", "moved/here")
	want(t, "a directory", b.send(h.in("rename/dir"), form), http.StatusSeeOther)
	for p, text := range map[string]string{"moved/here/x.md": "x", "moved/here/sub/y.md": "y", "moved/here/b.md": "one\r\n"} {
		h.holds(p, text)
	}
	h.lacks("dir/x.md")

	head := h.head()
	form = b.ask(h, "rename", "moved/here/x.md")
	for to, status := range map[string]int{
		"other/z": 409, "other": 409, "other/z/x": 409, "moved/here/x.md": 422, "": 422, "../x": 422, "/x": 422, ".git/x": 422, "a\x07": 422,
	} {
		form.Set("to", to)
		a := b.send(h.in("rename/moved/here/x.md"), form)
		want(t, "to "+to, a, status)
		if !strings.Contains(a.body, `href="#to"`) {
			t.Errorf("to %q: nothing points at the field", to)
		}
	}
	form = b.ask(h, "rename", "moved")
	form.Set("to", "moved/deeper")
	want(t, "a directory into itself", b.send(h.in("rename/moved"), form), http.StatusUnprocessableEntity)
	if h.head() != head {
		t.Error("something was committed")
	}
}

// TestRenameIsWholeOrNot checks that a file stays where it is if it cannot be moved.
func TestRenameIsWholeOrNot(t *testing.T) {
	h := newHeld(t, "d/a.yml", "one\n", "d/b.yml", "two\n")
	b := h.as(h.ada)
	for _, p := range []string{"d/a.yml", "d"} {
		form := b.ask(h, "rename", p)
		form.Set("to", ".github/workflows")
		if p != "d" {
			form.Set("to", ".github/workflows/a.yml")
		}
		a := b.send(h.in("rename/%s", p), form)
		want(t, "attack: a move among workflows", a, http.StatusForbidden)
		if !strings.Contains(problemOf(a.body), "workflow") {
			t.Errorf("it does not say why: %s", problemOf(a.body))
		}
		h.holds("d/a.yml", "one\n")
		h.holds("d/b.yml", "two\n")
		h.lacks(".github/workflows/a.yml")
	}
}

func TestStaleMoveAndDelete(t *testing.T) {
	h := newHeld(t, "a.md", "one\n", "d/x", "x", "d/y", "y")
	b := h.as(h.ada)
	move, del, dir := b.ask(h, "rename", "a.md"), b.ask(h, "delete", "a.md"), b.ask(h, "delete", "d")
	h.commit("Meanwhile", "a.md", "two\n", "d/x", "X")
	move.Set("to", "b.md")
	want(t, "move", b.send(h.in("rename/a.md"), move), http.StatusConflict)
	want(t, "delete", b.send(h.in("delete/a.md"), del), http.StatusConflict)
	a := b.send(h.in("delete/d"), dir)
	want(t, "delete a directory", a, http.StatusConflict)
	h.holds("a.md", "two\n")
	h.holds("d/x", "X")
	h.holds("d/y", "y")
	// The page with the error shows the current state.
	want(t, "delete it after all", b.send(h.in("delete/d"), fields(a.body)), http.StatusSeeOther)
	h.lacks("d/x")
	for _, at := range []string{"", "HEAD", strings.Repeat("0", 40)} {
		if a := b.send(h.in("delete/a.md"), url.Values{"at": {at}}); a.StatusCode < 400 {
			t.Errorf("attack: it was deleted at %q", at)
		}
	}
	h.holds("a.md", "two\n")
}

func TestDelete(t *testing.T) {
	h := newHeld(t, "a.md", "one\n", "d/x", "x", "d/e/y", "y", "d/<script>z", "z")
	b := h.as(h.ada)
	want(t, "delete", b.send(h.in("delete/a.md"), b.ask(h, "delete", "a.md")), http.StatusSeeOther)
	h.lacks("a.md")
	a := b.get(h.in("delete/d"))
	if !strings.Contains(a.body, "<strong>3 files</strong>") || strings.Contains(a.body, "<script>z") {
		t.Error("the page does not say how many, or has a script of a name's")
	}
	// Files that were added since are not affected.
	h.commit("Meanwhile", "d/new", "n")
	want(t, "delete a directory", b.send(h.in("delete/d"), fields(a.body)), http.StatusSeeOther)
	h.lacks("d/x")
	h.lacks("d/e/y")
	h.holds("d/new", "n")
	want(t, "what is gone", b.get(h.in("delete/a.md")), http.StatusNotFound)

	form := b.ask(h, "delete", "d/new")
	h.commit("Say more", "d/new", "n, and more")
	a = b.send(h.in("delete/d/new"), form)
	want(t, "what changed meanwhile", a, http.StatusConflict)
	h.holds("d/new", "n, and more")
	link := regexp.MustCompile(`href="([^"]*/compare[^"]*)"`).FindStringSubmatch(a.body)
	if link == nil {
		t.Fatalf("nothing shows what changed: %s", a.body)
	}
	if a := b.get(html.UnescapeString(link[1])); !strings.Contains(a.body, "and more") {
		t.Errorf("what changed: %s", a.body)
	}
}

func TestManyFiles(t *testing.T) {
	var files []string
	for i := range 12 {
		files = append(files, fmt.Sprintf("d/%d/f", i), "x")
	}
	h := newHeld(t, files...)
	h.serve(small)
	b := h.as(h.ada)
	for _, kind := range []string{"delete", "rename"} {
		a := b.get(h.in("%s/d", kind))
		want(t, kind, a, http.StatusRequestEntityTooLarge)
		if !strings.Contains(a.body, "more than the 5 files") {
			t.Errorf("%s does not say why", kind)
		}
	}
}

func TestUpload(t *testing.T) {
	h := newHeld(t, "d/there.txt", "old", "d/sub/x", "x")
	h.serve(small)
	b := h.as(h.ada)
	a := b.upload(h, url.Values{"dir": {"d/new"}}, "a.png", "\x89PNG\x00", "b <script>.txt", "two\r\n")
	want(t, "two files", a, http.StatusSeeOther)
	h.holds("d/new/a.png", "\x89PNG\x00")
	h.holds("d/new/b <script>.txt", "two\r\n")
	if c := h.last(); len(c.Files) != 2 {
		t.Errorf("they are %d commits", len(c.Files))
	}

	a = b.upload(h, url.Values{"dir": {"d"}}, "there.txt", "new", "good.txt", "g", "sub", "s", ".git", "x", "big", strings.Repeat("x", 1001))
	want(t, "some of them not", a, http.StatusUnprocessableEntity)
	h.holds("d/good.txt", "g")
	h.holds("d/there.txt", "old")
	h.lacks("d/big")
	for _, s := range []string{"4 files were not saved", "directory with this name", "belongs to git", "A file may have at most 1000 bytes", "Replace <bdi>there.txt"} {
		if !strings.Contains(a.body, s) {
			t.Errorf("the page has no %q", s)
		}
	}
	m := strings.Split(strings.Split(a.body, `name="replace" value="`)[1], `"`)[0]
	h.commit("Meanwhile", "d/there.txt", "newer")
	a = b.upload(h, url.Values{"dir": {"d"}, "replace": {m}}, "there.txt", "new")
	want(t, "confirmed for what is gone", a, http.StatusUnprocessableEntity)
	h.holds("d/there.txt", "newer")
	m = strings.Split(strings.Split(a.body, `name="replace" value="`)[1], `"`)[0]
	want(t, "confirmed", b.upload(h, url.Values{"dir": {"d"}, "replace": {m}}, "there.txt", "new"), http.StatusSeeOther)
	h.holds("d/there.txt", "new")

	head := h.head()
	for name, tt := range map[string]struct {
		dir    string
		files  []string
		status int
	}{
		"nothing":                 {"d", nil, 422},
		"attack: up":              {"../x", []string{"a", "x"}, 422},
		"attack: git's directory": {".git/hooks", []string{"post-commit", "x"}, 422},
		"attack: a workflow":      {".github/workflows", []string{"x.yml", "x"}, 422},
		"attack: NUL":             {"a\x00", []string{"a", "x"}, 400},
		"below a file":            {"d/there.txt", []string{"a", "x"}, 422},
		"too many":                {"d", []string{"1", "", "2", "", "3", "", "4", "", "5", "", "6", ""}, 413},
		"all together too large":  {"d", []string{"1", strings.Repeat("x", 1000), "2", strings.Repeat("x", 1000), "3", strings.Repeat("x", 1000), "4", strings.Repeat("x", 1000)}, 413},
	} {
		want(t, name, b.upload(h, url.Values{"dir": {tt.dir}}, tt.files...), tt.status)
	}
	if h.head() != head {
		t.Errorf("something was committed: %+v", h.last().Files)
	}
	// Attack: a name that is a path. The browser's path is cut off.
	want(t, "attack: a name that is a path", b.upload(h, url.Values{"dir": {"d"}}, "../../evil", "x"), http.StatusSeeOther)
	h.holds("d/evil", "x")
}

// TestUploadMeetsAnother checks that an upload does not overwrite a file that appears
// meanwhile.
func TestUploadMeetsAnother(t *testing.T) {
	h := newHeld(t, "d/x", "x")
	h.meanwhile(func() { h.commit("Meanwhile", "d/a", "theirs") })
	a := h.as(h.ada).upload(h, url.Values{"dir": {"d"}}, "a", "mine", "b", "b")
	want(t, "upload", a, http.StatusUnprocessableEntity)
	h.holds("d/a", "theirs")
	h.holds("d/b", "b")
}
