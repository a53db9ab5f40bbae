package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
)

var backForm = regexp.MustCompile(`(?s)<form[^>]* method="post" action="([^"]+/restore)">(.*?)</form>`)

// backs returns the forms of a page that restore a version.
func backs(body string) []url.Values {
	var out []url.Values
	for _, m := range backForm.FindAllStringSubmatch(body, -1) {
		if strings.Contains(m[2], "Restore") {
			f := fields(m[2])
			f.Del("form")
			out = append(out, f)
		}
	}
	return out
}

// TestBringBack checks that a version can be restored from its page, from the history of
// its file, and if the file is gone.
func TestBringBack(t *testing.T) {
	h := newHeld(t, "n/a b.md", "one\n")
	first := h.head()
	h.commit("Two", "n/a b.md", "two\n")
	b, at := h.as(h.ada), h.in("files/n/a%%20b.md")
	restore := func(where string, a answer, nth int, text string) {
		t.Helper()
		forms := backs(a.body)
		if len(forms) != nth+1 {
			t.Fatalf("%s has %d forms: %s", where, len(forms), a.body)
		}
		res := b.send(h.in("restore"), forms[nth])
		if res.StatusCode != http.StatusSeeOther || res.location() != issuer+at+"?done=restored" {
			t.Fatalf("%s: %d %s", where, res.StatusCode, res.location())
		}
		h.holds("n/a b.md", text)
		if page := b.get(at + "?done=restored"); !strings.Contains(page.body, `role="status">The version was restored`) {
			t.Errorf("%s: the page does not say so", where)
		}
	}
	restore("the page of the version", b.get(at+"?at="+string(first)), 0, "one\n")
	restore("the history", b.get(h.in("history/n/a%%20b.md")), 0, "two\n") // the other rows are as it is now
	gone := h.commit("Take it away", "n/a b.md", "\x00")
	for name, body := range map[string]string{"the newest": b.get(at).body, "a reader": h.as(h.bob).get(at + "?at=" + string(first)).body, "a reader's history": h.as(h.bob).get(h.in("history/n/a%%20b.md")).body, "a reader's gone file": h.as(h.bob).get(at).body} {
		if n := len(backs(body)); n != 0 && name != "the newest" || name == "the newest" && n != 1 {
			t.Errorf("%s is offered %d", name, n)
		}
	}
	a := b.get(h.in("history/n/a%%20b.md"))
	if strings.Contains(a.body, "a%20b.md?at="+string(gone.ID)) {
		t.Error("a version leads to where nothing is")
	}
	restore("the page of what is gone", b.get(at), 0, "two\n")
	if a := b.get(at + "?at=" + string(h.head())); len(backs(a.body)) != 0 || strings.Contains(a.body, "Compare with the current version") {
		t.Error("what is there now is offered to be brought back")
	}
}

// TestCompareVersions compares two versions of a history, or one with the current version,
// without a script.
func TestCompareVersions(t *testing.T) {
	h := newHeld(t, "a.md", "one\n", "b.md", "b\n")
	first := h.head()
	second := h.commit("Two", "a.md", "two\n").ID
	third := h.commit("Three", "a.md", "three\n", "b.md", "c\n").ID
	b := h.as(h.ada)
	a := b.get(h.in("history/a.md?compare=1"))
	for _, w := range []string{
		`id="versus" method="get" action="` + h.in("compare") + `"`, `name="path" value="a.md"`,
		`<input type="radio" name="from" value="` + string(second) + `" form="versus" checked>`,
		`<input type="radio" name="to" value="` + string(third) + `" form="versus" checked>`,
		`<input type="radio" name="from" value="` + string(first) + `" form="versus">`,
	} {
		if !strings.Contains(a.body, w) {
			t.Errorf("the history lacks %s", w)
		}
	}
	a = b.get(h.in("compare?path=a.md&from=%s&to=%s", first, third))
	if !strings.Contains(a.body, "1 file changed") || !strings.Contains(a.body, "<code>one</code>") {
		t.Errorf("two versions: %s", a.body)
	}
	a = b.get(h.in("files/a.md?at=%s", second))
	m := regexp.MustCompile(`href="([^"]+)">Compare with the current version`).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("a version is not compared: %s", a.body)
	}
	a = b.get(html.UnescapeString(m[1]))
	want(t, "with now", a, http.StatusOK)
	if !strings.Contains(a.body, "1 file changed") || !strings.Contains(a.body, "<bdi>Three</bdi>") {
		t.Errorf("with now: %s", a.body)
	}
	if a := b.get(h.in("history/?compare=1")); !strings.Contains(a.body, `id="versus"`) || strings.Contains(a.body, `name="path"`) {
		t.Error("the history of everything has no comparison of everything")
	}
	if a := b.get(h.in("history/b.md?compare=1&at=%s", first)); strings.Contains(a.body, `id="versus"`) {
		t.Error("one version is compared")
	}
}

// TestClocks checks that no two versions on a page have the same name.
func TestClocks(t *testing.T) {
	h := newHeld(t)
	start := h.now
	var ids []space.CommitID
	for i, after := range []time.Duration{0, time.Hour, time.Hour + 20*time.Second, 2 * time.Hour, 2 * time.Hour, 24 * time.Hour} {
		c := h.commitAs(space.Meta{Message: fmt.Sprint("C", i), Time: start.Add(after)}, "a.md", fmt.Sprint(i))
		ids = append(ids, c.ID)
	}
	a := h.as(h.ada).get(h.in("history/a.md"))
	body := regexp.MustCompile(`</?time[^>]*>`).ReplaceAllString(a.body, "")
	for _, w := range []string{"View<span class=\"wide\"> this version</span><span class=\"unseen\"> of 12:00 UTC<", "of 13:00 UTC (" + ids[1].Short() + ")<", "of 13:00 UTC (" + ids[2].Short() + ")<", "of 14:00 UTC (" + ids[3].Short() + ")<", "of 14:00 UTC (" + ids[4].Short() + ")<"} {
		if !strings.Contains(body, w) {
			t.Errorf("no %s", w)
		}
	}
}

// TestWhatWasDone checks that an address can name what was done only with a known word.
func TestWhatWasDone(t *testing.T) {
	h := newHeld(t, "d/a.md", "a\n", "d/b.md", "b\n")
	b := h.as(h.ada)
	for _, tt := range []struct {
		name, says string
		do         func() answer
	}{
		{"upload", "The files were uploaded.", func() answer { return b.upload(h, url.Values{"dir": {"d"}}, "c.md", "c") }},
		{"move", "The file was moved.", func() answer {
			return b.send(h.in("rename/d/a.md"), url.Values{"at": {string(h.head())}, "to": {"d/z.md"}})
		}},
		{"delete", "The file was deleted.", func() answer { return b.send(h.in("delete/d/b.md"), url.Values{"at": {string(h.head())}}) }},
	} {
		a := tt.do()
		want(t, tt.name, a, http.StatusSeeOther)
		page := b.get(strings.TrimPrefix(a.location(), issuer))
		want(t, tt.name, page, http.StatusOK)
		if !strings.Contains(page.body, `role="status">`+tt.says) {
			t.Errorf("%s: %s does not say so", tt.name, a.location())
		}
	}
	// Attack: an address with another text.
	for _, q := range []string{"done=Call+this+number", "done=<b>x</b>", "done=", "done=uploaded2"} {
		if page := b.get(h.in("files/?%s", q)); strings.Contains(page.body, `role="status"`) || strings.Contains(page.body, "Call this number") {
			t.Errorf("%s is shown", q)
		}
	}
}

// TestMadeInBrowser checks that changes by people are shown as such, and not under the
// client name in their commits.
func TestMadeInBrowser(t *testing.T) {
	h := newHeld(t)
	c := h.commitAs(space.Meta{Author: space.Person{Name: "Ada"}, Message: "By hand", Tool: "web", Client: "browser", Time: h.now}, "a.md", "a\n")
	b := h.as(h.ada)
	for _, p := range []string{"files/a.md", "history/a.md", "commits/" + string(c.ID)} {
		a := b.get(h.in("%s", p))
		if !strings.Contains(a.body, "in the browser") || strings.Contains(a.body, "<bdi>browser") {
			t.Errorf("%s says otherwise", p)
		}
	}
}
