package upstream

import (
	"context"
	"path"
	"regexp"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// YouTube is the kind of sources that follow a channel or playlist.
const YouTube = string(space.SourceYouTube)

// uploadedTranscript replaces the settings in the tag of a page whose transcript was uploaded.
// Syncs keep such pages.
const uploadedTranscript = "uploaded"

// transcriptName matches the name of a file of captions. The name has the ID of the video, and
// may have its title and the language, as in "A talk [dQw4w9WgXcQ].en.vtt" and "dQw4w9WgXcQ.srt".
var transcriptName = regexp.MustCompile(`^(?:(.*?)[ _-]*)?\[?([A-Za-z0-9_-]{11})\]?(?:\.[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)?\.(?:vtt|srt)$`)

// giveTranscript gives the page of an uploaded transcript to the sink. The error is a *Refusal if
// the file must be left out.
func giveTranscript(ctx context.Context, _ *Env, f File, content []byte, sink Sink) error {
	m := transcriptName.FindStringSubmatch(path.Base(string(f.Path)))
	if m == nil {
		return refuse(BadName, "%s is not a transcript. Name a .vtt or .srt file after the ID of its video, such as dQw4w9WgXcQ.vtt.", f.Path)
	}
	cues, err := parseCaptions(utf8Text(content))
	if err != nil || len(cues) == 0 {
		return refuse(Unreadable, "The file %s has no captions.", f.Path)
	}
	v := video{id: m[2], title: m[1]}
	name := v.id
	if title := safeName(v.title); title != "" {
		name = title + "-" + v.id
	}
	f.Path, err = space.ParsePath("youtube/uploaded/" + name + ".md")
	if err != nil {
		return &Refusal{BadName, err}
	}
	f.URL, f.Title, f.Tag = v.url(), v.title, videoTag{uploadedTranscript, lengthOf(cues)}.String()
	if err = sink.Put(ctx, f, v.page(cues)); fault.CodeOf(err) == fault.Conflict {
		return &Refusal{Duplicate, err}
	}
	return err
}
