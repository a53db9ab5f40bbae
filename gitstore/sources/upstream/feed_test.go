package upstream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/sources/upstream"
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

// Of a feed with more entries than the source has, the newest become pages, wherever they are in the
// feed. The others are counted.
func TestLargeFeed(t *testing.T) {
	const entries = 5000
	day := func(i int) time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i) }
	var text strings.Builder
	text.WriteString(`<rss version="2.0"><channel>`)
	for i := range entries {
		fmt.Fprintf(&text, "<item><link>/%d</link><pubDate>%s</pubDate></item>", i, day(i).Format(time.RFC1123Z))
	}
	text.WriteString("</channel></rss>")
	body := text.String()
	env, u, address := newDocument(t, "feed", `, "max_entries": 2`, &body)
	s := &sink{}
	sync(t, env, u, s)
	site, want := strings.TrimSuffix(address, "/v1/document"), []string{}
	for i := entries - 2; i < entries; i++ {
		want = append(want, fmt.Sprintf("%s/%d", site, i))
	}
	var got []string
	for _, p := range s.paths() {
		got = append(got, s.files[p].URL)
	}
	if !slices.Equal(got, want) || len(s.skipped) != entries-2 || s.skipped[site+"/0"] != upstream.TooMany {
		t.Errorf("it has %q, and %d entries are left out", got, len(s.skipped))
	}
	sync(t, env, u, s)
	if s.kept != 2 || s.put != 0 {
		t.Errorf("the same feed: %d kept, %d new", s.kept, s.put)
	}
	for _, body = range []string{
		`<rss version="2.0"><channel>` + strings.Repeat("<item/>", 20_001) + "</channel></rss>",
		`{"version": "https://jsonfeed.org/version/1.1", "items": [{}` + strings.Repeat(",{}", 20_000) + "]}",
		"\n" + `{"version": "https://jsonfeed.org/version/1.1", "items": [{}` + strings.Repeat(",{}", 20_000) + "]}",
	} {
		if _, err := u.Fetch(t.Context(), env, s); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("%.20q: %v", body, err)
		}
	}
}
