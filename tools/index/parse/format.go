package parse

import (
	"path"
	"strings"
)

// Page is a file as the index sees it.
type Page struct {
	frontMatter
	Chunks    []Chunk
	Lines     int
	Truncated bool // the file has more chunks than are indexed
}

// Parse reads a file. It never fails: malformed markup is text.
func Parse(name string, data []byte, maxChunks int) Page {
	var p Page
	var lines []Line
	p.frontMatter, lines = ReadPage(name, data)
	if len(lines) > 0 {
		p.Lines = lines[len(lines)-1].Number
	}
	p.Chunks, p.Truncated = cutChunks(lines, maxChunks)
	if p.Title == "" {
		p.Title = titleOf(name, lines)
	}
	return p
}

// ReadPage returns the front matter and the lines of a file.
func ReadPage(name string, data []byte) (fm frontMatter, lines []Line) {
	switch f := Format(name); f {
	case FormatMarkdown, formatMarkup, formatRestructured, formatAsciiDoc:
		var body int
		fm, body = CutFrontMatter(data)
		if f.isMarkup() {
			return fm, splitLong(data, markupLines(name, data, body))
		}
		return fm, splitLong(data, MarkdownLines(data, body))
	case FormatHTML:
		fm = htmlFrontMatter(data)
	}
	return fm, ParseLines(name, data, 0)
}

// ParseLines returns the lines of data, which is the part of a file from byte start on. A chunk
// must begin there.
func ParseLines(name string, data []byte, start int) []Line {
	body := 0
	var lines []Line
	switch f := Format(name); f {
	case FormatMarkdown, formatMarkup, formatRestructured, formatAsciiDoc:
		if start == 0 {
			body = skipFrontMatter(data)
		}
		if f.isMarkup() {
			lines = markupLines(name, data, body)
		} else {
			lines = MarkdownLines(data, body)
		}
	case FormatHTML, formatComponent:
		lines = htmlLines(data)
	case formatSource, formatJSX:
		lines = sourceLines(name, data)
	case FormatTable:
		lines = tableLines(data)
	case FormatNotebook:
		lines = notebookLines(data)
	default:
		lines = PlainLines(data)
	}
	return splitLong(data, lines)
}

// FileFormat determines how a file is read.
type FileFormat int

const (
	formatText         FileFormat = iota
	FormatMarkdown                // and MDX
	formatMarkup                  // Org
	formatRestructured            // reStructuredText
	formatAsciiDoc
	FormatHTML
	FormatTranscript // subtitles with times
	FormatNotebook   // Jupyter notebooks
	FormatTable      // CSV, TSV
	formatData       // JSON, YAML and similar: no sections
	formatSource     // programs
	formatJSX        // programs with markup: JSX, TSX
	formatComponent  // markup with programs: Vue, Astro, Svelte
)

// isMarkup reports whether markupLines reads files of the format.
func (f FileFormat) isMarkup() bool {
	return f == formatMarkup || f == formatRestructured || f == formatAsciiDoc
}

var formats = map[string]FileFormat{
	".md": FormatMarkdown, ".mdx": FormatMarkdown, ".markdown": FormatMarkdown, ".mdc": FormatMarkdown, ".qmd": FormatMarkdown, ".rmd": FormatMarkdown,
	".rst": formatRestructured, ".adoc": formatAsciiDoc, ".asciidoc": formatAsciiDoc, ".org": formatMarkup,
	".jsx": formatJSX, ".tsx": formatJSX, ".vue": formatComponent, ".astro": formatComponent, ".svelte": formatComponent,
	".html": FormatHTML, ".htm": FormatHTML, ".xhtml": FormatHTML,
	".srt": FormatTranscript, ".vtt": FormatTranscript, ".ipynb": FormatNotebook,
	".csv": FormatTable, ".tsv": FormatTable,
	".json": formatData, ".jsonl": formatData, ".jsonc": formatData, ".yaml": formatData, ".yml": formatData, ".toml": formatData, ".xml": formatData,
	".ini": formatData, ".conf": formatData, ".lock": formatData, ".sum": formatData, ".log": formatData, ".svg": formatData,
	".txt": formatText, ".text": formatText, "": formatText,
}

// Format returns the format of a file with this name.
func Format(name string) FileFormat {
	f, ok := formats[strings.ToLower(path.Ext(name))]
	if !ok {
		return formatSource
	}
	return f
}

// titleOf returns the first heading of level 1, or else of level 2, or else a title from the
// path. Programs, data and tables have the file's name as their title.
func titleOf(name string, lines []Line) string {
	base := path.Base(name)
	f := Format(name)
	if f == formatSource || f == formatJSX || f == formatData || f == FormatTable {
		return base
	}
	best := 0
	title := ""
	for _, l := range lines {
		if l.Level > 0 && l.Heading != "" && (best == 0 || l.Level < best) {
			best, title = l.Level, l.Heading
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

// Indexable returns the part of a chunk's text that is worth indexing: what a reader sees.
func Indexable(f FileFormat, text string) string {
	switch f {
	case FormatMarkdown:
		return readableMarkdown(text)
	case formatRestructured:
		return readableRestructured(text)
	case formatAsciiDoc:
		return readableAsciiDoc(text)
	case formatJSX, formatComponent:
		return readableSource(f, text)
	case FormatHTML:
		return dropTags(text)
	case FormatTranscript:
		return spoken(text)
	case FormatNotebook:
		return cellText(text)
	}
	return text
}
