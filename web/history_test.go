package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/internal/space"
)

func TestHistoryAndChanges(t *testing.T) {
	h := newHeld(t, "notes/a.md", "one\ntwo\nthree\n", "b.md", "b\n")
	second := h.commit("Say two anew\n\nBecause it was wrong.", "notes/a.md", "one\ntwo, said anew\nthree\n")
	h.commitAs(space.Meta{Author: space.Person{Name: "Bob"}, Message: "Another thing", Tool: "web", Client: "browser", Time: h.now}, "c.md", "c\n")
	b := h.as(h.ada)

	a := b.get(h.in("history/"))
	for _, w := range []string{"Say two anew", "Another thing", "in the browser", "<bdi>claude-code</bdi></strong> for ", "20 Nov 2026", "Begin"} {
		if !strings.Contains(a.body, w) {
			t.Errorf("the history lacks %q", w)
		}
	}
	a = b.get(h.in("history/notes/a.md"))
	if strings.Contains(a.body, "Another thing") || !strings.Contains(a.body, "/files/notes/a.md?at="+string(second.ID)) {
		t.Errorf("the history of a file: %s", a.body)
	}
	want(t, "the history of nothing", b.get(h.in("history/nothing")), http.StatusNotFound)
	want(t, "a place in no history", b.get(h.in("history/?after=%s", strings.Repeat("a", 40))), http.StatusNotFound)

	a = b.get(h.in("commits/%s", second.ID))
	for _, w := range []string{"Because it was wrong.", "claude-code", "1 file changed", "two<ins>, said anew</ins>", `added: </span>`, h.in("files/notes/a.md?at=%s", second.ID), h.in("files/notes/a.md?at=%s", second.Parent), `action="` + h.in("restore") + `"`} {
		if !strings.Contains(a.body, w) {
			t.Errorf("the commit lacks %q: %s", w, a.body)
		}
	}
	if a := h.as(h.bob).get(h.in("commits/%s", second.ID)); strings.Contains(a.body, `action="`+h.in("restore")) {
		t.Error("a reader is offered to restore")
	}
	want(t, "a short id", b.get(h.in("commits/%s", second.ID.Short())), http.StatusOK)

	a = b.get(h.in("compare?from=%s", second.Parent))
	if !strings.Contains(a.body, "2 files changed") {
		t.Errorf("a comparison: %s", a.body)
	}
	a = b.get(h.in("compare?from=%s&to=%s&path=notes", second.Parent, second.ID))
	if !strings.Contains(a.body, "1 file changed") {
		t.Errorf("a comparison of a directory: %s", a.body)
	}

	a = b.send(h.in("restore"), url.Values{"path": {"notes/a.md"}, "at": {string(second.Parent)}})
	if a.StatusCode != http.StatusSeeOther || a.location() != issuer+h.in("files/notes/a.md?done=restored") {
		t.Fatalf("restoring: %d %s %s", a.StatusCode, a.location(), heading(a.body))
	}
	if a := b.get(h.in("raw/notes/a.md")); a.body != "one\ntwo\nthree\n" {
		t.Errorf("what was restored: %q", a.body)
	}
	if a := b.get(h.in("raw/c.md")); a.body != "c\n" {
		t.Errorf("another file went with it: %q", a.body)
	}
	want(t, "restoring everything", b.send(h.in("restore"), url.Values{"all": {"1"}, "at": {string(second.ID)}}), http.StatusSeeOther)
	want(t, "what came since", b.get(h.in("raw/c.md")), http.StatusNotFound)
	for name, form := range map[string]url.Values{
		"nothing":                 {"at": {string(second.ID)}},
		"at no commit":            {"all": {"1"}},
		"at an unknown commit":    {"all": {"1"}, "at": {strings.Repeat("a", 40)}},
		"a path out of the space": {"path": {"../x"}, "at": {string(second.ID)}},
		"git's own":               {"path": {".git/config"}, "at": {string(second.ID)}},
	} {
		if a := b.send(h.in("restore"), form); a.StatusCode < 400 {
			t.Errorf("restoring %s: %d", name, a.StatusCode)
		}
	}
	want(t, "a reader restores", h.as(h.bob).send(h.in("restore"), url.Values{"all": {"1"}, "at": {string(second.ID)}}), http.StatusForbidden)
}

func TestHistoryGoesOnPageByPage(t *testing.T) {
	h := newHeld(t)
	for i := range 60 {
		h.commit("Change "+string(rune('a'+i%26))+string(rune('a'+i/26)), "f.md", strings.Repeat("x", i+1))
	}
	b := h.as(h.ada)
	seen := map[string]int{}
	target := h.in("history/f.md")
	for pages := 0; target != ""; pages++ {
		if pages > 3 {
			t.Fatal("it does not end")
		}
		a := b.get(target)
		for part := range strings.SplitSeq(a.body, "<bdi>Change ") {
			if len(part) > 2 {
				seen[part[:2]]++
			}
		}
		target = ""
		if _, rest, ok := strings.Cut(a.body, `<p class="acts"><a class="button second" href="`); ok {
			target, _, _ = strings.Cut(rest, `"`)
			target = strings.ReplaceAll(target, "&amp;", "&")
		}
	}
	for i := range 60 {
		if k := string(rune('a'+i%26)) + string(rune('a'+i/26)); seen[k] != 1 {
			t.Errorf("change %s is on %d pages", k, seen[k])
		}
	}
}

// The history of a moved file links to its earlier history at the old path.
func TestHistoryLeadsOnAcrossAMove(t *testing.T) {
	h := newHeld(t, "a.md", "one\n", "dir/x.md", "x\n", "dir/sub/y.md", "y\n", "twin1", "same", "twin2", "same")
	h.commit("Say more", "a.md", "one\ntwo\n")
	b := h.as(h.ada)
	for _, test := range []struct{ path, to, at, from string }{
		{"a.md", "new/b.md", "new/b.md", "a.md"},
		{"dir", "moved/here", "moved/here", "dir"},
		{"moved/here", "again", "again/sub/y.md", "moved/here/sub/y.md"},
	} {
		form := b.ask(h, "rename", test.path)
		form.Set("to", test.to)
		want(t, "moving "+test.path, b.send(h.in("rename/%s", test.path), form), http.StatusSeeOther)
		c := h.last()
		a := b.get(h.in("history/%s", test.at))
		link := h.in("history/%s?at=%s", test.from, c.Parent)
		if !strings.Contains(a.body, link) || strings.Contains(a.body, "the beginning") {
			t.Errorf("%s: no link to %s: %s", test.at, link, a.body)
		}
		a = b.get(link)
		want(t, "the history before", a, http.StatusOK)
		if test.path == "a.md" && !strings.Contains(a.body, "Say more") {
			t.Errorf("the history before: %s", a.body)
		}
	}
	h.commit("Put together", "twin1", "\x00", "twin2", "\x00", "twin", "same")
	h.commit("Write anew", "fresh.md", "fresh\n")
	for _, p := range []string{"twin", "fresh.md", "dir"} {
		if a := b.get(h.in("history/%s", p)); !strings.Contains(a.body, "the beginning") {
			t.Errorf("%s came from nowhere, or from two places: %s", p, a.body)
		}
	}
}
