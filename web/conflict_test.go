package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/internal/space"
)

// TestConflict checks that two people who edit one file lose nothing, however often it
// happens.
func TestConflict(t *testing.T) {
	t.Run("different lines: both are in the text", func(t *testing.T) {
		h := newHeld(t, "a.md", "one\r\ntwo\r\nthree\r\nfour\r\n")
		b := h.as(h.ada)
		form := b.edit(h, "a.md")
		h.commit("Change the end", "a.md", "one\r\ntwo\r\nthree\r\nFOUR\r\n")
		a := b.save(h, "a.md", form, "ONE\ntwo\nthree\nfour\n")
		want(t, "save", a, http.StatusConflict)
		h.holds("a.md", "one\r\ntwo\r\nthree\r\nFOUR\r\n")
		if got := shownText(a.body); got != "ONE\ntwo\nthree\nFOUR\n" {
			t.Errorf("the field has %q", got)
		}
		for _, s := range []string{"claude-code", "Change the end", "Their changes", "data-unsaved"} {
			if !strings.Contains(a.body, s) {
				t.Errorf("the page has no %q", s)
			}
		}
		// It happens again, and then not.
		form = fields(a.body)
		h.commit("Add a line", "a.md", "one\r\ntwo\r\nthree\r\nFOUR\r\nfive\r\n")
		a = b.save(h, "a.md", form, shownText(a.body))
		want(t, "save again", a, http.StatusConflict)
		a = b.save(h, "a.md", fields(a.body), shownText(a.body))
		want(t, "save at last", a, http.StatusSeeOther)
		h.holds("a.md", "ONE\r\ntwo\r\nthree\r\nFOUR\r\nfive\r\n")
	})
	t.Run("attack: both take one of equal lines away", func(t *testing.T) {
		h := newHeld(t, "a.md", "# T\n- [ ] milk\n- [ ] milk\n- [ ] milk\n")
		b := h.as(h.ada)
		form := b.edit(h, "a.md")
		h.commit("Theirs", "a.md", "new\n# T\n- [ ] milk\n- [ ] milk\n")
		a := b.save(h, "a.md", form, "# T\n- [ ] milk\n- [ ] milk\n")
		want(t, "save", a, http.StatusConflict)
		if got := shownText(a.body); got != "new\n# T\n- [ ] milk\n- [ ] milk\n" {
			t.Errorf("the field has %q", got)
		}
	})
	t.Run("the same line: it is marked, and the marks are not saved unseen", func(t *testing.T) {
		h := newHeld(t, "a.md", "one\ntwo\n")
		b := h.as(h.ada)
		form := b.edit(h, "a.md")
		h.commit("Theirs", "a.md", "one\ntheirs\n")
		a := b.save(h, "a.md", form, "one\nmine\n")
		want(t, "save", a, http.StatusConflict)
		text := shownText(a.body)
		for _, s := range []string{"mine\n", "theirs\n", "Both changed this place"} {
			if !strings.Contains(text, s) {
				t.Errorf("the field has no %q: %q", s, text)
			}
		}
		form = fields(a.body)
		a = b.save(h, "a.md", form, text)
		want(t, "save with marks", a, http.StatusUnprocessableEntity)
		if shownText(a.body) != text || !strings.Contains(a.body, `name="marks"`) {
			t.Error("what was typed is gone, or nothing says how to save it all the same")
		}
		h.holds("a.md", "one\ntheirs\n")
		form = fields(a.body)
		form.Set("marks", "1")
		want(t, "save with marks on purpose", b.save(h, "a.md", form, text), http.StatusSeeOther)
		h.holds("a.md", text)
	})
	t.Run("deleted: the text makes it again", func(t *testing.T) {
		h := newHeld(t, "a.md", "one\n", "b", "x")
		b := h.as(h.ada)
		form := b.edit(h, "a.md")
		h.commit("Delete", "a.md", "\x00")
		a := b.save(h, "a.md", form, "mine\n")
		want(t, "save", a, http.StatusConflict)
		if !strings.Contains(problemOf(a.body), "deleted") || shownText(a.body) != "mine\n" {
			t.Errorf("%s; the field has %q", problemOf(a.body), shownText(a.body))
		}
		h.lacks("a.md")
		want(t, "save again", b.save(h, "a.md", fields(a.body), "mine\n"), http.StatusSeeOther)
		h.holds("a.md", "mine\n")
	})
	t.Run("between the look and the commit", func(t *testing.T) {
		h := newHeld(t, "a.md", "one\ntwo\nthree\n")
		b := h.as(h.ada)
		form := b.edit(h, "a.md")
		h.meanwhile(func() { h.commit("Meanwhile", "a.md", "ONE\ntwo\nthree\n") }, func() { h.commit("Meanwhile", "a.md", "\x00") })
		a := b.save(h, "a.md", form, "one\ntwo\nTHREE\n")
		want(t, "save", a, http.StatusConflict)
		if got := shownText(a.body); got != "ONE\ntwo\nTHREE\n" {
			t.Errorf("the field has %q", got)
		}
		a = b.save(h, "a.md", fields(a.body), shownText(a.body))
		want(t, "save what is deleted right then", a, http.StatusConflict)
		if !strings.Contains(a.body, "was deleted while you edited it") {
			t.Error("it does not say so")
		}
		want(t, "save at last", b.save(h, "a.md", fields(a.body), shownText(a.body)), http.StatusSeeOther)
		h.holds("a.md", "ONE\ntwo\nTHREE\n")
	})
	t.Run("it became a directory, or no text", func(t *testing.T) {
		h := newHeld(t, "a.md", "one\n", "b", "text\n")
		b := h.as(h.ada)
		form, other := b.edit(h, "a.md"), b.edit(h, "b")
		h.commit("Turn", "a.md", "\x00", "b", "\x00\x01")
		h.commit("Turn", "a.md/x", "y", "b", "\xff\x00\x01")
		want(t, "save", b.save(h, "a.md", form, "mine\n"), http.StatusConflict)
		a := b.save(h, "b", other, "mine\n")
		want(t, "save over bytes", a, http.StatusConflict)
		if shownText(a.body) != "mine\n" {
			t.Errorf("the field has %q", shownText(a.body))
		}
		h.holds("b", "\xff\x00\x01")
	})
	t.Run("the same text: nothing to decide", func(t *testing.T) {
		h := newHeld(t, "a.md", "one\n")
		b := h.as(h.ada)
		form := b.edit(h, "a.md")
		h.commit("Same", "a.md", "two\n")
		a := b.save(h, "a.md", form, "two\n")
		if a.StatusCode != http.StatusConflict || shownText(a.body) != "two\n" {
			t.Errorf("%d %q", a.StatusCode, shownText(a.body))
		}
	})
	t.Run("attack: a base that is another space's, or none", func(t *testing.T) {
		h := newHeld(t, "a.md", "one\n")
		c, err := h.git.Commit(t.Context(), h.evil.ID, space.ChangeSet{Changes: []space.Change{{Path: "s", Content: []byte("eve's canary-7f3a\n")}}}, space.Meta{})
		must(t, err)
		b := h.as(h.ada)
		a := b.save(h, "a.md", url.Values{"base": {string(c.Files[0].New)}, "mode": {"regular"}}, "mine\n")
		want(t, "another's blob", a, http.StatusConflict)
		if strings.Contains(a.body, "canary-7f3a") {
			t.Error("another space's file is shown")
		}
		want(t, "no blob", b.save(h, "a.md", url.Values{"base": {"../../etc/passwd"}}, "mine\n"), http.StatusBadRequest)
		h.holds("a.md", "one\n")
	})
}

// A preview of a conflict's text, or marks left in it, keep all three sides on the page.
func TestConflictStaysOpen(t *testing.T) {
	h := newHeld(t, "a.md", "one\ntwo\n")
	b := h.as(h.ada)
	form := b.edit(h, "a.md")
	h.commit("Theirs", "a.md", "one\ntheirs\n")
	a := b.save(h, "a.md", form, "one\nmine\n")
	want(t, "save", a, http.StatusConflict)
	sides := []string{`id="theirs"`, "theirs</code>", "mine</code>", "Show the full texts", ">\none\nmine\n</textarea>", ">\none\ntwo\n</textarea>"}
	next := func(act, text string) answer {
		f := fields(a.body)
		f.Set("sent", "one\r\nmine\r\n")
		f.Set("text", text)
		f.Set("act", act)
		return b.send(h.in("edit/a.md"), f)
	}
	for act, status := range map[string]int{"preview": http.StatusOK, "save": http.StatusUnprocessableEntity} {
		again := next(act, shownText(a.body))
		want(t, act, again, status)
		for _, s := range sides {
			if !strings.Contains(again.body, s) {
				t.Errorf("after %s the page has no %q: %s", act, s, again.body)
			}
		}
		if shownText(again.body) != shownText(a.body) {
			t.Errorf("after %s the field has %q", act, shownText(again.body))
		}
	}
	want(t, "decided", next("save", "one\nboth\n"), http.StatusSeeOther)
	h.holds("a.md", "one\nboth\n")

	f := fields(a.body)
	f.Set("had", "../../x")
	f.Set("act", "preview")
	want(t, "a base that is none", b.send(h.in("edit/a.md"), f), http.StatusBadRequest)
}

func TestConflictWithAMoveNamesTheNewPath(t *testing.T) {
	h := newHeld(t, "a.md", "one\n")
	b := h.as(h.ada)
	form := b.edit(h, "a.md")
	h.commit("Tidy up", "a.md", "\x00", "notes/b.md", "one\n")
	a := b.save(h, "a.md", form, "mine\n")
	want(t, "save", a, http.StatusConflict)
	if !strings.Contains(problemOf(a.body), "moved") || !strings.Contains(a.body, `href="`+h.in("files/notes/b.md")+`"`) {
		t.Errorf("the page does not say where the file is: %s", a.body)
	}
}
