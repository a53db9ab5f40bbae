package index

import (
	"bytes"
	"unicode/utf8"
)

// chunk is a run of whole lines of a page, or a part of one very long line.
type chunk struct {
	start, end int      // bytes in the file
	lines      [2]int   // first and last line, from 1
	crumbs     []string // the headings above its start, outermost first
	headings   []string // those within it; the first may begin it
	// anchors are those of the last heading above its start ("" where there is
	// none) and of each of headings.
	anchors []string
	// head is the bytes of the lines that say what a chunk is a part of where a
	// table or a code fence had to be cut: the table's header, the fence's first
	// line. They lie before start; empty for most.
	head [2]int
}

const (
	chunkTarget = 2 << 10  // small chunks are merged up to this many bytes
	chunkSplit  = 4 << 10  // larger ones are split at blank lines
	maxFence    = 32 << 10 // code fences are cut beyond this alone
	maxLine     = 8 << 10  // a longer line is read as several
	maxHead     = 1 << 10  // of a table's header
)

// line is one line of a file, or a part of a very long one, with what the
// parser made of it.
type line struct {
	start, end int // bytes, the line feed included
	number     int // from 1
	level      int // of the heading that begins here; 0: none
	heading    string
	blank      bool
	// structure is a line that says nothing by itself: a heading, a rule, front
	// matter, a closing tag.
	structure bool
	group     group
	first     int // of a group's lines: the index of the one that begins it
}

// group is what a line is a further line of.
type group uint8

const (
	alone   group = iota
	inFence       // code, comments, scripts: whole up to maxFence
	inTable       // rows: whole up to chunkTarget, then cut between any two
	inBlock       // front matter, a notebook's cell: as inFence, and nothing to repeat
)

// eachLine calls f with the bounds of every line, the line feed included.
func eachLine(data []byte, f func(start, end int)) {
	for at := 0; at < len(data); {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		f(at, end)
		at = end
	}
}

// plainLines returns the lines of a text without any structure.
func plainLines(data []byte) []line {
	lines := make([]line, 0, bytes.Count(data, []byte{'\n'})+1)
	n := 0
	eachLine(data, func(start, end int) {
		n++
		lines = append(lines, line{start: start, end: end, number: n, blank: len(bytes.TrimSpace(data[start:end])) == 0})
	})
	return lines
}

// splitLong makes several lines of each that is longer than maxLine, so that a
// file without line feeds has chunks too. It cuts after a sentence, else at a
// blank, else between two characters.
func splitLong(data []byte, lines []line) []line {
	long := false
	for _, l := range lines {
		long = long || l.end-l.start > maxLine
	}
	if !long {
		return lines
	}
	var out []line
	moved := make([]int, len(lines)) // where each line is now
	for i, l := range lines {
		moved[i] = len(out)
		l.first = moved[l.first]
		for long := l.end-l.start > maxLine; long && l.end-l.start > chunkTarget+chunkTarget/2; {
			part := l
			part.end = l.start + softCut(data[l.start:l.start+chunkTarget])
			out = append(out, part)
			l.start, l.level, l.heading, l.structure = part.end, 0, "", false
		}
		out = append(out, l)
	}
	return out
}

// softCut returns where to cut a piece of a long line.
func softCut(b []byte) int {
	blank := 0
	for i := len(b) - 1; i > len(b)/2; i-- {
		if b[i] != ' ' {
			continue
		}
		if blank == 0 {
			blank = i + 1
		}
		if c := b[i-1]; c == '.' || c == '!' || c == '?' {
			return i + 1
		}
	}
	if blank > 0 {
		return blank
	}
	n := len(b)
	for back := 0; n > 0 && !utf8.RuneStart(b[n-1]) && back < utf8.UTFMax; back++ {
		n--
	}
	// The last character may be whole or not: leave it to the next piece.
	if n > 1 && b[n-1] >= utf8.RuneSelf {
		n--
	}
	return n
}

// cutChunks cuts at headings, merges small neighbours and splits what is large.
// The chunks hold every line once, in order.
func cutChunks(lines []line, maxChunks int) (chunks []chunk, truncated bool) {
	if len(lines) == 0 {
		return nil, false
	}
	type above struct {
		level int
		text  string
	}
	var stack []above
	sizes := sectionSizes(lines)
	anchors := anchorer{}
	anchor := "" // of the last heading
	var cur chunk
	open, says := false, false // says: the open chunk has more than structure
	closeAt := func(i int) {   // lines before i belong to cur
		cur.end, cur.lines[1] = lines[i-1].end, lines[i-1].number
		chunks = append(chunks, cur)
		open, says = false, false
	}
	for i, l := range lines {
		size := l.start - cur.start
		switch {
		case !open:
		case l.level > 0:
			// A section begins a chunk of its own unless what is open and the
			// section together stay small, or nothing is said yet.
			if (says || size >= chunkSplit) && size+sizes[i] > chunkTarget {
				closeAt(i)
			}
		case !says && size < chunkSplit:
		case l.mayCut(lines) && (size >= chunkSplit || size >= chunkTarget && (lines[i-1].blank || l.group == inTable || l.number == lines[i-1].number)):
			closeAt(i)
		}
		if l.level > 0 {
			for len(stack) > 0 && stack[len(stack)-1].level >= l.level {
				stack = stack[:len(stack)-1]
			}
			stack = append(stack, above{l.level, l.heading})
		}
		if !open {
			if len(chunks) == maxChunks {
				return chunks, true
			}
			open = true
			cur = chunk{start: l.start, lines: [2]int{l.number, l.number}, head: l.head(lines)}
			for _, s := range stack {
				cur.crumbs = append(cur.crumbs, s.text)
			}
			cur.anchors = []string{anchor}
		}
		says = says || !l.blank && !l.structure && l.level == 0
		if l.level > 0 {
			anchor = anchors.next(l.heading)
			cur.headings = append(cur.headings, l.heading)
			cur.anchors = append(cur.anchors, anchor)
		}
	}
	last := len(chunks) - 1
	if !says && last >= 0 { // what says nothing by itself ends the chunk before it
		c := &chunks[last]
		c.headings = append(c.headings, cur.headings...)
		c.anchors = append(c.anchors, cur.anchors[1:]...)
		c.end, c.lines[1] = lines[len(lines)-1].end, lines[len(lines)-1].number
		return chunks, false
	}
	closeAt(len(lines))
	return chunks, false
}

// mayCut tells whether a chunk may begin at the line.
func (l line) mayCut(lines []line) bool {
	if l.group == alone {
		return true
	}
	size := l.start - lines[l.first].start
	if l.group == inTable {
		return size >= chunkTarget
	}
	return size >= maxFence
}

// head returns what is repeated before a chunk that begins at the line.
func (l line) head(lines []line) [2]int {
	if l.group != inFence && l.group != inTable {
		return [2]int{}
	}
	first := lines[l.first]
	end := first.end
	if next := l.first + 1; l.group == inTable && next < len(lines) && lines[next].structure && lines[next].group == inTable {
		end = lines[next].end
	}
	if end > l.start || end-first.start > maxHead {
		return [2]int{}
	}
	return [2]int{first.start, end}
}

// sectionSizes returns for each heading the bytes from it to the next heading
// that has text before it: a heading stays with what it leads to.
func sectionSizes(lines []line) map[int]int {
	sizes := map[int]int{}
	end := lines[len(lines)-1].end
	next, after := end, end // the nearest heading below, and where its section ends
	text := false           // there is text between here and next
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		if l.level == 0 {
			text = text || !l.blank
			continue
		}
		if text {
			after = next
		}
		sizes[i] = after - l.start
		next, text = l.start, false
	}
	return sizes
}

// isBinary tells whether data is no text: a NUL among its first bytes, or much
// that is not UTF-8.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad := 0
	for i := 0; i < len(head); {
		r, size := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && size == 1 && len(head)-i >= utf8.UTFMax {
			bad++
		}
		i += size
	}
	return bad > 16+len(head)/10
}
