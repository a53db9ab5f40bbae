package index

import (
	"path"
	"strings"
)

// page is a file as the index sees it.
type page struct {
	frontMatter
	chunks    []chunk
	lines     int
	truncated bool // the file has more chunks than are indexed
}

// parsePage reads a file. It never fails: what it cannot make sense of is text.
func parsePage(name string, data []byte, maxChunks int) page {
	var p page
	var lines []line
	p.frontMatter, lines = readPage(name, data)
	if len(lines) > 0 {
		p.lines = lines[len(lines)-1].number
	}
	p.chunks, p.truncated = cutChunks(lines, maxChunks)
	if p.Title == "" {
		p.Title = titleOf(name, lines)
	}
	return p
}

// readPage returns the front matter and the lines of a file.
func readPage(name string, data []byte) (fm frontMatter, lines []line) {
	switch f := format(name); f {
	case formatMarkdown, formatMarkup:
		var body int
		fm, body = cutFrontMatter(data)
		if f == formatMarkup {
			return fm, splitLong(data, markupLines(name, data, body))
		}
		return fm, splitLong(data, markdownLines(data, body))
	case formatHTML:
		fm = htmlFrontMatter(data)
	}
	return fm, parseLines(name, data, 0)
}

// parseLines returns the lines of a part of a file that begins at a byte, where
// a chunk does.
func parseLines(name string, data []byte, start int) []line {
	body := 0
	var lines []line
	switch f := format(name); f {
	case formatMarkdown, formatMarkup:
		if start == 0 {
			body = skipFrontMatter(data)
		}
		if f == formatMarkup {
			lines = markupLines(name, data, body)
		} else {
			lines = markdownLines(data, body)
		}
	case formatHTML:
		lines = htmlLines(data)
	case formatSource:
		lines = sourceLines(name, data)
	case formatTable:
		lines = tableLines(data)
	case formatNotebook:
		lines = notebookLines(data)
	default:
		lines = plainLines(data)
	}
	return splitLong(data, lines)
}

type fileFormat int

const (
	formatText       fileFormat = iota
	formatMarkdown              // and MDX
	formatMarkup                // reStructuredText, AsciiDoc, Org
	formatHTML                  //
	formatTranscript            // subtitles with times
	formatNotebook              // Jupyter's
	formatTable                 // CSV, TSV
	formatData                  // JSON, YAML and the like: no sections
	formatSource                // programs
)

var formats = map[string]fileFormat{
	".md": formatMarkdown, ".mdx": formatMarkdown, ".markdown": formatMarkdown, ".mdc": formatMarkdown, ".qmd": formatMarkdown, ".rmd": formatMarkdown,
	".rst": formatMarkup, ".adoc": formatMarkup, ".asciidoc": formatMarkup, ".org": formatMarkup,
	".html": formatHTML, ".htm": formatHTML, ".xhtml": formatHTML,
	".srt": formatTranscript, ".vtt": formatTranscript, ".ipynb": formatNotebook,
	".csv": formatTable, ".tsv": formatTable,
	".json": formatData, ".jsonl": formatData, ".jsonc": formatData, ".yaml": formatData, ".yml": formatData, ".toml": formatData, ".xml": formatData,
	".ini": formatData, ".conf": formatData, ".lock": formatData, ".sum": formatData, ".log": formatData, ".svg": formatData,
	".txt": formatText, ".text": formatText, "": formatText,
}

func format(name string) fileFormat {
	f, ok := formats[strings.ToLower(path.Ext(name))]
	if !ok {
		return formatSource
	}
	return f
}

// titleOf falls back on the first heading, then on the file's name.
func titleOf(name string, lines []line) string {
	base := path.Base(name)
	f := format(name)
	if f == formatSource || f == formatData || f == formatTable {
		return base
	}
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
	stem := strings.TrimSuffix(base, path.Ext(base))
	if up := path.Base(path.Dir(name)); (stem == "index" || stem == "README" || stem == "SKILL") && up != "." && up != "/" {
		return up
	}
	return stem
}

// indexable returns the part of a chunk's text that is worth indexing, and
// reading where it is shown by itself: targets of links, imports of MDX, the
// marks of HTML, the times of subtitles and the JSON of notebooks only blur
// what a page is about.
func indexable(f fileFormat, text string) string {
	switch f {
	case formatMarkdown:
		return dropImports(dropLinkTargets(text))
	case formatHTML:
		return dropTags(text)
	case formatTranscript:
		return spoken(text)
	case formatNotebook:
		return cellText(text)
	}
	return text
}
