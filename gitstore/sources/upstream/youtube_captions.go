package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// webCaptions gets the captions of a video as YouTube's own player does.
type webCaptions struct {
	client    *youTubeClient
	languages []string
}

// track has the captions of a video in one language.
type track struct {
	address, language string
	automatic         bool
}

// transcript implements transcriber.
func (c *webCaptions) transcript(ctx context.Context, v *video) ([]caption, error) {
	page, err := c.client.request(ctx, "/watch?hl=en&v="+v.id, nil)
	if err != nil {
		return nil, err
	}
	player := dataOf(page, "ytInitialPlayerResponse")
	if player == nil {
		return nil, failed("the page of the video has no data of the player")
	}
	describe(v, player)
	if err := playable(player); err != nil {
		return nil, err
	}
	tracks := tracksOf(player)
	if len(tracks) == 0 {
		return nil, &videoError{reason: NoCaptions, cause: "the video has no captions"}
	}
	chosen := choose(tracks, c.languages)
	if chosen == nil {
		return nil, &videoError{reason: NoCaptions, cause: "the video has no captions in the languages of the source"}
	}
	cues, err := c.read(ctx, chosen)
	if err != nil || len(cues) > 0 {
		return cues, err
	}
	// The captions that the page links to can be empty for programs that are not browsers.
	answer, err := c.client.request(ctx, "/youtubei/v1/player?prettyPrint=false", map[string]any{
		"context": map[string]any{"client": map[string]string{"clientName": "ANDROID", "clientVersion": androidVersion, "hl": "en"}}, "videoId": v.id,
	})
	if err != nil {
		return nil, err
	}
	if player, err = parseTree(answer); err != nil {
		return nil, failed("the data of the player cannot be read: %s", err)
	}
	if err := playable(player); err != nil {
		return nil, err
	}
	if chosen = choose(tracksOf(player), c.languages); chosen != nil {
		if cues, err = c.read(ctx, chosen); err != nil || len(cues) > 0 {
			return cues, err
		}
	}
	return nil, &videoError{reason: Blocked, cause: "YouTube answers with empty captions"}
}

// read returns the captions of a track. An empty track is not an error.
func (c *webCaptions) read(ctx context.Context, t *track) ([]caption, error) {
	u, err := url.Parse(t.address)
	if err != nil {
		return nil, failed("the captions have no address")
	}
	q := u.Query()
	q.Set("fmt", "json3")
	u.RawQuery = q.Encode()
	content, err := c.client.request(ctx, u.String(), nil)
	if err != nil {
		return nil, err
	}
	cues, err := parseCaptions(content)
	if err != nil {
		return nil, failed("%s", err)
	}
	return cues, nil
}

// describe completes a video with the data of its player.
func describe(v *video, player *tree) {
	v.title = cmp.Or(player.str("videoDetails", "title"), v.title)
	v.channel = cmp.Or(player.str("videoDetails", "author"), v.channel)
	if d, err := time.ParseDuration(player.str("videoDetails", "lengthSeconds") + "s"); err == nil && d > 0 {
		v.length = d
	}
	published := player.str("microformat", "playerMicroformatRenderer", "publishDate")
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, published); err == nil {
			v.published = t.UTC()
		}
	}
}

// playable returns an error for a video that cannot be played.
func playable(player *tree) error {
	status, why := player.str("playabilityStatus", "status"), player.str("playabilityStatus", "reason")
	switch {
	case status == "LOGIN_REQUIRED" && strings.Contains(why, "bot"):
		return &videoError{reason: Blocked, all: true, cause: why}
	case status == "LOGIN_REQUIRED", status == "AGE_VERIFICATION_REQUIRED":
		return &videoError{reason: Blocked, cause: cmp.Or(why, status)}
	case status == "ERROR", status == "UNPLAYABLE":
		return &videoError{reason: Missing, cause: cmp.Or(why, status)}
	}
	return nil
}

func tracksOf(player *tree) []track {
	var all []track
	for _, t := range player.list("captions", "playerCaptionsTracklistRenderer", "captionTracks") {
		all = append(all, track{t.str("baseUrl"), t.str("languageCode"), t.str("kind") == "asr"})
	}
	return all
}

// choose returns the track in the first language that has one, and prefers tracks that people
// wrote. Without languages, it uses the language of the automatic track, which is the spoken
// language of the video, or else the language of the first track.
func choose(tracks []track, languages []string) *track {
	if len(tracks) == 0 {
		return nil
	}
	if len(languages) == 0 {
		languages = []string{tracks[0].language}
		if i := slices.IndexFunc(tracks, func(t track) bool { return t.automatic }); i >= 0 {
			languages[0] = tracks[i].language
		}
	}
	for _, l := range languages {
		for _, automatic := range []bool{false, true} {
			i := slices.IndexFunc(tracks, func(t track) bool { return t.automatic == automatic && speaks(t.language, l) })
			if i >= 0 {
				return &tracks[i]
			}
		}
	}
	return nil
}

// speaks reports whether a language is the wanted one, or a variety of it, such as en-GB of en.
func speaks(language, wanted string) bool {
	language, wanted = strings.ToLower(language), strings.ToLower(wanted)
	return language == wanted || strings.HasPrefix(language, wanted+"-")
}

// ytDlp gets captions with the program yt-dlp, which follows YouTube's changes faster than a
// release of Satchel can.
type ytDlp struct {
	program   string
	languages []string
	scratch   string
}

const (
	ytDlpTimeout   = 3 * time.Minute
	maxYtDlpOutput = 64 << 10
)

// transcript implements transcriber.
func (y *ytDlp) transcript(ctx context.Context, v *video) ([]caption, error) {
	dir, err := os.MkdirTemp(y.scratch, "yt-dlp-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// yt-dlp marks the automatic captions in the language of the video with the suffix -orig.
	languages := cmp.Or(strings.Join(y.languages, ","), "en,.*-orig")
	runCtx, cancel := context.WithTimeout(ctx, ytDlpTimeout)
	defer cancel()
	cmd := exec.CommandContext(runCtx, y.program, "--ignore-config", "--no-cache-dir", "--no-playlist", "--no-progress", "--skip-download", "--no-simulate",
		"--write-subs", "--write-auto-subs", "--sub-format", "json3/vtt", "--sub-langs", languages, "--socket-timeout", "30",
		"--print", "%(.{title,channel,upload_date,duration})j", "--output", "captions.%(ext)s", "--", v.url())
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8"}
	cmd.WaitDelay = 5 * time.Second
	out, problems := &tail{max: maxYtDlpOutput}, &tail{max: maxYtDlpOutput}
	cmd.Stdout, cmd.Stderr = out, problems
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, ytDlpError(err, string(problems.kept))
	}
	var about struct {
		Title    string  `json:"title"`
		Channel  string  `json:"channel"`
		Date     string  `json:"upload_date"`
		Duration float64 `json:"duration"`
	}
	if json.Unmarshal(bytes.TrimSpace(out.kept), &about) == nil {
		v.title, v.channel = cmp.Or(about.Title, v.title), cmp.Or(about.Channel, v.channel)
		v.length = cmp.Or(time.Duration(about.Duration)*time.Second, v.length)
		if t, err := time.Parse("20060102", about.Date); err == nil {
			v.published = t
		}
	}
	return y.read(dir)
}

// read reads the captions that yt-dlp wrote, in the first language that has some.
func (y *ytDlp) read(dir string) ([]caption, error) {
	files, err := filepath.Glob(filepath.Join(dir, "captions.*"))
	if err != nil {
		return nil, err
	}
	language := func(file string) string {
		l := strings.TrimPrefix(filepath.Base(file), "captions.")
		return strings.TrimSuffix(strings.TrimSuffix(l, filepath.Ext(l)), "-orig")
	}
	rank := func(file string) int {
		if i := slices.IndexFunc(y.languages, func(l string) bool { return speaks(language(file), l) }); i >= 0 {
			return i
		}
		return len(y.languages)
	}
	slices.SortStableFunc(files, func(a, b string) int { return rank(a) - rank(b) })
	for _, f := range files {
		if info, err := os.Lstat(f); err != nil || !info.Mode().IsRegular() || info.Size() > maxYouTubePage {
			continue
		}
		content, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if cues, err := parseCaptions(content); err == nil && len(cues) > 0 {
			return cues, nil
		}
	}
	return nil, nil
}

// ytDlpError says why yt-dlp has no captions.
func ytDlpError(err error, problems string) error {
	e := &videoError{reason: Failed, cause: "yt-dlp: " + err.Error() + ": " + short(problems, 500)}
	switch has := func(s string) bool { return strings.Contains(problems, s) }; {
	case has("HTTP Error 429"), has("Too Many Requests"):
		e.reason, e.all = RateLimited, true
	case has("not a bot"), has("HTTP Error 403"):
		e.reason, e.all = Blocked, true
	case has("Video unavailable"), has("Private video"), has("has been removed"):
		e.reason = Missing
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		e.all = true
	}
	return e
}

// tail keeps the end of what a program writes.
type tail struct {
	kept []byte
	max  int
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if n := len(t.kept) - t.max; n > 0 {
		t.kept = slices.Delete(t.kept, 0, n)
	}
	return len(b), nil
}
