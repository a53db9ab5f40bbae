package present

import (
	"strings"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
)

// snippetBytes is the approximate length of a snippet.
const snippetBytes = 320

// passage is one chunk of a document, as the index stores it.
type passage struct {
	postings.Passage
	head string // the header of the table in whose middle the passage begins; see tableHead
}

// snippet is the part of a passage that shows why it is a hit.
type snippet struct {
	text    string
	heading string
	anchor  string // the anchor of heading
	lines   [2]int
	from    int // the range of its bytes in the passage
	to      int
}

// makeSnippet picks the lines with the rarest of the terms, up to about most bytes. Of a long
// line, it picks the best sentences. It prefers other lines to front matter, which hits have in
// other fields.
func makeSnippet(a *parse.Analyzer, ps passage, name string, w highlightTerms, most int) snippet {
	data := []byte(ps.Text)
	lines := parse.ParseLines(name, data, ps.Start)
	heading := ""
	if i := strings.LastIndexByte(ps.Crumbs, '\n'); ps.Crumbs != "" {
		heading = ps.Crumbs[i+1:]
	}
	anchor, anchors, _ := strings.Cut(ps.Anchors, "\n")
	if len(lines) == 0 {
		return snippet{heading: heading, anchor: anchor, lines: ps.Lines}
	}
	f := parse.Format(name)
	masks := make([]uint64, len(lines))
	first := -1 // the first line that is not blank, a heading or structure
	for i, l := range lines {
		w.each(a, ps.Text[l.Start:l.End], func(_ int, mask uint64) { masks[i] |= mask })
		if first < 0 && !l.Blank && !l.Structure && l.Level == 0 {
			first = i
		}
	}
	size := func(l parse.Line) int { return len(strings.TrimRight(ps.Text[l.Start:l.End], " \t\r\n")) + 1 }
	best, bestScore := max(first, 0), 0.0
	for i, l := range lines {
		if masks[i] == 0 {
			continue
		}
		mask, n := uint64(0), 0
		for j := i; j < len(lines) && (j == i || n+size(lines[j]) <= most); j++ {
			n += size(lines[j])
			mask |= masks[j]
		}
		score := w.score(mask)
		if l.Level > 0 {
			score *= 1.05
		} else if l.Structure {
			score *= 0.5
		}
		if score > bestScore {
			best, bestScore = i, score
		}
	}
	last, n := best, size(lines[best])
	for last+1 < len(lines) && n+size(lines[last+1]) <= most {
		last++
		n += size(lines[last])
	}
	best, last = window(f, data, lines, best, last)
	for _, l := range lines[:best+1] {
		if l.Level > 0 {
			heading = l.Heading
			anchor, anchors, _ = strings.Cut(anchors, "\n")
		}
	}
	if f == parse.FormatTranscript {
		for i := best; i >= 0; i-- {
			if t := parse.CueTime(strings.TrimSpace(ps.Text[lines[i].Start:lines[i].End])); t != "" {
				heading = t
				break
			}
		}
	}
	s := snippet{heading: heading, anchor: anchor, from: lines[best].Start, to: lines[last].End,
		lines: [2]int{ps.Lines[0] + lines[best].Number - 1, ps.Lines[0] + lines[last].Number - 1}}
	var out []string
	for i := best; i <= last; i++ {
		t := strings.TrimRight(ps.Text[lines[i].Start:lines[i].End], " \t\r\n")
		if f == parse.FormatHTML {
			t = readable(name, t)
		}
		if len(t) > most {
			t = bestSentences(a, t, w, most)
		}
		out = append(out, t)
	}
	s.text = strings.Join(out, "\n")
	switch f {
	case parse.FormatMarkdown:
		s.text = wholeFences(header(ps, lines, best)+s.text, opening(data, lines, best))
	case parse.FormatTable:
		s.text = header(ps, lines, best) + s.text
	case parse.FormatNotebook:
		s.text = readable(name, ps.Text[s.from:s.to])
	}
	s.text = strings.Trim(shown(s.text), "\n")
	return s
}

// window moves the ends of the shown part of a passage. The result does not begin with the end
// of a code fence, does not end with blank lines or the beginning of a fence, and has a line
// of text if a line of text follows soon.
func window(f parse.FileFormat, data []byte, lines []parse.Line, from, to int) (first, last int) {
	const further = 8 // number of lines in which to look for a line of text
	fence := func(i int) (opens, closes bool) {
		if f != parse.FormatMarkdown {
			return false, false
		}
		return opensFence(data, lines, i), closesFence(data, lines, i)
	}
	says := func(i int) bool {
		opens, closes := fence(i)
		return !lines[i].Blank && !lines[i].Structure && lines[i].Level == 0 && !opens && !closes
	}
	first, last = from, to
	for first < last {
		if _, closes := fence(first); !closes && !lines[first].Blank {
			break
		}
		first++
	}
	for last > first {
		if opens, _ := fence(last); !opens && !lines[last].Blank {
			break
		}
		last--
	}
	for i := first; i <= last; i++ {
		if says(i) {
			return first, last
		}
	}
	for i := last + 1; i < len(lines) && i <= last+further; i++ {
		if says(i) {
			return first, i
		}
	}
	return first, last
}

// opensFence reports whether a line of Markdown begins a block of code.
func opensFence(data []byte, lines []parse.Line, i int) bool {
	l := lines[i]
	var f parse.FenceState
	return l.Group != parse.InFence && !l.Structure && f.Start(data[l.Start:l.End])
}

// closesFence reports whether a line of Markdown ends a block of code.
func closesFence(data []byte, lines []parse.Line, i int) bool {
	l := lines[i]
	if l.Group != parse.InFence || l.First >= i {
		return false
	}
	var f parse.FenceState
	if first := lines[l.First]; !f.Start(data[first.Start:first.End]) {
		return false // a comment, not a fence
	}
	f.Close(data[l.Start:l.End])
	return !f.Open()
}

// opening returns the line that opens the code fence around a line, or "" if there is none.
func opening(data []byte, lines []parse.Line, i int) string {
	l := lines[i]
	if l.Group != parse.InFence || l.First >= i {
		return ""
	}
	first := lines[l.First]
	var f parse.FenceState
	if !f.Start(data[first.Start:first.End]) {
		return "" // a comment, not a fence
	}
	return strings.TrimRight(parse.Clip(string(data[first.Start:first.End]), snippetBytes), " \t\r\n")
}

// header returns the lines that name the columns of the table around a line; "" if there
// are none, or if the line is one of them.
func header(ps passage, lines []parse.Line, i int) string {
	l := lines[i]
	if l.Group != parse.InTable {
		if i == 0 {
			return ps.head
		}
		return ""
	}
	first := lines[l.First]
	end := first.End
	if ps.head != "" && l.First == 0 {
		return ps.head
	}
	if next := l.First + 1; next < len(lines) && lines[next].Structure {
		if end = lines[next].End; i == next {
			end = first.End
		}
	}
	if l.Start < end || end-first.Start > parse.MaxHead {
		return ""
	}
	return ps.Text[first.Start:end]
}

// wholeFences returns a part of Markdown with every code fence opened and closed. open is the
// line that opens the fence in which the part begins; "" if it begins in none.
func wholeFences(text, open string) string {
	var f parse.FenceState
	if open != "" {
		f.Start([]byte(open))
		t := strings.TrimSpace(text)
		if probe := f; len(t) >= f.N {
			if probe.Close([]byte(t)); !probe.Open() {
				return "" // the text is nothing but the end of the fence
			}
		}
		text = open + "\n" + text
		f = parse.FenceState{}
	}
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return text
	}
	for l := range strings.Lines(text) {
		if f.Open() && f.Leaves([]byte(l)) {
			f = parse.FenceState{}
		}
		if f.Open() {
			f.Close([]byte(l))
		} else {
			f.Start([]byte(l))
		}
	}
	if !f.Open() {
		return text
	}
	end := strings.Repeat(string(rune(f.Char)), f.N)
	if f.Quoted {
		end = "> " + end
	}
	return strings.TrimRight(text, "\n") + "\n" + end
}

// sentenceEnds are the characters that end a sentence in scripts without blanks.
const sentenceEnds = "。！？｡"

// bestSentences shortens a long line to its best sentence and the sentences after it that fit.
// It shortens a sentence that is too long to the words around the first match.
func bestSentences(a *parse.Analyzer, text string, w highlightTerms, most int) string {
	cuts := []int{0} // starts of sentences
	for i, r := range text {
		switch {
		case r == '.' || r == '!' || r == '?':
			if i+1 < len(text) && text[i+1] == ' ' {
				cuts = append(cuts, i+2)
			}
		case r >= 0x3000 && strings.ContainsRune(sentenceEnds, r):
			cuts = append(cuts, i+len(string(r)))
		}
	}
	if cuts[len(cuts)-1] < len(text) {
		cuts = append(cuts, len(text))
	}
	masks := make([]uint64, len(cuts)-1)
	first := make([]int, len(cuts)-1) // the first match in each sentence
	at := 0
	w.each(a, text, func(start int, mask uint64) {
		for at+1 < len(masks) && start >= cuts[at+1] {
			at++
		}
		if masks[at] == 0 {
			first[at] = start
		}
		masks[at] |= mask
	})
	best := 0
	for i, m := range masks {
		if w.score(m) > w.score(masks[best]) {
			best = i
		}
	}
	from, to := cuts[best], cuts[best+1]
	if to-from > 2*most {
		return wordsAround(text[from:to], first[best]-from, most, from > 0, to < len(text))
	}
	for i := best + 1; i < len(masks) && cuts[i+1]-from <= most; i++ {
		to = cuts[i+1]
	}
	s := strings.TrimSpace(text[from:to])
	if from > 0 {
		s = "… " + s
	}
	if to < len(text) {
		s += " …"
	}
	return s
}

// wordsAround returns the part of a sentence around byte at: whole words if there are blanks,
// and always whole characters. most is about the length of the part.
func wordsAround(s string, at, most int, before, after bool) string {
	const near = 40 // bytes within which a blank is looked for
	from := max(0, min(at, len(s))-most/3)
	for from > 0 && from < len(s) && s[from]&0xc0 == 0x80 {
		from++
	}
	to := len(parse.Clip(s, from+most))
	if from > 0 {
		if i := strings.IndexByte(s[from:min(len(s), from+near)], ' '); i >= 0 {
			from += i + 1
		}
	}
	if to < len(s) {
		if i := strings.LastIndexByte(s[from:to], ' '); i > 0 && from+i > to-near {
			to = from + i
		}
	}
	t := strings.TrimSpace(s[min(from, to):to])
	if from > 0 || before {
		t = "…" + t
	}
	if to < len(s) || after {
		t += "…"
	}
	return t
}
