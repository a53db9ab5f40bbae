package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"satchel/gitstore/sources/htmlmark"
	"satchel/internal/fault"
)

// feed is an RSS, Atom or JSON feed. Its entries become pages, which stay when the feed drops them.
type feed struct {
	URL        string `json:"url"`
	MaxEntries int    `json:"max_entries,omitempty"` // the source keeps this many of the newest entries
}

const (
	maxFeedBytes = 8 << 20
	maxFeedDepth = 100
	// maxFeedEntries limits the entries of the document. The parser needs some kilobytes for each.
	maxFeedEntries = 20_000
)

func recognizeFeed(u *url.URL) Upstream {
	if slices.Contains([]string{"feed", "feed.xml", "feed.json", "rss", "rss.xml", "atom.xml"}, path.Base(u.Path)) {
		return &feed{URL: u.String()}
	}
	return nil
}

func (f *feed) Validate() (err error) {
	if f.URL, err = address(f.URL); err != nil {
		return err
	}
	return count(&f.MaxEntries, "max_entries", 500, 10_000)
}

func (f *feed) Check(ctx context.Context, env *Env) (State, error) {
	return documentState(ctx, env, f.URL, maxFeedBytes)
}

// Fetch gives the newest entries to the sink. It chooses them from the entries of the feed and from
// the entries that only the source still has.
func (f *feed) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	a, err := document(ctx, env, f.URL, maxFeedBytes)
	if err != nil {
		return "", err
	}
	n, err := countEntries(a.content)
	if n > maxFeedEntries {
		return "", fault.New(fault.TooLarge, "The feed has more than %d entries, which is the limit. Choose another address of the site.", maxFeedEntries).In("url")
	}
	var parsed *gofeed.Feed
	if err == nil {
		parsed, err = gofeed.NewParser().Parse(bytes.NewReader(a.content))
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "%s is not an RSS, Atom or JSON feed that can be read.", f.URL).In("url")
	}
	old, taken := oldFiles(sink)
	entries := f.entries(parsed, a.url, old, env.Now())
	newest := entries[:min(len(entries), f.MaxEntries)]
	sink.Expect(len(newest))
	for _, e := range newest {
		if e.item == nil {
			err = sink.Keep(ctx, e.File)
		} else {
			if e.Path == "" {
				e.Path = freePath(taken, e.Changed.Format(time.DateOnly)+"-"+safeName(strings.ToLower(e.Title)), ".md", e.URL)
			}
			err = give(ctx, env, sink, e.File, e.page())
		}
		if err != nil {
			return "", err
		}
	}
	for _, e := range entries[len(newest):] {
		// An entry with a path has a file, which the sync removes because the sink does not get it.
		// Only the other entries are reported as skipped.
		if e.Path == "" {
			if err := sink.Skip(ctx, e.URL, TooMany); err != nil {
				return "", err
			}
		}
	}
	return stateOf(a), nil
}

// countEntries counts the entries of a feed, before the parser reads them into memory. The error
// says that the document is damaged or nested too deeply.
func countEntries(content []byte) (int, error) {
	content = bytes.TrimLeft(content, " \t\r\n\ufeff") // as the parser does
	if !bytes.HasPrefix(content, []byte("{")) {
		return shallow(content, maxFeedDepth, "item", "entry")
	}
	var doc struct {
		Items []json.RawMessage `json:"items"`
	}
	err := json.Unmarshal(content, &doc)
	return len(doc.Items), err
}

// entry is an entry of a feed with its file. item is nil if only the source still has the entry.
type entry struct {
	File
	item *gofeed.Item
	at   *url.URL
	date time.Time // zero if the feed states none
}

// entries returns the entries of a feed and of the source, the newest first. An entry that the
// source has keeps its path.
func (f *feed) entries(parsed *gofeed.Feed, base *url.URL, old map[string]File, now time.Time) []entry {
	var out []entry
	seen := map[string]bool{}
	for _, item := range parsed.Items {
		at, err := base.Parse(cmp.Or(item.Link, "#"+url.PathEscape(item.GUID)))
		if err != nil || seen[at.String()] {
			continue
		}
		e := entry{old[at.String()], item, at, cmp.Or(item.PublishedParsed, item.UpdatedParsed, &time.Time{}).UTC()}
		e.URL, e.Title = at.String(), cmp.Or(oneLine(item.Title), at.String())
		e.Changed = cmp.Or(e.date, e.Changed, now)
		seen[e.URL] = true
		out = append(out, e)
	}
	for _, left := range old {
		if !seen[left.URL] {
			out = append(out, entry{File: left})
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int { return b.Changed.Compare(a.Changed) })
	return out
}

// page returns the Markdown of an entry.
func (e entry) page() []byte {
	page, _ := htmlmark.Convert([]byte("<main>"+cmp.Or(e.item.Content, e.item.Description)+"</main>"), "text/html; charset=utf-8", e.at,
		(*url.URL).String) // if Convert fails for lack of text, the page still has a title and a link
	return slices.Concat(frontMatter([2]string{"title", e.Title}, [2]string{"date", dateText(e.date)}, [2]string{"url", e.URL}),
		[]byte("# "+e.Title+"\n\n"), page.Markdown)
}
