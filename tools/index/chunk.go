package index

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"satchel/internal/frontmatter"
)

// page is a file as the index sees it.
type page struct {
	frontMatter
	chunks    []chunk
	lines     int
	truncated bool // the file has more chunks than are indexed
}

// chunk is a run of whole lines of a page.
type chunk struct {
	start, end int      // bytes in the file
	lines      [2]int   // first and last line, from 1
	crumbs     []string // the headings above its start, outermost first
	headings   []string // those within it; the first may begin it
	// anchors are those of the last heading above its start ("" where there is
	// none) and of each of headings.
	anchors []string
}

const (
	chunkTarget = 2 << 10 // small chunks are merged up to this many bytes
	chunkSplit  = 4 << 10 // larger ones are split at blank lines, never within a code fence
)

// line is one line of a file with what the parser made of it.
type line struct {
	start, end int // bytes, the line feed included
	level      int // of the heading that begins here; 0: none
	heading    string
	blank      bool
	whole      bool // inside a code fence, a table or front matter: no cut before it
}

// parsePage reads a file. It never fails: what it cannot make sense of is text.
func parsePage(name string, data []byte, maxChunks int) page {
	var p page
	var lines []line
	p.frontMatter, lines = readPage(name, data)
	p.lines = len(lines)
	p.chunks, p.truncated = cutChunks(lines, maxChunks)
	if p.Title == "" {
		p.Title = titleOf(name, lines)
	}
	return p
}

// readPage returns the front matter and the lines of a file.
func readPage(name string, data []byte) (fm frontMatter, lines []line) {
	if format(name) == formatMarkdown {
		var body int
		fm, body = cutFrontMatter(data)
		return fm, markdownLines(data, body)
	}
	return fm, parseLines(name, data, 0)
}

// parseLines returns the lines of a part of a file that begins at a byte, where
// a chunk does.
func parseLines(name string, data []byte, start int) []line {
	switch format(name) {
	case formatMarkdown:
		body := 0
		if start == 0 {
			body = frontmatter.Skip(data)
		}
		return markdownLines(data, body)
	case formatHTML:
		return htmlLines(data)
	}
	return plainLines(data)
}

type fileFormat int

const (
	formatText fileFormat = iota
	formatMarkdown
	formatHTML
	formatSource
)

func format(name string) fileFormat {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".mdx", ".markdown", ".mdc", ".qmd", ".rmd":
		return formatMarkdown
	case ".html", ".htm", ".xhtml":
		return formatHTML
	case ".txt", ".text", ".rst", ".adoc", ".org", ".srt", ".vtt", "":
		return formatText
	}
	return formatSource
}

// titleOf falls back on the first heading, then on the file's name.
func titleOf(name string, lines []line) string {
	best := 0
	title := ""
	for _, l := range lines {
		if l.level > 0 && l.heading != "" && (best == 0 || l.level < best) {
			best, title = l.level, l.heading
			if best == 1 {
				break
			}
		}
	}
	if best == 1 || best == 2 {
		return title
	}
	base := path.Base(name)
	if f := format(name); f == formatSource {
		return base
	}
	stem := strings.TrimSuffix(base, path.Ext(base))
	if up := path.Base(path.Dir(name)); (stem == "index" || stem == "README" || stem == "SKILL") && up != "." && up != "/" {
		return up
	}
	return stem
}

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

func plainLines(data []byte) []line {
	var lines []line
	eachLine(data, func(start, end int) {
		lines = append(lines, line{start: start, end: end, blank: len(bytes.TrimSpace(data[start:end])) == 0})
	})
	return lines
}

// cutChunks cuts at headings, merges small neighbours and splits what is large.
func cutChunks(lines []line, maxChunks int) (chunks []chunk, truncated bool) {
	if len(lines) == 0 {
		return nil, false
	}
	type above struct {
		level int
		text  string
	}
	var stack []above
	anchors := anchorer{}
	anchor := "" // of the last heading
	var cur chunk
	open := false
	closeAt := func(i int) { // lines before i belong to cur
		if !open {
			return
		}
		cur.end, cur.lines[1] = lines[i-1].end, i
		chunks = append(chunks, cur)
		open = false
	}
	for i, l := range lines {
		size := l.start - cur.start
		if l.level > 0 {
			// A section begins a chunk of its own unless what is open and the
			// section together stay small.
			if open && size+sectionSize(lines, i) > chunkTarget {
				closeAt(i)
			}
			for len(stack) > 0 && stack[len(stack)-1].level >= l.level {
				stack = stack[:len(stack)-1]
			}
			stack = append(stack, above{l.level, l.heading})
		} else if open && !l.whole && (size >= chunkSplit || size >= chunkTarget && i > 0 && lines[i-1].blank) {
			closeAt(i)
		}
		if !open {
			if len(chunks) == maxChunks {
				return chunks, true
			}
			open = true
			cur = chunk{start: l.start, lines: [2]int{i + 1, i + 1}}
			for _, s := range stack {
				cur.crumbs = append(cur.crumbs, s.text)
			}
			cur.anchors = []string{anchor}
		}
		if l.level > 0 {
			anchor = anchors.next(l.heading)
			cur.headings = append(cur.headings, l.heading)
			cur.anchors = append(cur.anchors, anchor)
		}
	}
	closeAt(len(lines))
	return chunks, false
}

// sectionSize returns the bytes from the heading at i to the next heading that
// has text before it: a heading stays with what it leads to.
func sectionSize(lines []line, i int) int {
	text := false
	for j := i + 1; j < len(lines); j++ {
		size := lines[j].start - lines[i].start
		if lines[j].level > 0 && text || size > chunkTarget {
			return size
		}
		text = text || !lines[j].blank && lines[j].level == 0
	}
	return lines[len(lines)-1].end - lines[i].start
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
