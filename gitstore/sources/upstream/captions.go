package upstream

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// caption is a piece of the spoken text of a recording, and the time at which it begins.
type caption struct {
	start time.Duration
	text  string
}

// maxCaptions bounds the captions of a recording. A recording of ten hours has fewer.
const maxCaptions = 50_000

var errCaptions = errors.New("the captions are not WebVTT, SubRip, or in a format of YouTube")

// parseCaptions parses captions: WebVTT, SubRip, and YouTube's formats json3, srv3 and srv1.
func parseCaptions(content []byte) (cues []caption, err error) {
	content = bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\ufeff")))
	switch {
	case len(content) == 0:
		return nil, nil
	case content[0] == '{':
		cues, err = jsonCaptions(content)
	case content[0] == '<':
		cues, err = xmlCaptions(content)
	default:
		cues, err = textCaptions(strings.ToValidUTF8(string(content), "\ufffd"))
	}
	return cues, err
}

// addCaption adds a caption to cues, unless the caption has no text or repeats the text of the last
// one. addCaption also leaves out a caption with a negative time, and any after maxCaptions.
func addCaption(cues []caption, start time.Duration, text string) []caption {
	text = oneLine(html.UnescapeString(captionTag.ReplaceAllString(text, "")))
	if text == "" || start < 0 || len(cues) >= maxCaptions || len(cues) > 0 && cues[len(cues)-1].text == text {
		return cues
	}
	return append(cues, caption{start, text})
}

var (
	// captionTag matches the tags of WebVTT, and the styles that some SubRip files have in braces.
	captionTag  = regexp.MustCompile(`</?[a-zA-Z0-9][^<>]*>|\{\\[^{}]*\}`)
	captionTime = regexp.MustCompile(`^(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})\s+-->`)
)

// textCaptions parses WebVTT and SubRip, whose times differ in the decimal mark. Rolling captions
// repeat the previous line above each new line, so textCaptions leaves out the lines that the
// previous caption also has.
func textCaptions(text string) ([]caption, error) {
	var cues []caption
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
	last := map[string]bool{}
	found := false
	for i := 0; i < len(lines); i++ {
		m := captionTime.FindStringSubmatch(strings.TrimSpace(lines[i]))
		if m == nil {
			continue
		}
		found = true
		part := func(s string) time.Duration { n, _ := strconv.Atoi(s); return time.Duration(n) } // s is digits, or empty
		start := part(m[1])*time.Hour + part(m[2])*time.Minute + part(m[3])*time.Second + part((m[4] + "00")[:3])*time.Millisecond
		now := map[string]bool{}
		var fresh []string
		for i+1 < len(lines) && strings.TrimSpace(lines[i+1]) != "" {
			i++
			line := oneLine(captionTag.ReplaceAllString(lines[i], ""))
			if !last[line] {
				fresh = append(fresh, line)
			}
			now[line] = true
		}
		last = now
		cues = addCaption(cues, start, strings.Join(fresh, " "))
	}
	if !found {
		return nil, errCaptions
	}
	return cues, nil
}

func jsonCaptions(content []byte) ([]caption, error) {
	var doc struct {
		Events []struct {
			Start int64 `json:"tStartMs"`
			Segs  []struct {
				Text string `json:"utf8"`
			} `json:"segs"`
		} `json:"events"`
	}
	if err := json.Unmarshal(content, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errCaptions, err)
	}
	var cues []caption
	for _, e := range doc.Events {
		var text strings.Builder
		for _, s := range e.Segs {
			text.WriteString(s.Text)
		}
		cues = addCaption(cues, time.Duration(e.Start)*time.Millisecond, text.String())
	}
	return cues, nil
}

// xmlCaptions parses srv3, which has <p t="milliseconds">, and srv1, which has
// <text start="seconds">.
func xmlCaptions(content []byte) ([]caption, error) {
	d := xml.NewDecoder(bytes.NewReader(content))
	d.Strict = false
	var cues []caption
	var text strings.Builder
	var start time.Duration
	in, known := "", false
	for {
		token, err := d.Token()
		if err == io.EOF && known {
			return cues, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCaptions, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			name := t.Name.Local
			known = known || name == "timedtext" || name == "transcript"
			if name != "p" && name != "text" || !known {
				continue
			}
			in = name
			text.Reset()
			for _, a := range t.Attr {
				switch n, _ := strconv.ParseFloat(a.Value, 64); a.Name.Local {
				case "t":
					start = time.Duration(min(n, 1e9)) * time.Millisecond
				case "start":
					start = time.Duration(min(n, 1e6) * float64(time.Second))
				}
			}
		case xml.CharData:
			if in != "" {
				text.Write(t)
			}
		case xml.EndElement:
			if t.Name.Local == in {
				cues = addCaption(cues, start, text.String())
				in = ""
			}
		}
	}
}

// A paragraph that has reached paragraphTime or paragraphText ends at the next caption that ends a
// sentence. A paragraph that has reached maxParagraphTime or maxParagraphText ends at once.
const (
	paragraphTime, maxParagraphTime = 30 * time.Second, time.Minute
	paragraphText, maxParagraphText = 400, 900
)

// paragraphs joins captions into paragraphs. A paragraph has the start of its first caption.
func paragraphs(cues []caption) []caption {
	var all []caption
	for i, c := range cues {
		if i > 0 {
			p := &all[len(all)-1]
			sentence := strings.ContainsAny(cues[i-1].text[len(cues[i-1].text)-1:], ".?!\"")
			took, length := c.start-p.start, len(p.text)+1
			if took < maxParagraphTime && length < maxParagraphText && !(sentence && (took >= paragraphTime || length >= paragraphText)) {
				p.text += " " + c.text
				continue
			}
		}
		all = append(all, c)
	}
	return all
}

// transcriptText returns captions as paragraphs of Markdown. Each paragraph begins with its time,
// as a link to the address that the function link returns. If link is nil, times are plain text.
func transcriptText(cues []caption, link func(time.Duration) string) []byte {
	var out []string
	for _, p := range paragraphs(cues) {
		at := playTime(p.start)
		if link != nil {
			at = "[" + at + "](" + link(p.start) + ")"
		}
		out = append(out, at+" "+p.text)
	}
	if len(out) == 0 {
		return nil
	}
	return []byte(strings.Join(out, "\n\n") + "\n")
}

// isCaptions reports whether ext is the extension of a file of captions.
func isCaptions(ext string) bool { return ext == ".vtt" || ext == ".srt" }

// captionsPage returns the page of a file of captions.
func captionsPage(name string, content []byte) ([]byte, error) {
	cues, err := parseCaptions(utf8Text(content))
	if err != nil || len(cues) == 0 {
		return nil, refuse(Unreadable, "The file %s has no captions.", name)
	}
	var b strings.Builder
	for _, p := range paragraphs(cues) {
		fmt.Fprintf(&b, "[%s] %s\n\n", playTime(p.start), plainLine(p.text))
	}
	return titled(name, []byte(b.String())), nil
}

// playTime writes a duration as players do, such as 1:02:03.
func playTime(d time.Duration) string {
	s := int(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
