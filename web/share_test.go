package web_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"satchel/internal/space"
)

// The manifest makes the pages installable: each of its icons is there, one can be masked, and its
// share target is a page.
func TestManifest(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	a := b.get("/manifest.webmanifest")
	want(t, "the manifest", a, 200)
	var m struct {
		Name, Display string
		StartURL      string `json:"start_url"`
		Icons         []struct{ Src, Type, Purpose string }
		Share         struct {
			Action, Method string
			Params         map[string]string
		} `json:"share_target"`
	}
	must(t, json.Unmarshal([]byte(a.body), &m))
	if a.Header.Get("Content-Type") != "application/manifest+json" || m.Name == "" || m.Display != "standalone" || m.StartURL != "/" {
		t.Errorf("%s: %+v", a.Header.Get("Content-Type"), m)
	}
	purposes := ""
	for _, i := range m.Icons {
		purposes += i.Purpose + " "
		if c := b.get(i.Src); c.StatusCode != 200 || c.Header.Get("Content-Type") != i.Type {
			t.Errorf("%s: %d %s", i.Src, c.StatusCode, c.Header.Get("Content-Type"))
		}
	}
	if purposes != "any maskable " {
		t.Errorf("icons: %s", purposes)
	}
	if m.Share.Method != "GET" {
		t.Errorf("a share target of another program has no token, so it cannot be %s", m.Share.Method)
	}
	want(t, "the share target", w.as(w.ada).get(m.Share.Action+"?"+m.Share.Params["text"]+"=x"), 200)
	page := b.get("/signin").body
	if !strings.Contains(page, `<link rel="manifest" href="/manifest.webmanifest">`) {
		t.Error("pages do not name the manifest")
	}
	// iOS takes neither the icons of a manifest nor an SVG.
	_, icon, _ := strings.Cut(page, `<link rel="apple-touch-icon" href="`)
	icon, _, _ = strings.Cut(icon, `"`)
	if c := b.get(icon); c.StatusCode != 200 || c.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the icon of iOS, %s: %d %s", icon, c.StatusCode, c.Header.Get("Content-Type"))
	}
}

// log returns the commits of ada's space, the newest first.
func (h *held) log() []space.Commit {
	h.t.Helper()
	list, err := h.git.Log(h.t.Context(), h.space.ID, space.LogQuery{Limit: 100})
	must(h.t, err)
	return list
}

// A shared link is shown first, and Save puts it into the inbox as one commit.
func TestShare(t *testing.T) {
	h := newHeld(t, "a.md", "a")
	b := h.as(h.ada)
	before := len(h.log())
	link := "https://example.com/a?b=c&d"
	a := b.get("/share?" + url.Values{"title": {"Tea: “green” & more"}, "text": {link}}.Encode())
	want(t, "the page", a, 200)
	if !strings.Contains(a.body, `name="url" type="url"`) || !strings.Contains(a.body, "https://example.com/a?b=c&amp;d") || len(h.log()) != before {
		t.Error("the page does not show the link alone")
	}
	form := url.Values{"space": {string(h.space.ID)}, "title": {"Tea: “green” & more"}, "text": {"Line one\r\nline two"}, "url": {link}}
	saved := b.send("/share", form)
	want(t, "save", saved, 303)
	p := "inbox/" + h.clock().UTC().Format("2006-01-02") + "-tea-green-more.md"
	if log := h.log(); len(log) != before+1 || log[0].Tool != space.ToolWeb {
		t.Fatalf("%d commits were made: %+v", len(log)-before, log[0])
	}
	if got, expect := h.text(p), "---\ntitle: \"Tea: “green” & more\"\nsource: \"https://example.com/a?b=c&d\"\n---\n\nLine one\nline two\n\n<"+link+">\n"; got != expect {
		t.Errorf("%q", got)
	}
	a = b.get(strings.TrimPrefix(saved.Header.Get("Location"), issuer))
	want(t, "the note", a, 200)
	if !strings.Contains(a.body, `href="/spaces/`+string(h.space.ID)+"/files/"+p+`"`) {
		t.Error("the note has no link to the file")
	}
	// Another note of the same day and title stands beside it.
	want(t, "save again", b.send("/share", form), 303)
	if h.text(strings.TrimSuffix(p, ".md")+"-2.md") == "" {
		t.Error("the second note is not there")
	}
}

// A text of the allowed length is saved in any script, and a refusal keeps the typed text.
func TestShareKeepsLongTexts(t *testing.T) {
	h := newHeld(t, "a.md", "a")
	b := h.as(h.ada)
	long := strings.Repeat("ж", 15_000)
	form := url.Values{"space": {string(h.space.ID)}, "title": {"tea"}, "text": {long}}
	want(t, "a long text", b.send("/share", form), 303)
	p := "inbox/" + h.clock().UTC().Format("2006-01-02") + "-tea"
	if !strings.Contains(h.text(p+".md"), long) {
		t.Error("the text was cut")
	}
	var others []string
	for n := 2; n <= 50; n++ {
		others = append(others, fmt.Sprintf("%s-%d.md", p, n), "x")
	}
	h.commit("Fill the inbox", others...)
	a := b.send("/share", form)
	want(t, "too many notes", a, 409)
	if !strings.Contains(a.body, long) || !strings.Contains(a.body, "Change the title") {
		t.Error("the refusal has no form with the typed text")
	}
}

// Bad input changes nothing, and readers and strangers save nothing.
func TestAttackShare(t *testing.T) {
	h := newHeld(t, "a.md", "a")
	before := len(h.log())
	id := string(h.space.ID)
	for name, form := range map[string]url.Values{
		"nothing":         {"space": {id}, "title": {"x"}, "text": {" \n"}},
		"a script's link": {"space": {id}, "text": {"x"}, "url": {"javascript:alert(1)"}},
		"lines in a link": {"space": {id}, "url": {"https://example.com/\n---\nx"}},
		"no space":        {"text": {"x"}},
	} {
		want(t, name, h.as(h.ada).send("/share", form), 400)
	}
	for who, b := range map[string]*browser{"a reader": h.as(h.bob), "a stranger": h.as(h.eve)} {
		if a := b.send("/share", url.Values{"space": {id}, "text": {"x"}}); a.StatusCode < 400 {
			t.Errorf("%s: %d", who, a.StatusCode)
		}
	}
	want(t, "evil text is shown", h.as(h.ada).get("/share?"+url.Values{"text": {"\x00\xff</textarea><script>x"}}.Encode()), 200)
	for _, path := range []string{"../../etc/passwd", "inbox/none.md", "</a>"} {
		want(t, path, h.as(h.ada).get("/share/saved?"+url.Values{"space": {id}, "path": {path}}.Encode()), 404)
	}
	if n := len(h.log()); n != before {
		t.Errorf("%d commits were made", n-before)
	}
}
