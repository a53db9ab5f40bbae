package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/web"
)

// Attack: an AI hides the one change that matters among so many other files that it is on
// no page.
func TestAttackJunkHidesNoInstructions(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "Mine", Tool: "web", Time: a.clock()}, "resources/z.md", "mine\n")
	files := []string{"resources/instructions.md", "start\nEVIL\n", "skills/a/SKILL.md", "start\nEVIL TOO\n", "resources/z.md", "EVIL AS WELL\n"}
	for i := range 130 {
		files = append(files, fmt.Sprintf("resources/0/%03d.md", i), "junk\n")
	}
	a.by("claude-code", "Tidy up", files...)
	b := a.as(a.ada)
	for _, page := range []string{"activity", "reviews"} {
		body := b.get(a.in("%s", page)).body
		at := 0
		for _, p := range []string{"resources/instructions.md", "skills/a/SKILL.md", "resources/z.md", "resources/0/000.md"} {
			i := strings.Index(body[at:], "<bdi>"+p)
			if i < 0 {
				t.Fatalf("%s does not tell of %s, or not before the rest", page, p)
			}
			at += i
		}
	}
	// All files are reached, and none is on two pages.
	seen := map[string]bool{}
	next := a.in("reviews")
	for pages := 0; next != ""; pages++ {
		res := b.get(next)
		want(t, next, res, http.StatusOK)
		checkPage(t, next, res)
		for part := range strings.SplitSeq(res.body, `/reviews/undo">`) {
			_, v, ok := strings.Cut(part, `name="path" value="`)
			if p, _, _ := strings.Cut(v, `"`); ok && strings.Contains(part, `class="risky"`) {
				if seen[p] {
					t.Errorf("%s is there twice", p)
				}
				seen[p] = true
			}
		}
		if len(res.body) > 100<<10 || pages > 20 {
			t.Fatalf("page %d has %d bytes", pages, len(res.body))
		}
		next = ""
		if strings.Contains(res.body, "Those after these") {
			next = htmlAttr(t, res.body, "Those after these")
		}
	}
	if len(seen) != 133 {
		t.Errorf("%d of 133 can be undone", len(seen))
	}
	if !strings.Contains(b.get(a.in("reviews")).body, "path=resources%2F0%2F100.md") {
		t.Error("those further on are not named")
	}
	for _, page := range []string{"0", "-1", "999999", "x"} {
		want(t, page, b.get(a.in("reviews?page=%s", page)), http.StatusOK)
	}
}

// Attack: the path of a file looks like that of another, so that the person keeps the
// wrong one.
func TestAttackPathsThatLookAlike(t *testing.T) {
	long := "resources/" + strings.Repeat("a", 130)
	for _, tc := range []struct{ name, path, shown string }{
		{"a space without a width", "resources/in\u200bstructions.md", "resources/in⟨U+200B⟩structions.md"},
		{"another direction", "resources/\u202edm.snoitcurtsni", "resources/⟨U+202E⟩dm.snoitcurtsni"},
		{"a selector of a variant", "resources/instructions.md\ufe0f", "resources/instructions.md⟨U+FE0F⟩"},
		{"a blank letter", "resources/instructions\u2800.md", "resources/instructions⟨U+2800⟩.md"},
		{"a space that does not break", "resources/my\u00a0notes.md", "resources/my⟨U+00A0⟩notes.md"},
		{"two spaces", "resources/my  notes.md", "resources/my⟨U+0020⟩⟨U+0020⟩notes.md"},
		{"a space at an end", "resources/ notes.md", "resources/⟨U+0020⟩notes.md"},
		{"a beginning that is long", long + "/evil.md", long + "/evil.md"},
		{"other letters", "resources/Über die Küche.md", "resources/Über die Küche.md"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{})
			c := a.by("claude-code", "Obey", tc.path, "EVIL\n")
			b := a.as(a.ada)
			body := html.UnescapeString(b.get(a.in("reviews")).body)
			for _, s := range []string{"<bdi>" + tc.shown + "</bdi></h2>", `Keep<span class="unseen"> ` + tc.shown + " as it is"} {
				if !strings.Contains(body, s) {
					t.Errorf("it lacks %s", s)
				}
			}
			shown := tc.shown
			if strings.HasPrefix(tc.path, long) {
				shown = "/evil.md</bdi>" // the name at least
			}
			for _, page := range []string{"activity", "commits/" + string(c.ID), "files/resources/"} {
				want := shown
				if strings.HasPrefix(page, "files") {
					if want = shown[strings.LastIndexByte(shown, '/')+1:]; strings.HasPrefix(tc.path, long) {
						continue
					}
				}
				if !strings.Contains(html.UnescapeString(b.get(a.in("%s", page)).body), want) {
					t.Errorf("%s lacks %s", page, want)
				}
			}
			want(t, "keep", b.send(a.in("reviews/keep"), url.Values{"path": {tc.path}, "blob": {string(a.blob(tc.path))}}), http.StatusSeeOther)
			if !strings.Contains(html.UnescapeString(b.get(a.in("reviews")).body), "<bdi>"+tc.shown+"</bdi>") {
				t.Error("what was decided is not told as it is")
			}
		})
	}
}
