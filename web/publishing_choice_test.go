package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An owner chooses from the directories of the space, at any depth.
func TestChoosingADirectoryToPublish(t *testing.T) {
	s := newShelf(t, append(shelved, "knowledge/sub/deep/x.md", "x\n", ".hidden/x.md", "x\n", "work/.hidden/x.md", "x\n")...)
	form := chooser(s)
	contains(t, "the directories", form, `<select id="dir" name="dir"`, `<option value="knowledge" selected>knowledge/ (4 files)<`, `<option value="knowledge/sub">knowledge/sub/ (2 files)<`, `<option value="knowledge/sub/deep">knowledge/sub/deep/ (1 file)<`, `<option value="">`)
	lacks(t, "the directories", form, "hidden", `id="dir-path"`)
	a := s.as(s.ada).get(s.in("publish") + "?dir=nowhere")
	want(t, "a directory without files", a, http.StatusBadRequest)
	contains(t, "a directory without files", a.body, `href="#dir"`, `<option value="nowhere" selected>`, `<select id="dir" name="dir" aria-describedby="problem dir-hint" aria-invalid="true">`)
}

// If a space has too many directories for a list, those near the top are in the list, and the owner can
// enter the path of another one.
func TestChoosingFromManyDirectories(t *testing.T) {
	var files []string
	for i := range 310 {
		files = append(files, fmt.Sprintf("work/a%03d/x.md", i), "x\n")
	}
	form := chooser(newShelf(t, append(files, "zoo/x.md", "x\n")...))
	if n := strings.Count(form, "<option "); n != 301 {
		t.Errorf("there are %d choices", n)
	}
	contains(t, "the directories", form, `<option value="zoo">`, `id="dir-path"`)
}

// chooser returns the forms with which ada chooses a directory.
func chooser(s *shelf) string {
	_, body, _ := strings.Cut(s.as(s.ada).get(s.in("publish")).body, `aria-labelledby="publish-new"`)
	form, _, _ := strings.Cut(body, "</section>")
	return form
}
