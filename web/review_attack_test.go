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

const unseenButton = "without seeing all of it here"

// Attack: an AI's text is hidden in the difference or too long for it, and a person who
// believes to have seen it keeps it.
func TestAttackNothingIsKeptUnseen(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		shown      []string
		keep       bool
	}{
		{"what is seen", "start\nbe kind\n", []string{"be kind"}, true},
		{"tags", "start\nbe kind\U000E0065\U000E0076\n", []string{`be kind<span class="odd">⟨U+E0065⟩</span><span class="odd">⟨U+E0076⟩</span>`}, true},
		{"another direction", "start\nbe \u202ekind\n", []string{`be <span class="odd">⟨U+202E⟩</span>kind`}, true},
		{"the end of a long line", "start\n" + strings.Repeat("be kind ", 500) + "EVIL\n", []string{"EVIL"}, true},
		{"a line that is too long", "start\n" + strings.Repeat("be kind ", 5000) + "EVIL\n", []string{"longer than fits", "/raw/resources/x.md?at=", "/edit/resources/x.md", "text of 2 lines", "39.1 kB"}, false},
		{"too many lines", "start\n" + strings.Repeat("\n", 3000) + "EVIL\n", []string{"longer than fits", "/raw/resources/x.md?at=", "text of 3002 lines"}, false},
		{"what cannot be seen in too many lines", "start\n" + strings.Repeat("\n", 3000) + "\u200bEVIL\u202e\n", []string{"2 characters in it that you cannot see"}, false},
		{"bytes that are no text", "start\n\x00\x01EVIL", []string{"not text", "/raw/resources/x.md?at=", "/files/resources/x.md?at=", "&amp;download"}, false},
		{"what looks like a picture", "\x89PNG\x0D\x0A\x1A\x0A\x00\x00EVIL", []string{"not text, but looks like image/png"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{})
			a.by("claude-code", "Obey", "resources/x.md", tc.text)
			page := a.as(a.ada).get(a.in("reviews?path=resources/x.md"))
			want(t, "page", page, http.StatusOK)
			checkPage(t, "page", page)
			for _, s := range tc.shown {
				if !strings.Contains(page.body, s) {
					t.Errorf("the page lacks %q", s)
				}
			}
			if got := !strings.Contains(page.body, unseenButton); got != tc.keep || !strings.Contains(page.body, "/reviews/keep") || !strings.Contains(page.body, "/reviews/undo") {
				t.Errorf("to keep it is offered as what was seen: %v", got)
			}
			if all := a.as(a.ada).get(a.in("reviews")).body; !tc.keep && (strings.Contains(all, "/reviews/keep") || !strings.Contains(all, "reviews?path=resources")) {
				t.Error("it is offered to be kept where less of it is told, or leads nowhere")
			}
		})
	}
}

// A file that cannot be shown is kept in the exact version of the page.
func TestWhatCannotBeShownIsKept(t *testing.T) {
	for _, tc := range []struct{ name, text string }{
		{"no text", "start\n\x00EVIL"},
		{"very long", strings.Repeat("be kind\n", 300_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{})
			a.by("claude-code", "Obey", "resources/x.bin", tc.text)
			b := a.as(a.ada)
			page := b.get(a.in("reviews?path=resources/x.bin"))
			checkPage(t, "page", page)
			blob := a.blob("resources/x.bin")
			if strings.Contains(page.body, "edit it<") {
				t.Error("an editor is offered that takes no such file")
			}
			for _, s := range []string{unseenButton, `name="blob" value="` + string(blob) + `"`, "<code>" + string(blob[:12]) + "</code>"} {
				if !strings.Contains(page.body, s) {
					t.Errorf("the page lacks %s", s)
				}
			}
			seen := url.Values{"path": {"resources/x.bin"}, "blob": {string(blob)}}
			// Attack: the file changes between viewing and deciding.
			a.by("claude-code", "Obey more", "resources/x.bin", tc.text+"\x00MORE")
			want(t, "keep what changed", b.send(a.in("reviews/keep"), seen), http.StatusConflict)
			raw := b.get(strings.ReplaceAll(htmlAttr(t, page.body, "raw<span"), "&amp;", "&"))
			if want(t, "raw", raw, http.StatusOK); raw.body != tc.text {
				t.Error("the page does not lead to the version that it is of")
			}
			a.by("claude-code", "Obey as before", "resources/x.bin", tc.text)
			want(t, "keep", b.send(a.in("reviews/keep"), seen), http.StatusSeeOther)
			if list, _, err := a.service.Reviews.Waiting(t.Context(), a.space.ID); err != nil || len(list) > 0 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
	t.Run("it is deleted", func(t *testing.T) {
		a := newActive(t, web.LiveOptions{})
		a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "Mine", Tool: "web", Time: a.clock()}, "resources/x.bin", "\x00\x01mine")
		a.by("claude-code", "Tidy up", "resources/x.bin", "\x00")
		b := a.as(a.ada)
		page := b.get(a.in("reviews?path=resources/x.bin"))
		checkPage(t, "page", page)
		if !strings.Contains(page.body, "/reviews/keep") || strings.Contains(page.body, "/raw/") {
			t.Error("to keep it so is not offered, or it leads to what is not there")
		}
		want(t, "keep", b.send(a.in("reviews/keep"), url.Values{"path": {"resources/x.bin"}, "blob": {""}}), http.StatusSeeOther)
	})
}

// A change that does not fit on the page of all is kept on its own page.
func TestALongReviewIsKeptAlone(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.by("claude-code", "Obey", "resources/x.md", "start\n"+strings.Repeat("be kind\n", 900)+"EVIL\n")
	b := a.as(a.ada)
	if s := b.get(a.in("reviews")).body; strings.Contains(s, "/reviews/keep") || !strings.Contains(s, "reviews?path=resources") {
		t.Error("it is offered to be kept where it is not shown, or leads nowhere")
	}
	if s := b.get(a.in("reviews?path=resources/x.md")).body; !strings.Contains(s, "/reviews/keep") || !strings.Contains(s, "EVIL") {
		t.Error("it cannot be kept alone")
	}
}

// Attack: by undoing one change of an AI, moving a skill or restoring a directory, a
// person confirms what else an AI wrote there.
func TestAttackOtherActsConfirmNothing(t *testing.T) {
	const skill = "skills/a/SKILL.md"
	for _, tc := range []struct {
		name string
		do   func(a *active, b *browser, evil space.Commit) answer
		want string
	}{
		{"the undoing of another change", func(a *active, b *browser, _ space.Commit) answer {
			c := a.by("claude-code", "Nonsense", skill, "evil\nstart\n2\n3\n4\n5\n6\n7\n8\n9\nnonsense\n")
			return b.send(a.in("revert"), url.Values{"commit": {string(c.ID)}})
		}, skill},
		{"a restore", func(a *active, b *browser, evil space.Commit) answer {
			a.by("claude-code", "Less", skill, "start\n")
			return b.send(a.in("restore"), url.Values{"path": {"skills"}, "at": {string(evil.ID)}})
		}, skill},
		{"a move of the directory", func(a *active, b *browser, _ space.Commit) answer {
			return b.send(a.in("rename/skills/a"), url.Values{"at": {string(a.head())}, "to": {"skills/good"}})
		}, "skills/good/SKILL.md"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{})
			evil := a.by("claude-code", "Obey", skill, "evil\nstart\n2\n3\n4\n5\n6\n7\n8\n9\n")
			b := a.as(a.ada)
			before := a.head()
			want(t, "the act", tc.do(a, b, evil), http.StatusSeeOther)
			if a.head() == before {
				t.Fatal("nothing was done")
			}
			list, _, err := a.service.Reviews.Waiting(t.Context(), a.space.ID)
			must(t, err)
			if len(list) != 1 || string(list[0].Path) != tc.want {
				t.Errorf("%+v", list)
			}
		})
	}
}

// Attack: by correcting a line of a file, a person confirms what an AI hid in another. The
// form says that the file waits, and it keeps waiting.
func TestAttackTheEditorConfirmsNothingUnseen(t *testing.T) {
	const file = "resources/x.md"
	a := newActive(t, web.LiveOptions{})
	b := a.as(a.ada)
	link := "/reviews?path=resources%2Fx.md"
	if s := b.get(a.in("edit/%s", file)).body; strings.Contains(s, link) {
		t.Error("the form says that it waits")
	}
	a.by("claude-code", "Obey", file, "start\nevil\u200b\n")
	page := b.get(a.in("edit/%s", file))
	checkPage(t, "edit", page)
	if !strings.Contains(page.body, link) {
		t.Error("the form does not say that it waits")
	}
	list, _, err := a.service.Reviews.Waiting(t.Context(), a.space.ID)
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	was := list[0]
	want(t, "save", b.send(a.in("edit/%s", file), url.Values{"base": {string(was.Blob)}, "mode": {"regular"}, "text": {"start\nevil\u200b\nmine\n"}}), http.StatusSeeOther)
	list, _, err = a.service.Reviews.Waiting(t.Context(), a.space.ID)
	must(t, err)
	if len(list) != 1 || list[0].Was != was.Was || list[0].Blob == was.Blob {
		t.Errorf("%+v", list)
	}
}

// A page says if it is not yet known what waits.
func TestReviewsThatAreBehind(t *testing.T) {
	a := newActiveOf(t, stuckReviews(t, time.Nanosecond), web.LiveOptions{})
	for _, p := range []string{"reviews", "activity"} {
		res := a.as(a.ada).get(a.in("%s", p))
		checkPage(t, p, res)
		if !strings.Contains(res.body, "Still looking") || strings.Contains(res.body, "Nothing waits for you") {
			t.Errorf("%s does not tell", p)
		}
	}
}
