package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// There is no button that shows the same again.
func TestMoreResultsAreOfferedWhereThereAreMore(t *testing.T) {
	var files []string
	for i := range 30 {
		files = append(files, fmt.Sprintf("knowledge/p%02d.md", i), fmt.Sprintf("# Page %d\n\nOf pumps, number%d and %s.\n", i, i, strings.Repeat(fmt.Sprint("word", i, " "), i+1)))
	}
	ropes := "# Ropes\n\nA deploy of the ropes takes four people, two of them on the mast, a calm sea and as much patience as there is on board.\n"
	h := newHeld(t, append(files, "a/ropes.md", ropes, "b/ropes.md", ropes)...).indexed()
	b := h.as(h.bob)
	a := b.get(h.in("search?q=ropes"))
	contains(t, "a page and its copy", a.body, ">1 result ·", "The same is in")
	lacks(t, "a page and its copy", a.body, "Show more results")
	a = b.get(h.in("search?q=pumps"))
	contains(t, "thirty pages", a.body, "The best 20 of 30 results", "Show more results")
	a = b.get(h.in("search?q=pumps&more"))
	contains(t, "all thirty", a.body, "30 results,")
	lacks(t, "all thirty", a.body, "Show more results")
}

// The link under the results explains the order, and the explanation has no such link.
func TestSearchExplainsItsOrder(t *testing.T) {
	h := newHeld(t, "knowledge/pumps.md", "# Pumps\n\nHow pumps work.\n", "knowledge/ropes.md", "# Ropes\n\nNo pumps.\n").indexed()
	b := h.as(h.bob)
	a := b.get(h.in("search?q=pumps"))
	contains(t, "a search", a.body, h.in("search?why&amp;q=pumps"))
	lacks(t, "a search", a.body, "<table>")
	a = b.get(h.in("search?why&q=pumps"))
	contains(t, "an explanation", a.body, "<bdi>pumps</bdi>", "in the title", "in the text")
	lacks(t, "an explanation", a.body, "search?why")
}

func TestSearchShowsTheFactThatItFinds(t *testing.T) {
	h := newHeld(t, "memory/person/work.md", "---\nvalue: Is a baker in Leeds <b>\nconfidence: 1\nsource: user_explicit\n---\n",
		"memory/person/bob.md", "---\nvalue: \"Bob: the boss, a baker too\"\n---\nMet in 2020.\n", "knowledge/x.md", "---\nvalue: tucked away\n---\nA baker of pages.\n").indexed()
	a := h.as(h.bob).get(h.in("search?q=baker"))
	contains(t, "a search", a.body, "<p>Is a <mark>baker</mark> in Leeds &lt;b&gt;</p>", "<p>Bob: the boss, a <mark>baker</mark> too Met in 2020.</p>", "<p>A <mark>baker</mark> of pages.</p>")
	lacks(t, "a search", a.body, "user_explicit", "tucked away")
}

func TestSearchShowsWhatAIsFind(t *testing.T) {
	h := newHeld(t, "knowledge/deploy.md", "# Deploying\n\nHow we ship.\n\n## Rolling back a release\n\nCall the pager, then roll the release back by hand.\n",
		"knowledge/other.md", "# Cooking\n\nSoup.\n", "evil.md", "# <script>alert(1)</script>\n\nA pager of <img src=x onerror=alert(1)> evil.\n").indexed()
	b := h.as(h.bob)
	a := b.get(h.in("search?q=%s", url.QueryEscape("rolling back release")))
	want(t, "a search", a, http.StatusOK)
	for _, w := range []string{h.in("files/knowledge/deploy.md"), "<mark>release</mark>", `value="rolling back release"`} {
		if !strings.Contains(a.body, w) {
			t.Errorf("the page lacks %q: %s", w, a.body)
		}
	}
	if strings.Contains(a.body, "Cooking") {
		t.Error("what is about something else is found")
	}
	a = b.get(h.in("search?q=pager"))
	if strings.Contains(a.body, "<img src=x") || strings.Contains(a.body, "<script>alert") {
		t.Errorf("what was found is no text: %s", a.body)
	}
	a = b.get(h.in("search?q=%s", url.QueryEscape(`"><script>alert(1)</script>`)))
	if strings.Contains(a.body, "<script>alert") {
		t.Error("the query is no text")
	}
	want(t, "nothing asked", b.get(h.in("search")), http.StatusOK)
	want(t, "nonsense", b.get(h.in("search?q=%s", url.QueryEscape("\xff\x00 kind:?? \"( since:never"))), http.StatusOK)
	want(t, "a long query", b.get(h.in("search?q=%s", strings.Repeat("long+", 3000))), http.StatusOK)
	a = b.get(h.in("search?q=soup&under=knowledge"))
	if !strings.Contains(a.body, "path:&#34;knowledge/**&#34;") || !strings.Contains(a.body, "Cooking") {
		t.Errorf("a search in a directory: %s", a.body)
	}
}
