package parse

import (
	"bytes"
	"unicode/utf8"
)

// Chunk is a run of whole lines of a page, or a part of a very long line.
type Chunk struct {
	Start, End int      // bytes in the file
	Lines      [2]int   // first and last line, counted from 1
	Crumbs     []string // the headings of the sections in which the chunk starts, outermost first
	Headings   []string // the headings within the chunk; the first may be on its first line
	// Anchors holds the anchor of the last heading above the start ("" if there is none), and
	// then the anchor of each of Headings.
	Anchors []string
	// Head is the range of a table's header or of a code fence's first line, in bytes, if the
	// chunk begins in the middle of the table or fence. It is before Start.
	Head [2]int
}

const (
	ChunkTarget = 2 << 10  // chunks are merged up to this size; above it, a blank line ends a chunk
	ChunkSplit  = 4 << 10  // a chunk of this size ends at any line
	MaxFence    = 32 << 10 // longer code fences are cut
	maxLine     = 8 << 10  // longer lines are read as several
	MaxHead     = 1 << 10  // the longest header of a table or code fence that is repeated
)

// Line is one line of a file, or a part of a very long one, with its role.
type Line struct {
	Start, End int // bytes, the line feed included
	Number     int // counted from 1
	Level      int // the level of the heading that begins here; 0: none
	Heading    string
	Blank      bool
	// Structure marks a line without content of its own: a heading, a rule, front matter, a
	// closing tag.
	Structure bool
	Group     group
	First     int // for lines of a group, the index of the group's first line
}

// group is the kind of block that a line continues.
type group uint8

const (
	alone   group = iota
	InFence       // code, comments, scripts: kept whole up to MaxFence
	InTable       // rows: kept whole up to ChunkTarget, then cut between any two rows
	inBlock       // front matter, a notebook's cell: like InFence, but Chunk.Head repeats nothing
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

// PlainLines returns the lines of a text. It marks blank lines, but no headings or blocks.
func PlainLines(data []byte) []Line {
	lines := make([]Line, 0, bytes.Count(data, []byte{'\n'})+1)
	n := 0
	eachLine(data, func(start, end int) {
		n++
		lines = append(lines, Line{Start: start, End: end, Number: n, Blank: len(bytes.TrimSpace(data[start:end])) == 0})
	})
	return lines
}

// splitLong splits each line that is longer than maxLine, so that files without line feeds have
// chunks too. It cuts after a sentence, or else at a space, or else between two characters.
func splitLong(data []byte, lines []Line) []Line {
	long := false
	for _, l := range lines {
		long = long || l.End-l.Start > maxLine
	}
	if !long {
		return lines
	}
	var out []Line
	moved := make([]int, len(lines)) // the new index of each line
	for i, l := range lines {
		moved[i] = len(out)
		l.First = moved[l.First]
		for long := l.End-l.Start > maxLine; long && l.End-l.Start > ChunkTarget+ChunkTarget/2; {
			part := l
			part.End = l.Start + softCut(data[l.Start:l.Start+ChunkTarget])
			out = append(out, part)
			l.Start, l.Level, l.Heading, l.Structure = part.End, 0, "", false
		}
		out = append(out, l)
	}
	return out
}

// softCut returns the position at which to cut a long line.
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
	// The last character may be incomplete, so leave it to the next piece.
	if n > 1 && b[n-1] >= utf8.RuneSelf {
		n--
	}
	return n
}

// cutChunks cuts at headings, merges small neighbours and splits large sections. Every line is
// in exactly one chunk, unless there are more than maxChunks. The lines keep their order.
func cutChunks(lines []Line, maxChunks int) (chunks []Chunk, truncated bool) {
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
	anchor := "" // the anchor of the last heading
	var cur Chunk
	open, says := false, false // says: the open chunk contains more than structure
	closeAt := func(i int) {   // ends the open chunk before line i
		cur.End, cur.Lines[1] = lines[i-1].End, lines[i-1].Number
		chunks = append(chunks, cur)
		open, says = false, false
	}
	for i, l := range lines {
		size := l.Start - cur.Start
		switch {
		case !open:
		case l.Level > 0:
			// A section begins a new chunk, unless the open chunk has no text yet, or the open
			// chunk and the section stay small together.
			if (says || size >= ChunkSplit) && size+sizes[i] > ChunkTarget {
				closeAt(i)
			}
		case !says && size < ChunkSplit:
		case l.mayCut(lines) && (size >= ChunkSplit || size >= ChunkTarget && (lines[i-1].Blank || l.Group == InTable || l.Number == lines[i-1].Number)):
			closeAt(i)
		}
		if l.Level > 0 {
			for len(stack) > 0 && stack[len(stack)-1].level >= l.Level {
				stack = stack[:len(stack)-1]
			}
			stack = append(stack, above{l.Level, l.Heading})
		}
		if !open {
			if len(chunks) == maxChunks {
				return chunks, true
			}
			open = true
			cur = Chunk{Start: l.Start, Lines: [2]int{l.Number, l.Number}, Head: l.head(lines)}
			for _, s := range stack {
				cur.Crumbs = append(cur.Crumbs, s.text)
			}
			cur.Anchors = []string{anchor}
		}
		says = says || !l.Blank && !l.Structure && l.Level == 0
		if l.Level > 0 {
			anchor = anchors.next(l.Heading)
			cur.Headings = append(cur.Headings, l.Heading)
			cur.Anchors = append(cur.Anchors, anchor)
		}
	}
	last := len(chunks) - 1
	if !says && last >= 0 { // the last lines have no content, so they join the previous chunk
		c := &chunks[last]
		c.Headings = append(c.Headings, cur.Headings...)
		c.Anchors = append(c.Anchors, cur.Anchors[1:]...)
		c.End, c.Lines[1] = lines[len(lines)-1].End, lines[len(lines)-1].Number
		return chunks, false
	}
	closeAt(len(lines))
	return chunks, false
}

// mayCut reports whether a chunk may begin at the line.
func (l Line) mayCut(lines []Line) bool {
	if l.Group == alone {
		return true
	}
	size := l.Start - lines[l.First].Start
	if l.Group == InTable {
		return size >= ChunkTarget
	}
	return size >= MaxFence
}

// head returns the range to repeat before a chunk that begins at the line.
func (l Line) head(lines []Line) [2]int {
	if l.Group != InFence && l.Group != InTable {
		return [2]int{}
	}
	first := lines[l.First]
	end := first.End
	if next := l.First + 1; l.Group == InTable && next < len(lines) && lines[next].Structure && lines[next].Group == InTable {
		end = lines[next].End
	}
	if end > l.Start || end-first.Start > MaxHead {
		return [2]int{}
	}
	return [2]int{first.Start, end}
}

// sectionSizes returns, for each heading, the bytes from the heading to the next heading that text
// separates from it. So a heading without text stays with the section below it.
func sectionSizes(lines []Line) map[int]int {
	sizes := map[int]int{}
	end := lines[len(lines)-1].End
	next, after := end, end // the nearest heading below, and where its section ends
	text := false           // there is text between this heading and the next
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		if l.Level == 0 {
			text = text || !l.Blank
			continue
		}
		if text {
			after = next
		}
		sizes[i] = after - l.Start
		next, text = l.Start, false
	}
	return sizes
}

// isBinary reports whether data is not text: its first 8 KB contain a NUL or much invalid
// UTF-8.
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
