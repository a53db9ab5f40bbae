package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/web"
)

// One form undoes what a client did in a span, and the page that follows undoes the undo.
func TestUndoWhatAClientDidInASpan(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.by("claude", "Before", "a.md", "a\n")
	a.pass(time.Hour)
	since := a.clock().Format("2006-01-02T15:04")
	a.by("claude", "Bad one", "a.md", "bad\n", "x.md", "x\n")
	a.by("cursor", "Between", "b.md", "b\n")
	a.by("claude", "Bad two", "y.md", "y\n")
	a.pass(2 * time.Minute)
	until := a.clock().Format("2006-01-02T15:04")
	a.by("claude", "After", "z.md", "z\n")
	b := a.as(a.carol)
	span := url.Values{"client": {"claude"}, "since": {since}, "until": {until}}
	res := b.send(a.in("undo-client"), span)
	want(t, "undo", res, http.StatusSeeOther)
	has := func(when string, files map[string]string) {
		t.Helper()
		for path, want := range files {
			if got := a.text(path); got != want {
				t.Errorf("%s: %s has %q, not %q", when, path, got, want)
			}
		}
	}
	has("undone", map[string]string{"a.md": "a\n", "x.md": "", "y.md": "", "b.md": "b\n", "z.md": "z\n"})
	page := b.get(strings.TrimPrefix(res.location(), issuer))
	if !strings.Contains(page.body, "2 changes were undone") || !strings.Contains(page.body, `name="commit" value="`+string(a.head())+`"`) {
		t.Error("the page does not offer to undo the undo")
	}
	res = b.send(a.in("revert"), url.Values{"commit": {string(a.head())}})
	want(t, "undo the undo", res, http.StatusSeeOther)
	has("brought back", map[string]string{"a.md": "bad\n", "x.md": "x\n", "y.md": "y\n"})
	if page = b.get(strings.TrimPrefix(res.location(), issuer)); !strings.Contains(page.body, "What was undone is back.") {
		t.Error("the page does not say so")
	}

	before := a.head()
	for name, tt := range map[string]struct {
		client, since, until string
		status               int
	}{
		"nothing there":      {"nobody", since, "", 303},
		"no client":          {"", since, "", 400},
		"no time":            {"claude", "", "", 400},
		"what is no time":    {"claude", "soon", "", 400},
		"the end is earlier": {"claude", until, since, 400},
	} {
		res := b.send(a.in("undo-client"), url.Values{"client": {tt.client}, "since": {tt.since}, "until": {tt.until}})
		want(t, name, res, tt.status)
	}
	span.Set("look", "1")
	if to := b.send(a.in("undo-client"), span).location(); !strings.Contains(to, "/revert?client=claude") {
		t.Errorf("the list is at %s", to)
	}
	if a.head() != before {
		t.Error("something was undone")
	}
}

// Files that somebody changed since are named, and stay.
func TestUndoOfASpanNamesWhatItLeaves(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	since := a.clock().Format("2006-01-02T15:04")
	a.by("claude", "Bad", "a.md", "bad\n", "x.md", "x\n")
	a.by("cursor", "Better", "a.md", "better\n")
	res := a.as(a.ada).send(a.in("undo-client"), url.Values{"client": {"claude"}, "since": {since}})
	want(t, "undo", res, http.StatusOK)
	if heading(res.body) != "Undone in part" || !strings.Contains(res.body, "/history/a.md") || a.text("a.md") != "better\n" || a.text("x.md") != "" {
		t.Errorf("%s: a.md has %q, x.md %q", heading(res.body), a.text("a.md"), a.text("x.md"))
	}
	if !strings.Contains(res.body, `name="commit" value="`+string(a.head())+`"`) {
		t.Error("the page does not offer to undo the undo")
	}
}

// The changes of one client without a long pause are one conversation with one button.
func TestTheTimelineHasConversations(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.by("claude/1.2", "One", "a.md", "1\n")
	a.by("claude/1.2", "Two", "a.md", "2\n")
	a.pass(2 * time.Hour)
	a.by("claude/1.2", "Three", "b.md", "3\n")
	a.by("cursor", "Four", "c.md", "4\n")
	b := a.as(a.ada)
	body := b.get(a.in("activity")).body
	if n := strings.Count(body, "<h3><bdi>claude</bdi>") + strings.Count(body, "<h3><bdi>cursor</bdi>"); n != 3 {
		t.Errorf("there are %d conversations", n)
	}
	if n := strings.Count(body, "Undo these 2 changes"); n != 1 {
		t.Errorf("%d conversations of two changes have a button", n)
	}
	_, form, _ := strings.Cut(body, `action="`+a.in("undo-client")+`"`)
	form, _, _ = strings.Cut(form, "</form>")
	want(t, "undo the conversation", b.send(a.in("undo-client"), fields(form)), http.StatusSeeOther)
	if a.text("a.md") != "" || a.text("b.md") != "3\n" {
		t.Errorf("a.md has %q, b.md %q", a.text("a.md"), a.text("b.md"))
	}
	if strings.Contains(a.as(a.bob).get(a.in("activity")).body, "undo-client") {
		t.Error("a reader is offered to undo")
	}
}

// A filtered list lacks some changes of a conversation, so it has no button for all of them.
func TestAFilteredTimelineHasNoButtonsOfConversations(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.by("claude", "One", "a.md", "1\n")
	a.by("claude", "Two", "a.md", "2\n")
	b := a.as(a.ada)
	for _, filter := range []string{"tool=bash", "person=Ada"} {
		if body := b.get(a.in("activity?%s", filter)).body; !strings.Contains(body, "Two") || strings.Contains(body, "Undo these") {
			t.Errorf("%s: a conversation has a button", filter)
		}
	}
}

// A conversation has the changes of one person, even if the client of another person changes
// something in the same second.
func TestAConversationIsOfOnePerson(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	for i, name := range []string{"Ada", "Carol", "Carol"} {
		a.commitAs(space.Meta{Author: space.Person{Name: name}, Message: "By " + name, Tool: "bash", Client: "claude", Time: a.clock()}, strings.Repeat("x", i+1)+".md", name)
	}
	b := a.as(a.ada)
	body := b.get(a.in("activity")).body
	if n := strings.Count(body, "<h3><bdi>claude</bdi>"); n != 2 || !strings.Contains(body, "Undo these 2 changes") {
		t.Errorf("there are %d conversations", n)
	}
	_, form, _ := strings.Cut(body, `action="`+a.in("undo-client")+`"`)
	form, _, _ = strings.Cut(form, "</form>")
	want(t, "undo the conversation", b.send(a.in("undo-client"), fields(form)), http.StatusSeeOther)
	if a.text("x.md") != "Ada" || a.text("xx.md") != "" || a.text("xxx.md") != "" {
		t.Errorf("the files have %q, %q, %q", a.text("x.md"), a.text("xx.md"), a.text("xxx.md"))
	}
}

func TestActivityOfAPerson(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	for _, name := range []string{"Ada", "Carol"} {
		a.pass(time.Minute)
		a.commitAs(space.Meta{Author: space.Person{Name: name}, Message: "By " + name, Tool: "web", Client: "browser", Time: a.clock()}, "a.md", name)
	}
	body := a.as(a.ada).get(a.in("activity?person=Carol")).body
	if !strings.Contains(body, "By Carol") || strings.Contains(body, "By Ada") || !strings.Contains(body, `<option value="Carol" selected>`) {
		t.Error("the list has not the changes of one person")
	}
}
