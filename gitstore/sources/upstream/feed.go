package upstream

import (
	"bytes"
	"cmp"
	"context"
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
	MaxEntries int    `json:"max_entries,omitempty"` // the newest stay
}

const (
	maxFeedBytes = 8 << 20
	maxFeedDepth = 100
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

// Fetch gives the newest of the entries and of the files that the source has.
func (f *feed) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	a, err := document(ctx, env, f.URL, maxFeedBytes)
	if err != nil {
		return "", err
	}
	var parsed *gofeed.Feed
	if err = shallow(a.content, maxFeedDepth); err == nil || a.content[0] == '{' {
		parsed, err = gofeed.NewParser().Parse(bytes.NewReader(a.content))
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "%s is not an RSS, Atom or JSON feed that can be read.", f.URL).In("url")
	}
	old, taken := oldFiles(sink)
	var files []File
	content := map[string][]byte{}
	for _, e := range parsed.Items {
		at, err := a.url.Parse(cmp.Or(e.Link, "#"+url.PathEscape(e.GUID)))
		if err != nil || content[at.String()] != nil {
			continue
		}
		file := old[at.String()]
		file.URL, file.Title = at.String(), cmp.Or(strings.Join(strings.Fields(e.Title), " "), at.String())
		date := cmp.Or(e.PublishedParsed, e.UpdatedParsed, &time.Time{}).UTC()
		file.Changed = cmp.Or(date, file.Changed, env.Now())
		if file.Path == "" {
			file.Path = freePath(taken, file.Changed.Format(time.DateOnly)+"-"+safeName(strings.ToLower(file.Title)), ".md", file.URL)
		}
		page, _ := htmlmark.Convert([]byte("<main>"+cmp.Or(e.Content, e.Description)+"</main>"), "text/html; charset=utf-8", at,
			(*url.URL).String) // an entry without text still has a title and a link
		content[file.URL] = slices.Concat(frontMatter([2]string{"title", file.Title}, [2]string{"date", dateText(date)}, [2]string{"url", file.URL}),
			[]byte("# "+file.Title+"\n\n"), page.Markdown)
		files = append(files, file)
		delete(old, file.URL)
	}
	for _, left := range old {
		files = append(files, left)
	}
	slices.SortStableFunc(files, func(a, b File) int { return b.Changed.Compare(a.Changed) })
	files = files[:min(len(files), f.MaxEntries)]
	sink.Expect(len(files))
	for _, file := range files {
		if text, ok := content[file.URL]; ok {
			err = give(ctx, env, sink, file, text)
		} else {
			err = sink.Keep(ctx, file)
		}
		if err != nil {
			return "", err
		}
	}
	return stateOf(a), nil
}
