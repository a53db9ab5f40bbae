package parse

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Jupyter notebook is JSON in which programs write each line of a cell on a separate line. It
// is read line by line, not as JSON, so that the line numbers of chunks are those of the file.

// notebookLines keeps cells whole, and marks the headings in Markdown cells.
func notebookLines(data []byte) []Line {
	lines := PlainLines(data)
	cell, markdown, source := -1, false, false
	for i := range lines {
		l := &lines[i]
		t := bytes.TrimSpace(data[l.Start:min(l.End, l.Start+4*maxHeadingBytes)])
		kind, ok := bytes.CutPrefix(t, []byte(`"cell_type":`))
		switch {
		case ok:
			cell, markdown, source = i, bytes.Contains(kind, []byte(`"markdown"`)), false
			l.Structure = true
			continue
		case bytes.HasPrefix(t, []byte(`"source":`)):
			source = true
			l.Structure = true
		case bytes.HasPrefix(t, []byte("]")):
			source = false
		}
		if cell >= 0 {
			l.Group, l.First = inBlock, cell
		}
		if !source || bytes.HasSuffix(t, []byte("[")) {
			l.Structure = true
			continue
		}
		if s, ok := jsonString(t); ok && markdown {
			if level, h := atxHeading([]byte(s)); level > 0 && l.Start < len(data) {
				l.Level, l.Heading = level, h
			}
		}
	}
	return lines
}

// jsonString reads a line that contains one string of a list.
func jsonString(t []byte) (s string, ok bool) {
	if t = bytes.TrimSuffix(t, []byte(",")); len(t) < 2 || t[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(t, &s) == nil
}

// cellText returns the text and the output of cells, without pictures.
func cellText(text string) string {
	var b strings.Builder
	list := ""
	for l := range strings.Lines(text) {
		t := bytes.TrimSpace([]byte(l))
		if s, ok := jsonString(t); ok && !bytes.Contains(t, []byte(`": `)) || ok && list == "source" {
			if list == "source" || list == "text" || list == "text/plain" {
				b.WriteString(s)
				if !strings.HasSuffix(s, "\n") {
					b.WriteByte('\n')
				}
			}
			continue
		}
		if key, rest, ok := strings.Cut(string(t), `": `); ok && len(key) < 40 {
			list = strings.TrimPrefix(key, `"`)
			if s, ok := jsonString([]byte(rest)); ok && list == "source" {
				b.WriteString(s + "\n")
			}
		}
	}
	return b.String()
}
