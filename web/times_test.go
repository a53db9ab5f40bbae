package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

var (
	aTime    = regexp.MustCompile(`\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}\b|\b\d\d:\d\d(?::\d\d)? UTC\b|\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d`)
	aDay     = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	timeJS   = regexp.MustCompile(`^/static/time\.js\?[0-9a-f]+$`)
	shellJS  = regexp.MustCompile(`^/static/shell\.js\?[0-9a-f]+$`)
	jumpAt   = regexp.MustCompile(` data-jump="(/spaces/[^"/]+/jump)"`)
	theFrame = regexp.MustCompile(`script-src(?: ` + regexp.QuoteMeta(issuer) + `/static/(?:browse|search|time|shell)\.js)+(?:; connect-src(?: ` + regexp.QuoteMeta(issuer) + `/spaces/[^/ ]+/(?:tree/|search))?(?: ` + regexp.QuoteMeta(issuer) + `/spaces/[^/ ]+/jump)?)?`)
	// Scripts beside the text of others, each with the address that it asks.
	besideJS = regexp.MustCompile(`^(/static/(?:browse|search)\.js)\?[0-9a-f]+$`)
	asked    = map[string]*regexp.Regexp{
		"/static/browse.js": regexp.MustCompile(` data-load="(/spaces/[^"/]+/tree/)"`),
		"/static/search.js": regexp.MustCompile(` id="search" method="get" action="(/spaces/[^"/]+/search)"`),
	}
)

// writesTimes reports whether an element is the script that converts times.
func writesTimes(n *html.Node) bool {
	return n.Data == "script" && n.FirstChild == nil && timeJS.MatchString(attr(n, "src"))
}

// runsFrame reports whether an element is the script of the frame.
func runsFrame(n *html.Node) bool {
	return n.Data == "script" && n.FirstChild == nil && shellJS.MatchString(attr(n, "src"))
}

// beside returns the address of an element that is a script beside the text of others, such as the
// script of the tree of files, and "" for other elements.
func beside(n *html.Node) string {
	if m := besideJS.FindStringSubmatch(attr(n, "src")); m != nil && n.Data == "script" && n.FirstChild == nil {
		return m[1]
	}
	return ""
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// timesOf returns the elements of a page's times. It checks that each is machine-readable
// and names its zone, and that no time is written in another way.
func timesOf(t *testing.T, who, page string) (out []*html.Node) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	must(t, err)
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			found := aTime.FindString(n.Data)
			if found != "" && !slices.Contains([]string{"time", "pre", "code", "textarea", "bdi", "option"}, n.Parent.Data) {
				t.Errorf("%s: %q is no <time>", who, found)
			}
			continue
		}
		if n.Data != "time" {
			continue
		}
		at, as, text := attr(n, "datetime"), attr(n, "data-as"), ""
		if n.FirstChild != nil {
			text = n.FirstChild.Data
		}
		if aDay.MatchString(at) { // a day that somebody wrote, or under which times stand
			if as != "" || text != at && !strings.HasSuffix(text, " UTC") {
				t.Errorf("%s: the day %q is %q as %q", who, at, text, as)
			}
			continue
		}
		if _, err := time.Parse("2006-01-02T15:04:05Z", at); err != nil {
			t.Errorf("%s: %v", who, err)
		}
		switch {
		case !slices.Contains([]string{"whole", "day", "clock", "ago"}, as):
			t.Errorf("%s: the time %q is written as %q", who, text, as)
		case as == "ago" && !strings.HasSuffix(attr(n, "title"), " UTC"), as != "ago" && !strings.HasSuffix(text, " UTC"):
			t.Errorf("%s: %q does not say its zone", who, text)
		}
		out = append(out, n)
	}
	return out
}

// checkScripts compares the scripts of a page with its policy. If the page only has the
// scripts for times, for the frame, and for the tree or the search, nothing else runs, and they
// reach only names of files and results of searches.
func checkScripts(t *testing.T, who string, a answer) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(a.body))
	must(t, err)
	var times, frame, others bool
	var script string
	for n := range root.Descendants() {
		if n.Data != "script" || n.Type != html.ElementNode {
			continue
		}
		switch {
		case writesTimes(n):
			times = true
		case runsFrame(n):
			frame = true
		case beside(n) != "":
			script = beside(n)
		default:
			others = true
		}
	}
	want := ""
	switch {
	case others:
		want = "script-src 'self'; connect-src 'self'"
	case times || frame:
		want = "script-src"
		var reach string
		if script != "" {
			want += " " + issuer + script
			if m := asked[script].FindStringSubmatch(a.body); m != nil {
				reach += " " + issuer + m[1]
			}
		}
		if times {
			want += " " + issuer + "/static/time.js"
		}
		if frame {
			want += " " + issuer + "/static/shell.js"
		}
		if m := jumpAt.FindStringSubmatch(a.body); m != nil {
			reach += " " + issuer + m[1]
		}
		if reach != "" {
			want += "; connect-src" + reach
		}
	}
	_, got, _ := strings.Cut(a.Header.Get("Content-Security-Policy"), "script-src ")
	if got != strings.TrimPrefix(want, "script-src ") {
		t.Errorf("%s: the policy for scripts is %q, want %q", who, got, want)
	}
	if found := timesOf(t, who, a.body); len(found) > 0 && !times {
		t.Errorf("%s: nothing writes the times of the page", who)
	}
}

// Every page writes times as <time>, with the one function of the templates.
func TestTemplatesPrintTimesInOneWay(t *testing.T) {
	names, err := filepath.Glob("templates/*.html")
	must(t, err)
	subjects, err := filepath.Glob("*/templates/*.html")
	must(t, err)
	names = append(names, subjects...)
	if len(names) < 40 {
		t.Fatalf("there are but %d templates", len(names))
	}
	any := regexp.MustCompile(`<time\b[^>]*>(?:[^<]*</time>)?`)
	// Of a fact, which has days.
	written := `<time datetime="{{.day}}">{{.fact.Day .day}}</time>`
	days := map[string][]string{"fragments.html": {written}, "search.html": {`<time datetime="{{.Machine}}">{{.Date}}</time>`}, "history.html": {`<time datetime="{{.Machine}}">{{.Day}} UTC</time>`}}
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		for _, m := range any.FindAllString(string(text), -1) {
			if !slices.Contains(days[filepath.Base(name)], m) {
				t.Errorf("%s has %s", name, m)
			}
		}
	}
}

func TestTimesOfPages(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	c := a.by("claude-code", "Note the plan", "knowledge/plan.md", "plan\n", "skills/a/SKILL.md", "other\n")
	_, _, err := a.CreateKey(t.Context(), cli, store.NewKey{User: a.ada.ID, Space: a.space.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "backup", Expires: a.clock().AddDate(0, 1, 0)})
	must(t, err)
	b := a.as(a.ada)
	for path, want := range map[string]string{
		"/account": "ago whole", "/account/keys": "day", "/admin": "ago", "/spaces": "ago",
		a.in("activity"): "ago", a.in("reviews"): "whole", a.in("commits/%s", c.ID): "ago",
		a.in("files/"): "ago", a.in("files/knowledge/plan.md"): "ago", a.in("history/"): "clock", a.in("members"): "ago",
	} {
		res := b.get(path)
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, res.StatusCode)
			continue
		}
		checkScripts(t, path, res)
		var forms []string
		for _, n := range timesOf(t, path, res.body) {
			forms = append(forms, attr(n, "data-as"))
		}
		for form := range strings.FieldsSeq(want) {
			if !slices.Contains(forms, form) {
				t.Errorf("%s has the times %q and none as %s", path, forms, form)
			}
		}
	}
}

func TestHowTimesAreWritten(t *testing.T) {
	h := newHeld(t)
	h.commitAs(space.Meta{Message: "Old", Time: h.now.Add(-40 * 24 * time.Hour)}, "old.md", "x")
	h.commitAs(space.Meta{Message: "New", Time: h.now.Add(-2 * time.Hour)}, "new.md", "x")
	b := h.as(h.ada)
	for path, want := range map[string][]string{
		"files/": {
			`<time datetime="2026-11-20T10:00:00Z" data-as="ago" title="2026-11-20 10:00:00 UTC">2 hours ago</time>`,
			`<time datetime="2026-10-11T12:00:00Z" data-as="day" title="2026-10-11 12:00:00 UTC">11 Oct 2026 UTC</time>`,
		},
		"history/":     {`<h2><time datetime="2026-11-20">20 Nov 2026 UTC</time></h2>`, `<time datetime="2026-11-20T10:00:00Z" data-as="clock">10:00 UTC</time>`},
		"commits/HEAD": {`<time datetime="2026-11-20T10:00:00Z" data-as="ago" title="2026-11-20 10:00:00 UTC">2 hours ago</time>`},
	} {
		a := b.get(h.in("%s", strings.ReplaceAll(path, "HEAD", string(h.head()))))
		checkScripts(t, path, a)
		for _, w := range want {
			if !strings.Contains(a.body, w) {
				t.Errorf("%s lacks %s", path, w)
			}
		}
	}
}

// A time that is still to come is written as far away as it is.
func TestHowTimesToComeAreWritten(t *testing.T) {
	f := newFollowed(t)
	f.sync()
	every := int64(2 * 60 * 60)
	in := service.ChangeSyncedSourceInput{ID: "handbook"}
	in.Every = &every
	_, err := f.service.ChangeSyncedSource(t.Context(), service.Operator(), in)
	must(t, err)
	contains(t, "the page", f.as(f.eve).get(handbook).body, ">in 2 hours</time>")
}

// A field for a time or a day says that it is in UTC.
func TestFieldsOfTimesSayTheirZone(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	a.by("claude-code", "Note", "a.md", "x")
	b := a.as(a.ada)
	fields := 0
	for _, path := range []string{"activity", "memory/new"} {
		res := b.get(a.in("%s", path))
		root, err := html.Parse(strings.NewReader(res.body))
		must(t, err)
		for n := range root.Descendants() {
			if n.Data != "input" || !slices.Contains([]string{"datetime-local", "date", "time"}, attr(n, "type")) {
				continue
			}
			fields++
			said := ""
			for id := range strings.FieldsSeq(attr(n, "aria-describedby")) {
				_, text, _ := strings.Cut(res.body, `id="`+id+`">`)
				text, _, _ = strings.Cut(text, "</p>")
				said += text
			}
			if !strings.Contains(said, "UTC") {
				t.Errorf("%s: the field %s says %q", path, attr(n, "id"), said)
			}
		}
	}
	if fields < 4 {
		t.Errorf("there are but %d fields", fields)
	}
}
