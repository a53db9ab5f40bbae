package render

import (
	"bytes"
	"strings"
)

// Limits of a Markdown document. A document beyond them is shown as source. The parser's
// work grows with the square of the number of open emphasis marks and brackets in a block, and
// faster with nesting. Its output grows with the product of the rows and columns of a table, and
// with the product of the footnotes and the references to them. The limits are checked before
// parsing, because the parser cannot be stopped.
const (
	MaxMarkdown = 256 << 10 // bytes
	maxNesting  = 48        // quote and list marks at the start of a line
	maxIndent   = 40        // columns before a list mark
	maxHeadings = 3000
	maxCells    = 20_000     // cells of tables
	maxNotes    = 1000       // footnotes and references to them; the parser compares all pairs
	maxHTML     = 2 << 20    // bytes of HTML
	maxMarkup   = 3 << 19    // bytes of tags in highlighted source code
	maxEscaped  = 1 << 20    // bytes of highlighted source code without tags
	maxWork     = 60_000_000 // sum of the squares of the delimiters of each block
	bracketWork = 20         // cost of brackets relative to emphasis
)

// affordable reports whether a document is within the limits. It reads the document once.
func affordable(src []byte) bool {
	if len(src) > MaxMarkdown {
		return false
	}
	var emphasis, brackets, work, headings, cells, columns int
	// This also counts "[^" in code, so the count may be too high, but never too low.
	if bytes.Count(src, []byte("[^")) > maxNotes {
		return false
	}
	fence, raw := "", false // the open fence, and whether there was HTML
	end := func() {
		work += emphasis*emphasis + bracketWork*brackets*brackets
		emphasis, brackets = 0, 0
	}
	for line := range bytes.Lines(src) {
		t := bytes.TrimSpace(line)
		indent := indentOf(line)
		if fence != "" {
			if indent < 4 && strings.HasPrefix(string(t), fence) && len(bytes.Trim(t, fence[:1])) == 0 {
				fence = ""
			}
			continue
		}
		if len(t) == 0 {
			end()
			columns = 0
			continue
		}
		if tooNested(line, t, indent) {
			return false
		}
		switch {
		case indent < 4 && isATX(t):
			headings++
			end()
		case indent < 4 && len(t) > 2 && strings.IndexByte("-*+", t[0]) >= 0 && t[1] == ' ':
			end()
		case strings.IndexByte("=-", t[0]) >= 0 && len(bytes.Trim(t, string(t[:1]))) == 0:
			headings++
		case t[0] == '<':
			raw = true // a fence inside HTML does not count
		case indent == 0 && !raw:
			if fence = opensFence(t); fence != "" {
				end()
				continue
			}
		}
		if len(bytes.Trim(t, "|-: ")) == 0 && bytes.IndexByte(t, '-') >= 0 {
			columns = max(columns, 1+bytes.Count(t, []byte("|")))
		}
		cells += columns
		for _, c := range t {
			switch c {
			case '*', '_', '~', '`':
				emphasis++
			case '[', ']':
				brackets++
			}
		}
		if headings > maxHeadings || cells > maxCells {
			return false
		}
	}
	end()
	return work <= maxWork
}

func indentOf(line []byte) int {
	n := 0
	for _, c := range line {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4
		default:
			return n
		}
	}
	return n
}

// tooNested reports whether a line starts more quotes and lists than people write.
func tooNested(line, t []byte, indent int) bool {
	if indent > maxIndent && (strings.IndexByte("-*+", t[0]) >= 0 || t[0] >= '0' && t[0] <= '9') {
		return !isRule(t) && (len(t) == 1 || t[1] == ' ' || t[1] == '\t' || t[0] >= '0' && t[0] <= '9' && bytes.ContainsAny(t[1:min(len(t), 11)], ".)"))
	}
	rest := bytes.TrimLeft(line, ">-*+0123456789.) \t")
	marks := 0
	for _, c := range line[:len(line)-len(rest)] {
		if strings.IndexByte(">-*+.)", c) >= 0 {
			marks++
		}
	}
	return marks > maxNesting && !isRule(t)
}

// isRule reports whether a line is a rule or an underline, which does not nest.
func isRule(t []byte) bool {
	return strings.IndexByte("-*_=", t[0]) >= 0 && len(bytes.Trim(t, string(t[:1])+" ")) == 0
}

func isATX(t []byte) bool {
	n := len(t) - len(bytes.TrimLeft(t, "#"))
	return n > 0 && n < 7 && (len(t) == n || t[n] == ' ' || t[n] == '\t')
}

// opensFence returns the fence of the code block that a line starts. It returns "" if the
// line starts none.
func opensFence(t []byte) string {
	if t[0] != '`' && t[0] != '~' {
		return ""
	}
	n := len(t) - len(bytes.TrimLeft(t, string(t[:1])))
	if n < 3 || t[0] == '`' && bytes.IndexByte(t[n:], '`') >= 0 {
		return ""
	}
	return string(t[:n])
}
