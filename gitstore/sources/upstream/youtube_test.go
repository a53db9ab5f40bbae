package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/testenv"
)

const fakeChannel = "UC0123456789abcdefghijkl"

// fakeVideo is a video of fakeYouTube. Its answers fill the fields that a test sets.
type fakeVideo struct {
	id, title, text string
	status, reason  string // of the player
	captionless     bool
	needsApp        bool // the captions of the web page are empty
	empty           bool // all captions are empty
}

// fakeYouTube behaves as YouTube does: a page of a list has two videos, and the next ones come by
// a continuation. A visitor without a cookie must consent.
type fakeYouTube struct {
	site *httptest.Server
	mu   sync.Mutex
	// videos are the newest first.
	videos []fakeVideo
	asked  []string
	// answers replaces the answer to a path by a status, or by a page.
	answers map[string]string
}

func newFakeYouTube(t *testing.T) *fakeYouTube {
	y := &fakeYouTube{answers: map[string]string{}}
	y.site = httptest.NewServer(y)
	t.Cleanup(y.site.Close)
	return y
}

func (y *fakeYouTube) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.asked = append(y.asked, r.URL.Path)
	if answer, ok := y.answers[r.URL.Path]; ok {
		var status int
		if _, err := fmt.Sscanf(answer, "%d", &status); err == nil {
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, answer)
		return
	}
	if c, err := r.Cookie("SOCS"); err != nil || c.Value == "" {
		http.Redirect(w, r, "https://consent.youtube.com/m?continue=x", http.StatusFound)
		return
	}
	var body struct {
		Continuation, VideoID string
		Context               struct {
			Client struct{ ClientName, ClientVersion string }
		}
	}
	if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := cmp.Or(r.URL.Query().Get("v"), body.VideoID)
	i := slices.IndexFunc(y.videos, func(v fakeVideo) bool { return v.id == id })
	script := func(variable string, value any) {
		fmt.Fprintf(w, `<html><script>ytcfg.set({"INNERTUBE_CLIENT_VERSION":"2.1"});var %s = %s;var more = {};</script></html>`, variable, asJSON(value))
	}
	switch r.URL.Path {
	case "/@golang":
		_, _ = io.WriteString(w, `{"metadata":{"externalId":"`+fakeChannel+`"}}`)
	case "/playlist":
		script("ytInitialData", map[string]any{"contents": y.page(0)})
	case "/youtubei/v1/browse":
		if body.Context.Client.ClientVersion != "2.1" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var from int
		_, _ = fmt.Sscanf(body.Continuation, "from%d", &from)
		_, _ = io.WriteString(w, asJSON(map[string]any{"onResponseReceivedActions": y.page(from)}))
	case "/watch":
		if i < 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		script("ytInitialPlayerResponse", y.player(y.videos[i], ""))
	case "/youtubei/v1/player":
		_, _ = io.WriteString(w, asJSON(y.player(y.videos[i], "&c="+body.Context.Client.ClientName)))
	case "/api/timedtext":
		v := y.videos[i]
		if v.empty || v.needsApp && r.URL.Query().Get("c") != "ANDROID" {
			return
		}
		_, _ = io.WriteString(w, asJSON(map[string]any{"events": []any{
			map[string]any{"tStartMs": 0, "segs": []any{map[string]string{"utf8": v.text}}},
			map[string]any{"tStartMs": 61000, "segs": []any{map[string]string{"utf8": "The end."}}},
		}}))
	case "/feeds/videos.xml":
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom">`)
		for _, v := range y.videos[:1] {
			fmt.Fprintf(w, `<entry><id>yt:video:%s</id><title>%s</title><author><name>Go: the channel</name></author><published>2026-01-02T00:00:00Z</published></entry>`, v.id, v.title)
		}
		_, _ = io.WriteString(w, `</feed>`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// page returns two videos of the list in YouTube's two forms, and the continuation.
func (y *fakeYouTube) page(from int) []any {
	var items []any
	for i, v := range y.videos[from:min(from+2, len(y.videos))] {
		if i == 0 {
			items = append(items, map[string]any{"playlistVideoRenderer": map[string]any{
				"videoId": v.id, "title": map[string]any{"runs": []any{map[string]string{"text": v.title}}}, "lengthSeconds": "75"}})
		} else {
			items = append(items, map[string]any{"lockupViewModel": map[string]any{
				"contentId": v.id, "metadata": map[string]any{"lockupMetadataViewModel": map[string]any{"title": map[string]string{"content": v.title}}}}})
		}
	}
	if from+2 < len(y.videos) {
		items = append(items, map[string]any{"continuationItemRenderer": map[string]any{"continuationEndpoint": map[string]any{
			"continuationCommand": map[string]string{"token": fmt.Sprintf("from%d", from+2)}}}})
	}
	return []any{map[string]any{"list": items}}
}

func (y *fakeYouTube) player(v fakeVideo, more string) any {
	p := map[string]any{
		"playabilityStatus": map[string]string{"status": cmp.Or(v.status, "OK"), "reason": v.reason},
		"videoDetails":      map[string]string{"title": v.title, "author": "Go: the channel", "lengthSeconds": "75"},
		"microformat":       map[string]any{"playerMicroformatRenderer": map[string]string{"publishDate": "2026-01-02T10:00:00-08:00"}},
	}
	if v.status == "" && !v.captionless {
		p["captions"] = map[string]any{"playerCaptionsTracklistRenderer": map[string]any{"captionTracks": []any{
			map[string]string{"baseUrl": y.site.URL + "/api/timedtext?v=" + v.id + "&lang=en" + more, "languageCode": "en", "kind": "asr"}}}}
	}
	return p
}

// youTubeWorld syncs a channel of fakeYouTube.
type youTubeWorld struct {
	*fakeYouTube
	t    *testing.T
	up   *youTube
	env  *Env
	sink *webSink
	// reset fetches every file again.
	reset bool
}

func newYouTubeWorld(t *testing.T, settings string) *youTubeWorld {
	w := &youTubeWorld{t: t, fakeYouTube: newFakeYouTube(t), sink: &webSink{content: map[string]string{}}}
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	w.env = &Env{HTTP: w.site.Client(), Scratch: t.TempDir(), MaxFileBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	u, err := Open("youtube", []byte(settings))
	if err != nil {
		t.Fatal(err)
	}
	w.up = u.(*youTube)
	w.up.base, w.up.timeout = w.site.URL, 24*time.Hour
	w.up.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return w
}

// freshSink hides the known files, as a sync that fetches every file again.
type freshSink struct{ *webSink }

func (freshSink) Known(string) (File, bool) { return File{}, false }

func (w *youTubeWorld) sync() error {
	w.asked = nil
	s := w.sink
	s.files, s.skipped, s.kept, s.put = map[string]File{}, map[string]Reason{}, nil, nil
	var to Sink = s
	if w.reset {
		to = freshSink{s}
	}
	_, err := w.up.Fetch(testenv.Context(w.t), w.env, to)
	if err == nil {
		s.known = s.files
	}
	if left, err := os.ReadDir(w.env.Scratch); err != nil || len(left) > 0 {
		w.t.Errorf("%d files are left over, %v", len(left), err)
	}
	return err
}

func (w *youTubeWorld) mustSync() {
	w.t.Helper()
	if err := w.sync(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *youTubeWorld) want(paths ...string) {
	w.t.Helper()
	if got := w.sink.paths(); !slices.Equal(got, paths) {
		w.t.Errorf("the files are %q, want %q", got, paths)
	}
}

func fakeVideos(letters string) []fakeVideo {
	var all []fakeVideo
	for _, l := range letters {
		all = append(all, fakeVideo{id: "-id_" + strings.Repeat(string(l), 7), title: "Video " + strings.ToUpper(string(l)) + "?", text: "Text of " + string(l) + "."})
	}
	return all
}

func pathOf(letter string) string {
	return "youtube/Go--the-channel/Video-" + strings.ToUpper(letter) + "--id_" + strings.Repeat(letter, 7) + ".md"
}

// A source has the newest videos of a channel, asks only for new ones, and drops those over its limit.
func TestYouTubeFollowsAChannel(t *testing.T) {
	w := newYouTubeWorld(t, `{"handle": "@golang", "max_videos": 3}`)
	w.videos = fakeVideos("dcba")
	w.mustSync()
	w.want(pathOf("b"), pathOf("c"), pathOf("d"))
	want := "---\ntitle: \"Video D?\"\nchannel: \"Go: the channel\"\npublished: \"2026-01-02T18:00:00Z\"\nduration: \"1:15\"\nurl: \"https://www.youtube.com/watch?v=-id_ddddddd\"\n---\n\n" +
		"# Video D?\n\n[0:00](https://www.youtube.com/watch?v=-id_ddddddd&t=0s) Text of d.\n\n[1:01](https://www.youtube.com/watch?v=-id_ddddddd&t=61s) The end.\n"
	if got := w.sink.content[pathOf("d")]; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	w.mustSync()
	if len(w.sink.kept) != 3 || slices.Contains(w.asked, "/watch") {
		t.Errorf("kept %q, asked %q", w.sink.kept, w.asked)
	}
	w.videos = fakeVideos("edcba")
	w.mustSync()
	w.want(pathOf("c"), pathOf("d"), pathOf("e"))
	if len(w.sink.put) != 1 {
		t.Errorf("put %q", w.sink.put)
	}
}

// A video without a transcript has its reason, and the others stay.
func TestYouTubeReasons(t *testing.T) {
	for name, c := range map[string]struct {
		broken  func(v *fakeVideo)
		answers map[string]string
		want    map[string]Reason // by letter
	}{
		"no captions": {func(v *fakeVideo) { v.captionless = true }, nil, map[string]Reason{"b": NoCaptions}},
		"private":     {func(v *fakeVideo) { v.status, v.reason = "ERROR", "Private video" }, nil, map[string]Reason{"b": Missing}},
		"adults only": {func(v *fakeVideo) { v.status, v.reason = "LOGIN_REQUIRED", "Sign in to confirm your age" }, nil, map[string]Reason{"b": Blocked}},
		"for the app": {func(v *fakeVideo) { v.needsApp = true }, nil, map[string]Reason{}},
		"empty":       {func(v *fakeVideo) { v.empty = true }, nil, map[string]Reason{"b": Blocked}},
		// The next videos are not asked for.
		"a bot":          {func(v *fakeVideo) { v.status, v.reason = "LOGIN_REQUIRED", "Sign in to confirm you’re not a bot" }, nil, map[string]Reason{"b": Blocked, "a": Blocked}},
		"limited":        {nil, map[string]string{"/watch": "429"}, map[string]Reason{"b": RateLimited, "a": RateLimited}},
		"captions limit": {nil, map[string]string{"/api/timedtext": "429"}, map[string]Reason{"b": RateLimited, "a": RateLimited}},
		"consent":        {nil, map[string]string{"/watch": `<form action="https://consent.youtube.com/save">`}, map[string]Reason{"b": Blocked, "a": Blocked}},
		"a captcha":      {nil, map[string]string{"/watch": `<div class="g-recaptcha">`}, map[string]Reason{"b": Blocked, "a": Blocked}},
		"a new layout":   {nil, map[string]string{"/watch": `<html>`}, map[string]Reason{"b": Failed, "a": Failed}},
		"broken":         {nil, map[string]string{"/watch": "500"}, map[string]Reason{"b": Failed, "a": Failed}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newYouTubeWorld(t, `{"channel_id": "`+fakeChannel+`"}`)
			w.videos = fakeVideos("c")
			w.mustSync()
			before := w.sink.content[pathOf("c")]
			w.videos, w.answers = fakeVideos("cba"), maps.Clone(c.answers)
			if c.broken != nil {
				c.broken(&w.videos[1])
			}
			// The third video is known, and YouTube answers the same for it.
			w.mustSync()
			got := map[string]Reason{}
			for address, r := range w.sink.skipped {
				got[address[len(address)-1:]] = r
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("skipped %v, want %v", got, c.want)
			}
			if w.sink.content[pathOf("c")] != before {
				t.Errorf("the known transcript is %q", w.sink.content[pathOf("c")])
			}
			first := slices.IndexFunc(w.asked, func(p string) bool { return p == "/watch" })
			if n := len(slices.DeleteFunc(w.asked[first:], func(p string) bool { return p != "/watch" })); len(c.want) == 2 && c.want["a"] != Failed && n != 1 {
				t.Errorf("%d videos are asked for after a refusal", n)
			}
		})
	}
}

// A source of which nothing can be fetched says why, and a sync that fails changes nothing.
func TestYouTubeFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		want    fault.Code
	}{
		"no such channel":  {map[string]string{"/@golang": "404"}, fault.NotFound},
		"no such playlist": {map[string]string{"/playlist": `<script>var ytInitialData = {"alerts": [{"alertRenderer": {"type": "ERROR", "text": {"simpleText": "The playlist does not exist."}}}]};</script>`, "/feeds/videos.xml": "404"}, fault.NotFound},
		"refused":          {map[string]string{"/@golang": "403"}, fault.Forbidden},
		"refused videos":   {map[string]string{"/watch": "403"}, fault.Forbidden},
		"limited":          {map[string]string{"/@golang": "429"}, fault.Limited},
		"limited videos":   {map[string]string{"/watch": "429"}, fault.Limited},
		"down":             {map[string]string{"/@golang": "503"}, fault.Unavailable},
		"a new layout":     {map[string]string{"/@golang": "<html>"}, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newYouTubeWorld(t, `{"handle": "golang"}`)
			w.videos, w.answers = fakeVideos("ba"), c.answers
			err := w.sync()
			f, ok := errors.AsType[*fault.Error](err)
			if fault.CodeOf(err) != c.want || ok && c.want == fault.Limited && f.RetryAfter != 30*time.Minute {
				t.Errorf("%v, want %s", err, c.want)
			}
			if len(w.sink.put) > 0 {
				t.Errorf("put %q", w.sink.put)
			}
		})
	}
}

// If only the feed can be read, its videos are added, and the other videos stay.
func TestYouTubeReadsTheFeed(t *testing.T) {
	w := newYouTubeWorld(t, `{"playlist": "PL0123456789"}`)
	w.videos = fakeVideos("ba")
	w.mustSync()
	w.videos, w.answers["/playlist"] = fakeVideos("cba"), "<html>"
	w.mustSync()
	w.want(pathOf("a"), pathOf("b"), pathOf("c"))
}

// A reset does not replace a transcript by one of less than half its length, nor by none.
func TestYouTubeKeepsAGoodTranscript(t *testing.T) {
	w := newYouTubeWorld(t, `{"channel_id": "`+fakeChannel+`"}`)
	w.videos = fakeVideos("cba")
	long := strings.Repeat("Many words. ", 20)
	for i := range w.videos {
		w.videos[i].text = long
	}
	w.mustSync()
	before := maps.Clone(w.sink.content)
	w.videos[0].text, w.videos[1].captionless, w.videos[2].text = "Few.", true, long[:len(long)*3/4]
	w.reset = true
	w.mustSync()
	w.want(pathOf("a"), pathOf("b"), pathOf("c"))
	for letter, same := range map[string]bool{"a": false, "b": true, "c": true} {
		if got := w.sink.content[pathOf(letter)]; (got == before[pathOf(letter)]) != same {
			t.Errorf("%s is\n%s", letter, got)
		}
	}
}

// fakeYtDlp writes a program that behaves as yt-dlp.
func fakeYtDlp(t *testing.T, script string) string {
	t.Helper()
	testenv.NeedProgram(t, "sh")
	program := filepath.Join(t.TempDir(), "yt-dlp")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nfor last; do :; done\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// Where YouTube refuses this server, yt-dlp fetches the captions if it is installed.
func TestYouTubeAsksYtDlp(t *testing.T) {
	w := newYouTubeWorld(t, `{"channel_id": "`+fakeChannel+`"}`)
	w.videos = fakeVideos("a")
	w.answers["/watch"] = "403"
	w.env.YtDlp = fakeYtDlp(t, `cat > captions.en-orig.json3 <<X
{"events": [{"tStartMs": 0, "segs": [{"utf8": "The address is $last."}]}]}
X
printf 'WEBVTT\n\n00:00.000 --> 00:01.000\nFrench' > captions.fr.vtt
echo '{"title": "Video A?", "channel": "Go: the channel", "upload_date": "20260102", "duration": 75}'`)
	w.mustSync()
	w.want(pathOf("a"))
	for _, part := range []string{"published: \"2026-01-02T00:00:00Z\"\nduration: \"1:15\"\n", "The address is https://www.youtube.com/watch?v=-id_aaaaaaa.\n"} {
		if got := w.sink.content[pathOf("a")]; !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

func TestYtDlpReasons(t *testing.T) {
	for script, want := range map[string]Reason{
		`exit 0`: "",
		`echo "ERROR: HTTP Error 429: Too Many Requests" >&2; exit 1`:      RateLimited,
		`echo "ERROR: Sign in to confirm you’re not a bot." >&2; exit 1`:   Blocked,
		`echo "ERROR: Private video. Sign in if you may see." >&2; exit 1`: Missing,
		`exit 1`: Failed,
	} {
		y := &ytDlp{program: fakeYtDlp(t, script), scratch: t.TempDir()}
		cues, err := y.transcript(testenv.Context(t), &video{id: "-id_aaaaaaa"})
		e, ok := errors.AsType[*videoError](err)
		if len(cues) > 0 || ok && e.reason != want || !ok && (err != nil || want != "") {
			t.Errorf("%s gives %v, %v", script, cues, err)
		}
	}
	y := &ytDlp{program: "/no/such/program", scratch: t.TempDir()}
	if _, err := y.transcript(testenv.Context(t), &video{id: "-id_aaaaaaa"}); err == nil || !err.(*videoError).all {
		t.Errorf("a program that is gone gives %v", err)
	}
}

// A person uploads the transcript of a video without captions, and of one that has left the channel.
// Syncs and resets keep both, and read the others.
func TestYouTubeKeepsUploadedTranscripts(t *testing.T) {
	w := newYouTubeWorld(t, `{"channel_id": "`+fakeChannel+`"}`)
	w.videos = fakeVideos("ba")
	w.videos[0].captionless = true
	w.mustSync()
	w.want(pathOf("a"))
	const captions = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nWords of a person\n"
	for name, taken := range map[string]bool{"A talk [-id_bbbbbbb].en.vtt": true, "old_______x.vtt": true, "notes.vtt": false, "talk.md": false} {
		refused := 0
		err := Receive(t.Context(), w.env, YouTube, name, strings.NewReader(captions), int64(len(captions)), w.sink, func(string, *Refusal) { refused++ })
		if err != nil || (refused == 0) != taken {
			t.Errorf("%s: %d refused, %v", name, refused, err)
		}
	}
	for _, w.reset = range []bool{false, true} {
		w.mustSync()
		w.want(pathOf("a"), "youtube/uploaded/A-talk--id_bbbbbbb.md", "youtube/uploaded/old_______x.md")
	}
	page := w.sink.content["youtube/uploaded/A-talk--id_bbbbbbb.md"]
	if !strings.Contains(page, "# A talk\n") || !strings.Contains(page, "watch?v=-id_bbbbbbb&t=1s") || !strings.Contains(page, "Words of a person") {
		t.Errorf("the page is\n%s", page)
	}
}
