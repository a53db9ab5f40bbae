package upstream

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func isCaptions(ext string) bool { return ext == ".vtt" || ext == ".srt" }

// cue is a text of a video with its time.
type cue struct {
	start, end time.Duration
	text       string
}

var (
	cueTimes = regexp.MustCompile(`^(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{3})\s+-->\s+(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{3})`)
	cueTags  = regexp.MustCompile(`</?[^<>]*>|\{\\[^{}]*\}`)
)

// parseCues returns the cues of a WebVTT or SubRip file. A line that a cue repeats from the one
// before, as rolling captions do, is left out.
func parseCues(content []byte) []cue {
	var all []cue
	var last []string
	lines := strings.Split(strings.ReplaceAll(string(utf8Text(content)), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		m := cueTimes.FindStringSubmatch(strings.TrimSpace(lines[i]))
		if m == nil {
			continue
		}
		var text, fresh []string
		for i+1 < len(lines) && strings.TrimSpace(lines[i+1]) != "" {
			i++
			l := oneLine(html.UnescapeString(cueTags.ReplaceAllString(lines[i], "")))
			if l == "" {
				continue
			}
			text = append(text, l)
			if !slices.Contains(last, l) {
				fresh = append(fresh, l)
			}
		}
		last = text
		if len(fresh) > 0 {
			all = append(all, cue{cueTime(m[1:5]), cueTime(m[5:9]), strings.Join(fresh, " ")})
		}
	}
	return all
}

func cueTime(part []string) time.Duration {
	var n [4]int
	for i, p := range part {
		n[i], _ = strconv.Atoi(p) // an absent hour is 0
	}
	return time.Duration(n[0])*time.Hour + time.Duration(n[1])*time.Minute + time.Duration(n[2])*time.Second + time.Duration(n[3])*time.Millisecond
}

// A paragraph of captions ends at a pause, or at the end of a sentence when it is long.
const (
	captionPause = 4 * time.Second
	captionLong  = 500
)

// captions returns captions as paragraphs that begin with their time.
func captions(name string, content []byte) ([]byte, error) {
	cues := parseCues(content)
	if len(cues) == 0 {
		return nil, refuse(Unreadable, "The file %s has no captions.", name)
	}
	var b, text strings.Builder
	start := cues[0].start
	flush := func() {
		fmt.Fprintf(&b, "[%s] %s\n\n", clock(start), plainLine(text.String()))
		text.Reset()
	}
	for i, c := range cues {
		if text.Len() > 0 {
			before := text.String()
			if c.start-cues[i-1].end > captionPause || len(before) > captionLong && strings.ContainsRune(".?!…", lastRune(before)) || len(before) > 4*captionLong {
				flush()
			}
		}
		if text.Len() == 0 {
			start = c.start
		} else {
			text.WriteByte(' ')
		}
		text.WriteString(c.text)
	}
	flush()
	return titled(name, []byte(b.String())), nil
}

func lastRune(s string) rune {
	r := []rune(s[max(0, len(s)-4):])
	return r[len(r)-1]
}

// clock formats a time as 1:02:03 or 2:03.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	if h := s / 3600; h > 0 {
		return fmt.Sprintf("%d:%02d:%02d", h, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
