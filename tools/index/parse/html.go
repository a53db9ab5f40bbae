package parse

import (
	"bytes"
	"html"
	"strings"
)

// Limits of HTML constructs. Longer ones are text.
const (
	maxTag       = 4 << 10 // a tag with its attributes
	maxHTMLTitle = 1 << 10 // the text between the tags of a title
)

var (
	htmlHeading = Lazily(`(?is)^<h([1-6])(?:\s[^<>]{0,300})?>(.{0,1000}?)</h[1-6]\s*>`)
	htmlTitle   = Lazily(`(?is)^<title(?:\s[^<>]{0,300})?>(.{0,1000}?)</title\s*>`)
	htmlMeta    = Lazily(`(?is)<meta\s[^<>]*?\bname\s*=\s*["']?(description|keywords)["']?[^<>]*?\bcontent\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')`)
)

// htmlFrontMatter returns the description and the keywords in the head of a page.
func htmlFrontMatter(data []byte) (fm frontMatter) {
	head := data[:min(len(data), MaxFence)]
	if i := bytes.Index(head, []byte("<body")); i >= 0 {
		head = head[:i]
	}
	for _, m := range htmlMeta().FindAllSubmatch(head, 8) {
		v := tidy(html.UnescapeString(strings.ToValidUTF8(string(m[2])+string(m[3]), "")))
		if strings.EqualFold(string(m[1]), "description") {
			fm.Description = v
		} else {
			for t := range strings.SplitSeq(v, ",") {
				if t = strings.TrimSpace(t); t != "" && len(fm.Tags) < MaxListItems {
					fm.Tags = append(fm.Tags, t)
				}
			}
		}
	}
	return fm
}

// htmlLines marks the first heading that begins on each line, and keeps scripts, styles and
// comments whole.
func htmlLines(data []byte) []Line {
	lines := PlainLines(data)
	at := 0 // the line that contains the current byte
	skip := func(to int) {
		first := at
		for at+1 < len(lines) && lines[at].End <= to {
			at++
			lines[at].Group, lines[at].First = inBlock, first
		}
	}
	var ends tagEnds
	for i := 0; i < len(data); {
		j := bytes.IndexByte(data[i:], '<')
		if j < 0 {
			break
		}
		i += j
		for at+1 < len(lines) && lines[at].End <= i {
			at++
		}
		if n := ends.skipped(data, i); n > 0 {
			skip(i + n - 1)
			i += n
			continue
		}
		l := &lines[at]
		if l.Level == 0 && i+2 < len(data) {
			part := data[i:min(len(data), i+maxHTMLTitle+400)]
			switch {
			case part[1]|0x20 == 'h' && IsDigit(part[2]):
				if m := htmlHeading().FindSubmatch(part); m != nil {
					l.Level, l.Heading = int(m[1][0]-'0'), CleanHeading(string(m[2]))
				}
			case part[1]|0x20 == 't' && part[2]|0x20 == 'i':
				if m := htmlTitle().FindSubmatch(part); m != nil {
					l.Level, l.Heading = 1, CleanHeading(string(m[1]))
				}
			}
		}
		i++
	}
	return lines
}

// tagEnds finds the ends of comments, scripts and styles. It remembers which of these kinds
// have no further end, so that a page of unclosed tags takes linear time.
type tagEnds struct{ never [3]bool }

var unseen = [...]struct{ start, end string }{{"<!--", "-->"}, {"<script", "</script>"}, {"<style", "</style>"}}

// skipped returns the length of the comment, script or style at byte i, or 0 if there is none
// or it is never closed.
func (t *tagEnds) skipped(data []byte, i int) int {
	for k, u := range unseen {
		if t.never[k] || len(data)-i < len(u.start) || !strings.EqualFold(string(data[i:i+len(u.start)]), u.start) {
			continue
		}
		if n := indexFold(data[i:], u.end); n >= 0 {
			return n + len(u.end)
		}
		t.never[k] = true
	}
	return 0
}

// indexFold is bytes.Index for an ASCII needle in lower case, and ignores the case of b.
func indexFold(b []byte, needle string) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], needle[0])
		if i < 0 || at+i+len(needle) > len(b) {
			return -1
		}
		at += i
		if strings.EqualFold(string(b[at:at+len(needle)]), needle) {
			return at
		}
		at++
	}
}

// dropTags removes the tags, comments, scripts and styles of HTML, and decodes its entities.
func dropTags(text string) string {
	data := []byte(text)
	var b strings.Builder
	b.Grow(len(text))
	var ends tagEnds
	for i := 0; i < len(data); {
		j := bytes.IndexByte(data[i:], '<')
		if j < 0 || i+j+1 == len(data) {
			b.Write(data[i:])
			break
		}
		b.Write(data[i : i+j])
		i += j
		n := ends.skipped(data, i)
		if c := data[i+1]; n == 0 && (c == '/' || c == '!' || c == '?' || IsWordByte(c)) {
			part := data[i:min(len(data), i+maxTag)]
			n = bytes.IndexByte(part, '>') + 1
			if k := bytes.IndexByte(part[1:], '<'); k >= 0 && k+1 < n {
				n = 0 // a less-than sign that begins no tag
			}
		}
		if n == 0 {
			n = 1
		}
		b.WriteByte(' ')
		for range bytes.Count(data[i:i+n], []byte("\n")) { // keep the line breaks
			b.WriteByte('\n')
		}
		i += n
	}
	return html.UnescapeString(b.String())
}
