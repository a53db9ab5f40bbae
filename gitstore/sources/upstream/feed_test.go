package upstream_test

import (
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
)

// A source has the newest entries of RSS, Atom and JSON feeds, and keeps those that the feed drops.
func TestFeedKeepsWhatTheFeedDrops(t *testing.T) {
	var body string
	env, u, address := newDocument(t, "feed", `, "max_entries": 3`, &body)
	s, site := &sink{}, strings.TrimSuffix(address, "/v1/document")
	rss := `<rss version="2.0"><channel><item><title>A</title><link>/a</link><pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate><description>` +
		`&lt;p&gt;See &lt;a href="b"&gt;B&lt;/a&gt;.&lt;/p&gt;</description></item><item><title>Old</title><link>/old</link><pubDate>Sun, 01 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>`
	for i, step := range []struct {
		body      string
		paths     []string
		put, kept int
	}{
		{rss, []string{"2026-11-01-old.md", "2026-11-02-a.md"}, 2, 0},
		{rss, []string{"2026-11-01-old.md", "2026-11-02-a.md"}, 0, 2},
		{`<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>A!</title><link href="/a"/><updated>2026-11-02T10:00:00Z</updated></entry>` +
			`<entry><title>A</title><link href="/c"/><updated>2026-11-02T11:00:00Z</updated></entry></feed>`, []string{"2026-11-01-old.md", "2026-11-02-a-", "2026-11-02-a.md"}, 2, 1},
		{`{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "url": "/d", "title": "D", "content_html": "<b>D</b>", "date_published": "2026-11-03T00:00:00Z"}]}`,
			[]string{"2026-11-02-a-", "2026-11-02-a.md", "2026-11-03-d.md"}, 1, 2},
	} {
		body = step.body
		state := sync(t, env, u, s)
		if now, err := u.Check(t.Context(), env); err != nil || now != state {
			t.Errorf("step %d: fetched %q, check finds %q, %v", i, state, now, err)
		}
		if got := s.paths(); !slices.EqualFunc(got, step.paths, strings.HasPrefix) || s.put != step.put || s.kept != step.kept {
			t.Errorf("step %d: %q, %d new, %d kept", i, got, s.put, s.kept)
		}
		want := "---\ntitle: \"A\"\ndate: \"2026-11-02T10:00:00Z\"\nurl: \"" + site + "/a\"\n---\n\n# A\n\nSee [B](" + site + "/b).\n"
		if got := s.content["2026-11-02-a.md"]; i < 2 && got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, body = range []string{"<html><body>no</body></html>", "", "<rss><channel>" + strings.Repeat("<a:b>", 200) + strings.Repeat("</a:b>", 200) + "</channel></rss>"} {
		if _, err := u.Fetch(t.Context(), env, s); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%.30q gives %v", body, err)
		}
	}
}
