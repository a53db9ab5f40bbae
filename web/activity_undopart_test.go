package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/web"
)

// The page lists what stays, with its current path, and links to older changes.
func TestAnUndoingInPartLeadsOn(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	for n := range 101 {
		a.by("many", "Append", "f.md", strings.Repeat("x\n", n+1))
	}
	a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "Begin", Tool: "web", Client: "browser", Time: a.clock()}, "t.md", "zero\n")
	edit := a.by("claude", "Edit", "t.md", "one\n")
	a.by("claude", "Go on", "t.md", "one\ntwo\n")
	a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "Mine", Tool: "web", Client: "browser", Time: a.clock()}, "f.md", strings.Repeat("x\n", 100)+"mine\n")
	b := a.as(a.ada)
	preview := b.get(a.in("revert?client=many&since=2020-01-01"))
	form := url.Values{"commit": commits(preview.body)}
	for _, name := range []string{"of", "from", "after"} {
		_, value, _ := strings.Cut(preview.body, `name="`+name+`" value="`)
		value, _, _ = strings.Cut(value, `"`)
		form.Set(name, value)
	}
	part := b.send(a.in("revert"), form)
	want(t, "in part", part, http.StatusOK)
	checkPage(t, "in part", part)
	older := "revert?after=" + form.Get("after") + "&amp;client=many&amp;since=2020-01-01"
	if !strings.Contains(part.body, older) {
		t.Errorf("it does not lead on to %s: %s", older, part.body)
	}
	// Attack: the form has an invalid client, time or commit.
	form.Set("after", "HEAD\"><script>")
	if body := b.send(a.in("revert"), form).body; strings.Contains(body, "after=") {
		t.Error("it leads to what the form says")
	}

	one := b.send(a.in("revert"), url.Values{"commit": {string(edit.ID)}})
	if !strings.Contains(one.body, "Undo the later changes too") || strings.Contains(one.body, "somebody else") {
		t.Error("it says that another is in the way")
	}
	a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "Move", Tool: "web", Client: "browser", Time: a.clock()}, "t.md", "\x00", "t9.md", "one\ntwo\n")
	moved := b.send(a.in("revert"), url.Values{"commit": {string(edit.ID)}})
	checkPage(t, "moved", moved)
	if !strings.Contains(moved.body, "was moved") || !strings.Contains(moved.body, "/files/t9.md\"") {
		t.Errorf("it does not say where the file is: %s", moved.body)
	}
}
