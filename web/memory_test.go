package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const annFact = "---\n# who\nvalue: Ann is the boss\nmood: 'kept' # as it is\nconfidence: 0.6\nsource: inferred\nclient: Claude\nfirst_seen: 2026-01-05\nlast_confirmed: 2026-02-01\nexpires: 2027-01-01\n---\nMet in 2020.\r\n"

func memories() []string {
	return []string{
		"memory/person/ann.md", annFact,
		"memory/person/gone.md", "---\nvalue: Visits on Monday\nsource: inferred\nexpires: 2026-11-19\n---\n",
		"memory/preference/<script>tea.md", "---\nvalue: \"<script>alert(1)</script> tea\"\nsource: user_explicit\n---\n",
		"memory/person/broken.md", "---\nvalue: [\n---\n", "memory/person/novalue.md", "text\n",
		"memory/loose.md", "no fact", "memory/person/deep/ignored.md", "---\nvalue: too deep\n---\n", "memory/person/notes.txt", "no fact",
	}
}

func TestMemory(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	a := b.get(h.in("memory"))
	want(t, "memory", a, http.StatusOK)
	for _, s := range []string{"2 facts", "Ann is the boss", "&lt;script&gt;alert(1)&lt;/script&gt; tea", "<bdi>Claude</bdi>", "inferred, 60 % certain", "Origin unknown", "and one more that expired", "Visits on Monday", "memory/person/broken.md", "memory/person/novalue.md", h.in("edit/memory/person/broken.md"), h.in("edit/memory/loose.md"), h.in("edit/memory/person/notes.txt")} {
		if !strings.Contains(a.body, s) {
			t.Errorf("the page has no %q", s)
		}
	}
	for _, s := range []string{"<script>alert", "too deep", "no fact"} {
		if strings.Contains(a.body, s) {
			t.Errorf("the page has %q", s)
		}
	}
	if table := a.body[strings.Index(a.body, `id="type-0"`):]; strings.Contains(table, "Visits on Monday") {
		t.Error("an expired fact is among the current ones")
	}
	if a := b.get(h.in("memory?show=expired")); !strings.Contains(a.body, "Visits on Monday") || strings.Contains(a.body, "Ann is") {
		t.Error("expired facts are not apart")
	}
	for q, n := range map[string]string{"q=BOSS+ann": "One fact matches.", "q=ann+tea": "Nothing matches.", "type=preference": "One fact matches.", "q=%3Cscript%3E": "One fact matches.", "type=none": "Nothing matches."} {
		if a := b.get(h.in("memory?%s", q)); !strings.Contains(a.body, n) {
			t.Errorf("%s: not %q", q, n)
		}
	}
	for _, p := range []string{"person/none", "person/deep/ignored", "../../etc/passwd", "person", "person/"} {
		if a := b.get(h.in("memory/fact/%s", p)); a.StatusCode == http.StatusOK {
			t.Errorf("%s is a fact", p)
		}
	}
	want(t, "a damaged one", b.get(h.in("memory/fact/person/broken")), http.StatusUnprocessableEntity)
}

// TestEditorWarnsAboutFilesThatAreNotFacts checks that the editor saves a file under memory/
// that is not a fact, and names it.
func TestEditorWarnsAboutFilesThatAreNotFacts(t *testing.T) {
	h := newHeld(t)
	b := h.as(h.ada)
	for path, warned := range map[string]bool{"memory/tea.md": true, "memory/drink/tea.md": true, "knowledge/tea.md": false} {
		a := b.send(h.in("new"), url.Values{"path": {path}, "text": {"Likes tea"}})
		if got := a.StatusCode == http.StatusOK && strings.Contains(a.body, path); got != warned {
			t.Errorf("%s: status %d, warned %t", path, a.StatusCode, got)
		}
		if got, _ := h.read(path); got != "Likes tea\n" {
			t.Errorf("%s holds %q", path, got)
		}
	}
}

// TestManyFacts checks that a page does not grow with the facts.
func TestManyFacts(t *testing.T) {
	var files []string
	for i := range 2000 {
		files = append(files, fmt.Sprintf("memory/kind%d/k%d.md", i%7, i), fmt.Sprintf("---\nvalue: fact number %d\nsource: inferred\nconfidence: 0.5\nlast_confirmed: 2026-%02d-%02d\n---\n", i, i%12+1, i%28+1))
	}
	h := newHeld(t, files...)
	b := h.as(h.ada)
	seen := map[string]bool{}
	for next := "memory"; next != ""; {
		a := b.get(h.in("%s", next))
		want(t, next, a, http.StatusOK)
		if len(a.body) > 90_000 {
			t.Fatalf("%s has %d bytes", next, len(a.body))
		}
		for _, part := range strings.Split(a.body, "fact number ")[1:] {
			seen[part[:strings.IndexAny(part, "<")]] = true
		}
		next = ""
		if _, after, ok := strings.Cut(a.body, `rel="prev">Back</a>`); ok || strings.Contains(a.body, `Page 1 of`) {
			if !ok {
				after = a.body
			}
			if i := strings.Index(after, `" rel="next"`); i >= 0 {
				href := after[:i]
				next = strings.ReplaceAll(href[strings.LastIndex(href, `"`)+1:], "&amp;", "&")
				next = next[strings.Index(next, "memory"):]
			}
		}
	}
	if len(seen) != 2000 {
		t.Errorf("the pages show %d of 2000 facts", len(seen))
	}
}

func TestCorrectFact(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	page := h.in("memory/fact/person/ann")
	a := b.get(page)
	want(t, "the fact", a, http.StatusOK)
	form := fields(a.body)
	if !strings.Contains(a.body, "Met in 2020.") {
		t.Error("the text under it is not shown")
	}
	for name, tt := range map[string][2]string{"nothing": {"", ""}, "too long": {strings.Repeat("x", 9000), ""}, "no day": {"v", "soon"}, "a day that is over": {"v", "2026-11-01"}, "attack: a day that is more": {"v", "2027-01-01\nx: y"}, "attack: a control character": {"a\x1b[31m", ""}} {
		form.Set("value", tt[0])
		form.Set("expires", tt[1])
		a := b.send(page, form)
		want(t, name, a, http.StatusUnprocessableEntity)
	}
	form.Set("value", "Ann: \"the boss\"\r\n---\r\nsource: imported")
	form.Set("expires", "")
	want(t, "correct", b.send(page, form), http.StatusSeeOther)
	if a := b.get(h.in("memory")); !strings.Contains(a.body, "<bdi>in the browser</bdi>") {
		t.Error("the page does not show that a person confirmed the fact")
	}
	h.holds("memory/person/ann.md", "---\n# who\nvalue: \"Ann: \\\"the boss\\\"\\n---\\nsource: imported\"\nmood: 'kept' # as it is\nconfidence: 1\nsource: user_explicit\nclient: browser\nfirst_seen: 2026-01-05\nlast_confirmed: 2026-11-20\ntool: web\n---\nMet in 2020.\r\n")
	if c := h.last(); c.Message != "Remember person/ann" || c.Tool != "web" {
		t.Errorf("the commit is %+v", c)
	}
	// The version that the page showed no longer exists.
	form.Set("value", "mine")
	a = b.send(page, form)
	want(t, "a stale correction", a, http.StatusConflict)
	if !strings.Contains(a.body, "the boss") || !strings.Contains(a.body, "\nmine</textarea>") {
		t.Error("the page lacks what it says now, or what was typed")
	}
	form = fields(a.body)
	form.Set("value", "mine")
	want(t, "again", b.send(page, form), http.StatusSeeOther)
	if got, _ := h.read("memory/person/ann.md"); !strings.Contains(got, "value: mine\n") {
		t.Errorf("it holds %q", got)
	}
}

func TestConfirmAndForget(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	of := func(name string) url.Values {
		a := b.get(h.in("memory/fact/%s", name))
		want(t, name, a, http.StatusOK)
		f := fields(a.body)
		f.Set("fact", name)
		return f
	}
	form := of("person/ann")
	form.Set("back", "?q=ann&page=1&evil=//x")
	a := b.send(h.in("memory/confirm"), form)
	want(t, "still true", a, http.StatusSeeOther)
	if !strings.Contains(a.location(), h.in("memory?q=ann&commit=")) {
		t.Errorf("it leads to %s", a.location())
	}
	h.holds("memory/person/ann.md", strings.NewReplacer("confidence: 0.6", "confidence: 1", "inferred", "user_explicit", "Claude", "browser", "2026-02-01", "2026-11-20", "2027-01-01\n", "2027-01-01\ntool: web\n").Replace(annFact))
	want(t, "attack: confirm what was not seen", b.send(h.in("memory/confirm"), form), http.StatusConflict)
	want(t, "attack: forget what was not seen", b.send(h.in("memory/forget"), form), http.StatusConflict)

	want(t, "an expired one is true again", b.send(h.in("memory/confirm"), of("person/gone")), http.StatusSeeOther)
	h.holds("memory/person/gone.md", "---\nvalue: Visits on Monday\nsource: user_explicit\nconfidence: 1\nclient: browser\ntool: web\nlast_confirmed: 2026-11-20\n---\n")

	want(t, "forget", b.send(h.in("memory/forget"), of("person/ann")), http.StatusSeeOther)
	h.lacks("memory/person/ann.md")
	if c := h.last(); c.Message != "Forget person/ann" {
		t.Errorf("the commit is %+v", c)
	}
	for _, p := range []string{"person/ann", "../loose", "../../a", "person/deep/ignored", "x", "/"} {
		if a := b.send(h.in("memory/forget"), url.Values{"fact": {p}, "base": {""}}); a.StatusCode != http.StatusNotFound {
			t.Errorf("attack: forget %q: %d", p, a.StatusCode)
		}
	}
}

func TestAddFact(t *testing.T) {
	h := newHeld(t, memories()...)
	b := h.as(h.ada)
	add := func(kind, key, value, expires string) answer {
		return b.send(h.in("memory/new"), url.Values{"type": {kind}, "key": {key}, "value": {value}, "expires": {expires}})
	}
	want(t, "add", add("Preference", "Text editor", "Uses Helix, since 2024", "2027-01-01"), http.StatusSeeOther)
	h.holds("memory/preference/text-editor.md", "---\nvalue: Uses Helix, since 2024\nconfidence: 1\nsource: user_explicit\nclient: browser\ntool: web\nfirst_seen: 2026-11-20\nlast_confirmed: 2026-11-20\nexpires: 2027-01-01\n---\n")
	head := h.head()
	for name, tt := range map[string]struct {
		kind, key, value string
		status           int
	}{
		"one that is there":      {"person", "ann", "v", 409},
		"no value":               {"person", "x", " ", 422},
		"no name":                {"person", "", "v", 422},
		"attack: up":             {"..", "x", "v", 422},
		"attack: up in a name":   {"person", "../../x", "v", 422},
		"attack: git":            {".git", "config", "v", 422},
		"attack: a path":         {"a/b", "x", "v", 422},
		"attack: what is hidden": {"person", "x\u202ey", "v", 422},
	} {
		a := add(tt.kind, tt.key, tt.value, "")
		want(t, name, a, tt.status)
		if problemOf(a.body) == "" {
			t.Errorf("%s: it does not say why", name)
		}
	}
	if h.head() != head {
		t.Error("something was committed")
	}
}
