package merge

import "strings"

const bom = "\ufeff"

// Plain returns a file's text in the form of a form field: with LF line endings and without
// a byte order mark.
func Plain(file string) string {
	return toLF(strings.TrimPrefix(file, bom))
}

func toLF(s string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}

// Endings gives a text from a browser the line endings of its file. Existing lines keep
// their endings, and new lines get the most common one. A byte order mark stays. The last
// line ends with a line ending unless it had none in the file. Endings(f, Plain(f)) is f.
func Endings(file, text string) string {
	text = toLF(text)
	body, marked := strings.CutPrefix(file, bom)
	old := cutLines(body)
	if n := len(old); (n == 0 || old[n-1].end != "") && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	var out strings.Builder
	if marked {
		out.WriteString(bom)
	}
	usual, uniform := usualEnd(old)
	if uniform {
		out.WriteString(strings.ReplaceAll(text, "\n", usual))
		return out.String()
	}
	now := cutLines(text)
	ends := keptEnds(old, now, usual)
	for i, l := range now {
		out.WriteString(l.text)
		if l.end != "" {
			out.WriteString(ends[i])
		}
	}
	return out.String()
}

// keptEnds returns the ending of each line. The lines before the first change and after the
// last change keep their endings. Each line in between gets the ending of the first unused
// old line with the same text, or usual if there is none. The work is linear.
func keptEnds(old, now []endedLine, usual string) []string {
	ends := make([]string, len(now))
	first := 0
	for first < len(old) && first < len(now) && old[first].text == now[first].text {
		ends[first] = old[first].end
		first++
	}
	last := 0
	for last < len(old)-first && last < len(now)-first && old[len(old)-1-last].text == now[len(now)-1-last].text {
		ends[len(now)-1-last] = old[len(old)-1-last].end
		last++
	}
	left := map[string][]string{}
	for _, l := range old[first : len(old)-last] {
		left[l.text] = append(left[l.text], l.end)
	}
	for i := first; i < len(now)-last; i++ {
		if l := left[now[i].text]; len(l) > 0 {
			ends[i], left[now[i].text] = l[0], l[1:]
		}
	}
	for i := range ends {
		if ends[i] == "" {
			ends[i] = usual
		}
	}
	return ends
}

type endedLine struct{ text, end string }

func cutLines(s string) []endedLine {
	var out []endedLine
	for s != "" {
		i := strings.IndexAny(s, "\r\n")
		if i < 0 {
			return append(out, endedLine{s, ""})
		}
		n := 1
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		out = append(out, endedLine{s[:i], s[i : i+n]})
		s = s[i+n:]
	}
	return out
}

// usualEnd returns the most common line ending. uniform reports whether there is no other.
func usualEnd(lines []endedLine) (end string, uniform bool) {
	count := map[string]int{}
	for _, l := range lines {
		if l.end != "" {
			count[l.end]++
		}
	}
	end = "\n"
	for _, e := range []string{"\r\n", "\r"} {
		if count[e] > count[end] {
			end = e
		}
	}
	return end, len(count) <= 1
}
