package web_test

import (
	"net/url"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/web"
)

// A waiting file names the client that changed it last, or how else it was changed. A
// person is not a client.
func TestWhoMadeWhatWaits(t *testing.T) {
	const file, evil = "skills/a/SKILL.md", "evil\nstart\n2\n3\n4\n5\n6\n7\n8\n9\n"
	for _, tc := range []struct {
		name string
		do   func(a *active, b *browser)
		want string // on both pages
		more string // on the page of reviews
	}{
		{"an AI", func(*active, *browser) {}, "<bdi>claude-code</bdi>", ""},
		{"an AI without a name", func(a *active, _ *browser) { a.by("", "More", file, "more\n") }, "<bdi>a client without a name</bdi>", ""},
		{"a person's edit", func(a *active, b *browser) {
			b.send(a.in("edit/%s", file), url.Values{"base": {string(a.blob(file))}, "mode": {"regular"}, "text": {evil + "mine\n"}})
		}, "in the browser", ""},
		{"an undoing of another's change, which brings back an AI's", func(a *active, b *browser) {
			c := a.by("codex", "Nonsense", file, evil+"nonsense\n")
			b.send(a.in("revert"), url.Values{"commit": {string(c.ID)}})
		}, "in the browser", ""},
		{"a command that restores", func(a *active, _ *browser) {
			a.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "Restore", Tool: "restore", Client: "satchel", Time: a.clock()}, file, "older\n")
		}, "by a restore command", ""},
		{"ATTACK: a pushed commit that says a command restored", func(a *active, _ *browser) {
			a.push(file, "evil\n", "Restore\n\nSatchel-Tool: restore\nSatchel-Client: browser\n")
		}, "by a commit from elsewhere", ", which falsely claims to be from this server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{})
			b := a.as(a.ada)
			a.by("claude-code", "Obey", file, evil)
			tc.do(a, b)
			for _, page := range []string{"activity", "reviews"} {
				got := b.get(a.in("%s", page))
				checkPage(t, page, got)
				from, to := `id="asks"`, "</section>"
				if page == "reviews" {
					from, to = `<section class="review"`, "</p>"
				}
				_, section, _ := strings.Cut(got.body, from)
				section, _, _ = strings.Cut(section, to)
				if !strings.Contains(section, tc.want) || page == "reviews" && !strings.Contains(section, tc.more) {
					t.Errorf("%s lacks %q or %q in %s", page, tc.want, tc.more, section)
				}
				lacks(t, page, section, "<bdi>browser</bdi>", "<code>web")
			}
		})
	}
}
