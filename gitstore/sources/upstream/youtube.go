package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"satchel/internal/fault"
)

// youTube is a channel or a playlist of YouTube. The transcript of each video becomes a page.
type youTube struct {
	ChannelID string `json:"channel_id,omitempty"`
	Handle    string `json:"handle,omitempty"`
	Playlist  string `json:"playlist,omitempty"`
	// MaxVideos is how many videos a sync reads from the start of the list. The list of a channel
	// begins with the newest video.
	MaxVideos int `json:"max_videos,omitempty"`
	// Languages are the languages of captions in the order of preference. Without them, the
	// captions are in the language of the video.
	Languages []string `json:"languages,omitempty"`

	// base is the address of YouTube. Tests replace base, wait and timeout.
	base    string
	wait    func(context.Context, time.Duration) error
	timeout time.Duration
}

const youTubeSite = "https://www.youtube.com"

var (
	idForm       = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	languageForm = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$`)
)

// recognizeYouTube takes every address of YouTube, because no other kind can read that site.
// Validate refuses the address of a single video.
func recognizeYouTube(u *url.URL) Upstream {
	switch strings.ToLower(u.Hostname()) {
	case "youtube.com", "www.youtube.com", "m.youtube.com", "youtu.be":
	default:
		return nil
	}
	y := &youTube{}
	first, rest, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	second, _, _ := strings.Cut(rest, "/")
	switch {
	case u.Query().Get("list") != "":
		y.Playlist = u.Query().Get("list")
	case first == "channel":
		y.ChannelID = second
	case strings.HasPrefix(first, "@"):
		y.Handle = first[1:]
	}
	return y
}

func (y *youTube) Validate() error {
	invalid := func(field, text string) error { return fault.New(fault.Invalid, "%s", text).In(field) }
	y.ChannelID, y.Playlist = strings.TrimSpace(y.ChannelID), strings.TrimSpace(y.Playlist)
	y.Handle = strings.TrimPrefix(strings.TrimSpace(y.Handle), "@")
	given := slices.DeleteFunc([]string{y.ChannelID, y.Handle, y.Playlist}, func(s string) bool { return s == "" })
	switch {
	case len(given) != 1:
		return invalid("channel_id", "Enter one channel or playlist: its channel_id, handle or playlist, or its address.")
	case y.ChannelID != "" && !(strings.HasPrefix(y.ChannelID, "UC") && isID(y.ChannelID, 24, 24)):
		return invalid("channel_id", "The ID of a channel begins with UC and has 24 characters. Enter the handle if you do not know the ID.")
	case y.Handle != "" && !isHandle(y.Handle):
		return invalid("handle", "Enter the handle of the channel, such as @golang.")
	case y.Playlist != "" && !isID(y.Playlist, 2, 64):
		return invalid("playlist", "Enter the ID of the playlist, which follows list= in its address.")
	case len(y.Languages) > 10:
		return invalid("languages", "Enter 10 languages at most.")
	}
	for _, l := range y.Languages {
		if !languageForm.MatchString(l) {
			return invalid("languages", "A language is a code such as en or pt-BR.")
		}
	}
	y.base, y.timeout = cmp.Or(y.base, youTubeSite), cmp.Or(y.timeout, webTimeout)
	if y.wait == nil {
		y.wait = pause
	}
	return count(&y.MaxVideos, "max_videos", 50, 5000)
}

// isID reports whether a text has the form of an ID of YouTube with min to max characters.
func isID(s string, min, max int) bool {
	return len(s) >= min && len(s) <= max && idForm.MatchString(s)
}

// isHandle reports whether a text has the form of a handle, which can be in any language.
func isHandle(s string) bool {
	return len(s) >= 3 && len(s) <= 120 && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._·-", r)
	})
}

// Check returns no state: a list that has not changed can have videos whose captions are new.
func (y *youTube) Check(context.Context, *Env) (State, error) { return "", nil }

// video is a video of YouTube.
type video struct {
	id, title, channel string
	published          time.Time
	length             time.Duration
}

func (v *video) url() string { return youTubeSite + "/watch?v=" + v.id }

// transcriber is a way to get the transcript of a video. It also adds details to the
// video, such as its title, if it learns them.
type transcriber interface {
	// transcript returns the captions of a video. The error is a *videoError if the video or
	// YouTube is the cause.
	transcript(ctx context.Context, v *video) ([]caption, error)
}

// videoError says why a video has no transcript.
type videoError struct {
	reason Reason
	// all reports that the next videos will fail too.
	all   bool
	retry time.Duration
	cause string
}

func (e *videoError) Error() string { return string(e.reason) + ": " + e.cause }

// fault returns the error for a source of which nothing could be fetched.
func (e *videoError) fault() error {
	switch e.reason {
	case Blocked:
		return fault.Wrap(e, fault.Forbidden, "YouTube refuses this server, as it refuses many addresses of cloud providers. Install yt-dlp on the server, or upload transcripts as .vtt or .srt.")
	case RateLimited:
		f := fault.Wrap(e, fault.Limited, "YouTube asks Satchel to wait.")
		f.RetryAfter = cmp.Or(e.retry, time.Hour)
		return f
	case Missing:
		return fault.Wrap(e, fault.NotFound, "YouTube has no such channel or playlist, or it is private.")
	case NoCaptions:
		return fault.Wrap(e, fault.NotFound, "None of the videos has captions. Upload transcripts as .vtt or .srt.")
	}
	return fault.Wrap(e, fault.Unavailable, "YouTube does not answer as expected.")
}

// Fetch gives the transcripts of new videos to the sink, and keeps those that the source has.
func (y *youTube) Fetch(ctx context.Context, env *Env, sink Sink) (State, error) {
	client, err := newYouTubeClient(y, env)
	if err != nil {
		return "", err
	}
	videos, whole, err := y.list(ctx, client)
	if e, ok := errors.AsType[*videoError](err); ok {
		return "", e.fault()
	}
	if err != nil {
		return "", err
	}
	old, taken := oldFiles(sink)
	t := transcripts{ways: []transcriber{&webCaptions{client: client, languages: y.Languages}}, stopped: map[transcriber]*videoError{}}
	if env.YtDlp != "" {
		t.ways = append(t.ways, &ytDlp{program: env.YtDlp, languages: y.Languages, scratch: env.Scratch})
	}
	sink.Expect(len(videos))
	var state []byte
	has := 0
	var last *videoError
	for _, v := range videos {
		was, had := old[v.url()]
		delete(old, v.url())
		if had && isUploaded(was) {
			if err := sink.Keep(ctx, was); err != nil {
				return "", err
			}
			has++
			continue
		}
		known, ok := sink.Known(v.url())
		if ok && readVideoTag(known.Tag).settings == y.settings() {
			if err := sink.Keep(ctx, known); err != nil {
				return "", err
			}
			has++
			state = append(state, known.Tag...)
			continue
		}
		cues, err := t.get(ctx, &v)
		if e, ok := errors.AsType[*videoError](err); ok {
			env.Logger.InfoContext(ctx, "a video has no transcript", "video", v.id, "reason", e.reason, "cause", e.cause)
			last = e
			if had {
				has++
			}
			if err := sink.Skip(ctx, v.url(), e.reason); err != nil {
				return "", err
			}
			continue
		}
		if err != nil {
			return "", err
		}
		has++
		tag := videoTag{settings: y.settings(), length: lengthOf(cues)}
		if had && 2*tag.length < readVideoTag(was.Tag).length {
			env.Logger.WarnContext(ctx, "a new transcript is less than half as long; the old one stays", "video", v.id)
			err = sink.Keep(ctx, was)
		} else {
			f := File{Path: was.Path, URL: v.url(), Title: v.title, Changed: v.published, Tag: tag.String()}
			if f.Path == "" {
				name := "youtube/" + cmp.Or(safeName(v.channel), "channel") + "/" + strings.TrimLeft(safeName(v.title)+"-"+v.id, "-.")
				f.Path = freePath(taken, name, ".md", f.URL)
			}
			err = sink.Put(ctx, f, v.page(cues))
		}
		if err != nil {
			return "", err
		}
		state = append(state, tag.String()+v.id...)
	}
	for _, left := range old {
		if !whole || isUploaded(left) {
			has++
			if err := sink.Keep(ctx, left); err != nil {
				return "", err
			}
		}
	}
	if has == 0 && last != nil {
		return "", last.fault()
	}
	return State(shortHash(state)), nil
}

// transcripts asks several transcribers, until one has the transcript.
type transcripts struct {
	ways    []transcriber
	stopped map[transcriber]*videoError
}

func (t *transcripts) get(ctx context.Context, v *video) ([]caption, error) {
	var first *videoError
	for _, way := range t.ways {
		e := t.stopped[way]
		if e == nil {
			cues, err := way.transcript(ctx, v)
			if err == nil && len(cues) > 0 {
				return cues, nil
			}
			if err == nil {
				err = &videoError{reason: NoCaptions, cause: "the captions are empty"}
			}
			var ok bool
			if e, ok = errors.AsType[*videoError](err); !ok {
				return nil, err
			}
			if e.all {
				t.stopped[way] = e
			}
		}
		first = cmp.Or(first, e)
		if e.reason == Missing || e.reason == NoCaptions {
			break
		}
	}
	return nil, first
}

// settings identifies the settings on which a transcript depends.
func (y *youTube) settings() string {
	return cmp.Or(strings.Join(y.Languages, ","), "any")
}

// videoTag is the content of File.Tag for the page of a video: the settings on which the transcript
// depends, and its length in bytes.
type videoTag struct {
	settings string
	length   int
}

func (t videoTag) String() string { return t.settings + " " + strconv.Itoa(t.length) }

// isUploaded reports whether a page's transcript was uploaded. Only a person removes
// such a transcript.
func isUploaded(f File) bool { return readVideoTag(f.Tag).settings == uploadedTranscript }

func readVideoTag(s string) videoTag {
	settings, length, _ := strings.Cut(s, " ")
	n, err := strconv.Atoi(length)
	if err != nil {
		return videoTag{}
	}
	return videoTag{settings, n}
}

func lengthOf(cues []caption) (n int) {
	for _, c := range cues {
		n += len(c.text)
	}
	return n
}

// page returns the page of a video.
func (v *video) page(cues []caption) []byte {
	title := cmp.Or(oneLine(v.title), v.id)
	length := ""
	if v.length > 0 {
		length = playTime(v.length)
	}
	return slices.Concat(
		frontMatter([2]string{"title", title}, [2]string{"channel", v.channel}, [2]string{"published", dateText(v.published)},
			[2]string{"duration", length}, [2]string{"url", v.url()}),
		[]byte("# "+title+"\n\n"),
		transcriptText(cues, func(at time.Duration) string { return fmt.Sprintf("%s&t=%ds", v.url(), at/time.Second) }))
}
