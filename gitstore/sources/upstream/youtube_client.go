package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
)

const (
	// maxYouTubePage limits the size of a page. Video and playlist pages have about 2 MB.
	maxYouTubePage = 16 << 20
	// youTubePause is the time between two requests. YouTube throttles clients that
	// send requests faster.
	youTubePause = time.Second
	// webVersionYouTube is the version of the web client to send if a page does not state one.
	webVersionYouTube = "2.20250101.00.00"
	// androidVersion is the version of YouTube's app for Android. Its player returns captions
	// without a browser token.
	androidVersion = "20.10.38"
	maxListPages   = 100
)

// youTubeClient requests pages of YouTube, one at a time.
type youTubeClient struct {
	http    *http.Client
	base    *url.URL
	wait    func(context.Context, time.Duration) error
	now     func() time.Time
	timeout time.Duration
	next    time.Time
	version string // the version of YouTube's web client that a page stated, or webVersionYouTube
}

func newYouTubeClient(y *youTube, env *Env) (*youTubeClient, error) {
	base, err := url.Parse(y.base)
	if err != nil {
		return nil, err
	}
	client := *env.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &youTubeClient{http: &client, base: base, wait: y.wait, now: env.Now, timeout: y.timeout, version: webVersionYouTube}, nil
}

func failed(format string, args ...any) error {
	return &videoError{reason: Failed, cause: fmt.Sprintf(format, args...)}
}

// request fetches an address of YouTube. It sends body as JSON if body is not nil.
func (c *youTubeClient) request(ctx context.Context, address string, body any) ([]byte, error) {
	u, err := c.base.Parse(address)
	if err != nil || u.Host != c.base.Host {
		return nil, failed("YouTube links to %q, which is on another host", address)
	}
	var last error
	redirects := 0
	for tries := 1; tries <= maxTries; {
		if err := c.wait(ctx, c.next.Sub(c.now())); err != nil {
			return nil, err
		}
		a, err := c.once(ctx, u, body)
		c.next = c.now().Add(youTubePause)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			last = failed("%s", err)
		case a.status == http.StatusOK:
			return a.content, refusal(a.content)
		case a.status >= 300 && a.status < 400:
			to, err := u.Parse(a.header.Get("Location"))
			if err != nil || to.Host != u.Host || redirects == maxRedirects {
				return nil, &videoError{reason: Blocked, all: true, cause: "YouTube redirects this server to " + a.header.Get("Location")}
			}
			u = to
			redirects++
			continue
		case a.status == http.StatusTooManyRequests:
			return nil, &videoError{reason: RateLimited, all: true, retry: retryAfter(a.header, c.now()), cause: "YouTube answers 429"}
		case a.status == http.StatusForbidden || a.status == http.StatusUnauthorized:
			return nil, &videoError{reason: Blocked, all: true, cause: fmt.Sprintf("YouTube answers %d", a.status)}
		case a.status == http.StatusNotFound || a.status == http.StatusGone:
			return nil, &videoError{reason: Missing, cause: u.Path}
		case a.status < 500:
			return nil, failed("YouTube answers %d", a.status)
		default:
			last = failed("YouTube answers %d", a.status)
		}
		c.next = c.now().Add(time.Second << tries)
		tries++
	}
	return nil, last
}

// refusal returns an error if the page is a consent form or a CAPTCHA.
func refusal(page []byte) error {
	for _, mark := range []string{`action="https://consent.youtube.com/`, `class="g-recaptcha"`} {
		if bytes.Contains(page, []byte(mark)) {
			return &videoError{reason: Blocked, all: true, cause: "YouTube shows a consent form or a CAPTCHA"}
		}
	}
	return nil
}

func (c *youTubeClient) once(ctx context.Context, u *url.URL, body any) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	method, content := http.MethodGet, io.Reader(nil)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		method, content = http.MethodPost, bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", webAgent)
	req.Header.Set("Accept-Language", "en")
	// This cookie says that only necessary cookies are accepted.
	req.Header.Set("Cookie", "SOCS=CAI")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	a := &answer{url: u, status: res.StatusCode, header: res.Header}
	if a.status != http.StatusOK {
		return a, nil
	}
	if a.content, err = io.ReadAll(io.LimitReader(res.Body, maxYouTubePage+1)); err == nil && len(a.content) > maxYouTubePage {
		err = errTooLarge
	}
	return a, err
}

// dataOf returns the value that a page assigns to a variable of its script, or nil.
func dataOf(page []byte, variable string) *tree {
	for _, mark := range []string{variable + " = ", `window["` + variable + `"] = `} {
		_, rest, found := bytes.Cut(page, []byte(mark))
		if !found {
			continue
		}
		left := maxTreeValues
		if t, err := jsonTree(json.NewDecoder(bytes.NewReader(rest)), maxTreeDepth, &left); err == nil && t.fields != nil {
			return t
		}
	}
	return nil
}

var (
	channelOf = regexp.MustCompile(`(?:"externalId":"|"channelId" content="|youtube\.com/channel/)(UC[A-Za-z0-9_-]{22})"`)
	versionOf = regexp.MustCompile(`"INNERTUBE_CLIENT_VERSION":"([0-9.]+)"`)
)

// list returns the videos of the source. whole is false if only the feed of the newest
// videos could be read.
func (y *youTube) list(ctx context.Context, c *youTubeClient) (videos []video, whole bool, err error) {
	channel, playlist := y.ChannelID, y.Playlist
	if y.Handle != "" {
		page, err := c.request(ctx, "/@"+url.PathEscape(y.Handle), nil)
		if err != nil {
			return nil, false, err
		}
		m := channelOf.FindSubmatch(page)
		if m == nil {
			return nil, false, failed("the page of @%s names no channel", y.Handle)
		}
		channel = string(m[1])
	}
	if channel != "" {
		playlist = "UU" + channel[2:] // the playlist of all videos of the channel
	}
	videos, err = y.playlist(ctx, c, playlist)
	if err == nil {
		return videos, true, nil
	}
	if ctx.Err() != nil {
		return nil, false, err
	}
	if newest, feedErr := feedVideos(ctx, c, playlist); feedErr == nil && len(newest) > 0 {
		return newest[:min(len(newest), y.MaxVideos)], false, nil
	}
	return nil, false, err
}

// playlist reads the page of a playlist, which has up to 100 videos, and loads the rest with
// continuation requests.
func (y *youTube) playlist(ctx context.Context, c *youTubeClient, id string) ([]video, error) {
	page, err := c.request(ctx, "/playlist?hl=en&list="+url.QueryEscape(id), nil)
	if err != nil {
		return nil, err
	}
	if m := versionOf.FindSubmatch(page); m != nil {
		c.version = string(m[1])
	}
	data := dataOf(page, "ytInitialData")
	var videos []video
	seen := map[string]bool{}
	for range maxListPages {
		before := len(videos)
		videos = appendVideos(videos, seen, data)
		more := ""
		data.each("continuationItemRenderer", func(t *tree) {
			t.each("continuationCommand", func(t *tree) { more = t.str("token") })
		})
		if more == "" || len(videos) == before || len(videos) >= y.MaxVideos {
			break
		}
		answer, err := c.request(ctx, "/youtubei/v1/browse?prettyPrint=false", map[string]any{
			"context": map[string]any{"client": map[string]string{"clientName": "WEB", "clientVersion": c.version, "hl": "en"}}, "continuation": more,
		})
		if err != nil {
			return nil, err
		}
		if data, err = parseTree(answer); err != nil {
			return nil, failed("the list of videos cannot be read: %s", err)
		}
	}
	if len(videos) == 0 {
		text := ""
		data.each("alertRenderer", func(t *tree) { text = cmp.Or(text, t.str("text", "simpleText"), t.str("type")) })
		if text != "" {
			return nil, &videoError{reason: Missing, cause: text}
		}
		return nil, failed("the page of the playlist lists no videos")
	}
	return videos[:min(len(videos), y.MaxVideos)], nil
}

// appendVideos adds the videos in a part of a page. YouTube uses two formats for a video.
func appendVideos(videos []video, seen map[string]bool, data *tree) []video {
	add := func(v video) {
		if isID(v.id, 11, 11) && !seen[v.id] {
			seen[v.id] = true
			videos = append(videos, v)
		}
	}
	runs := func(t *tree) string {
		var text strings.Builder
		for _, r := range t.list("runs") {
			text.WriteString(r.str("text"))
		}
		return cmp.Or(text.String(), t.str("simpleText"))
	}
	data.each("playlistVideoRenderer", func(t *tree) {
		seconds, _ := time.ParseDuration(t.str("lengthSeconds") + "s") // a live video has no length
		add(video{id: t.str("videoId"), title: runs(t.get("title")), channel: runs(t.get("shortBylineText")), length: seconds})
	})
	data.each("lockupViewModel", func(t *tree) {
		add(video{id: t.str("contentId"), title: t.str("metadata", "lockupMetadataViewModel", "title", "content")})
	})
	return videos
}

// feedVideos returns the videos in the feed of a playlist, which are the 15 newest.
func feedVideos(ctx context.Context, c *youTubeClient, playlist string) ([]video, error) {
	content, err := c.request(ctx, "/feeds/videos.xml?playlist_id="+url.QueryEscape(playlist), nil)
	if err == nil {
		_, err = shallow(content, maxFeedDepth)
	}
	if err != nil {
		return nil, err
	}
	feed, err := gofeed.NewParser().Parse(bytes.NewReader(content))
	if err != nil {
		return nil, failed("the feed cannot be read: %s", err)
	}
	var videos []video
	for _, e := range feed.Items {
		v := video{id: strings.TrimPrefix(e.GUID, "yt:video:"), title: e.Title}
		if e.PublishedParsed != nil {
			v.published = e.PublishedParsed.UTC()
		}
		if len(e.Authors) > 0 {
			v.channel = e.Authors[0].Name
		}
		if isID(v.id, 11, 11) {
			videos = append(videos, v)
		}
	}
	return videos, nil
}
