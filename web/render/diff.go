package render

import (
	"html"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Limits of what is shown of a difference.
const (
	MaxPatchLines = 1500 // of one file
	maxLineBytes  = 1000 // of one line
	maxPairBytes  = 400  // of a line in which what changed is marked
)

// Row is one line of a difference.
type Row struct {
	// Kind is '+' (added), '-' (removed), ' ' (the same) or '@' (lines are left
	// out before).
	Kind     byte
	Old, New int // line numbers; 0 where there is none
	HTML     template.HTML
}

// Change is the difference of one file.
type Change struct {
	Rows           []Row
	Added, Removed int
	Binary         bool
	// Cut tells that lines were left out at the end.
	Cut bool
}

// Patch reads the unified diff of one file.
func Patch(patch string) Change {
	var c Change
	old, now := 0, 0 // the next line numbers; 0 before the first hunk
	left, right := 0, 0
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		switch {
		case left == 0 && right == 0 && strings.HasPrefix(line, "@@ "):
			old, left, now, right = hunk(line)
			if old > 1 || now > 1 {
				c.Rows = append(c.Rows, Row{Kind: '@'})
			}
		case left == 0 && right == 0:
			if strings.HasPrefix(line, "Binary files ") {
				c.Binary = true
			}
		case line == "" || line[0] == ' ':
			c.add(Row{Kind: ' ', Old: old, New: now}, line)
			old, now, left, right = old+1, now+1, left-1, right-1
		case line[0] == '-':
			c.Removed++
			c.add(Row{Kind: '-', Old: old}, line)
			old, left = old+1, left-1
		case line[0] == '+':
			c.Added++
			c.add(Row{Kind: '+', New: now}, line)
			now, right = now+1, right-1
		}
		left, right = max(0, left), max(0, right)
	}
	c.mark()
	return c
}

func (c *Change) add(r Row, line string) {
	if len(c.Rows) >= MaxPatchLines {
		c.Cut = true
		return
	}
	if line != "" {
		line = line[1:]
	}
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) > maxLineBytes {
		line = strings.ToValidUTF8(line[:maxLineBytes], "") + "…"
	}
	r.HTML = template.HTML(html.EscapeString(line)) //nolint:gosec // it is escaped
	c.Rows = append(c.Rows, r)
}

// hunk reads @@ -old,left +new,right @@.
func hunk(line string) (old, left, now, right int) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return 0, 0, 0, 0
	}
	read := func(s string) (from, n int) {
		a, b, more := strings.Cut(s[1:], ",")
		from, _ = strconv.Atoi(a) // what is no number is 0
		n = 1
		if more {
			n, _ = strconv.Atoi(b)
		}
		return max(0, min(from, 1<<30)), max(0, min(n, 1<<30))
	}
	old, left = read(f[1])
	now, right = read(f[2])
	return old, left, now, right
}

// mark shows within lines what changed, where as many lines were removed as
// were added in their place.
func (c *Change) mark() {
	for i := 0; i < len(c.Rows); {
		if c.Rows[i].Kind != '-' {
			i++
			continue
		}
		from := i
		for i < len(c.Rows) && c.Rows[i].Kind == '-' {
			i++
		}
		mid := i
		for i < len(c.Rows) && c.Rows[i].Kind == '+' {
			i++
		}
		if n := mid - from; n == i-mid && n <= 20 {
			for j := range n {
				pairMark(&c.Rows[from+j], &c.Rows[mid+j])
			}
		}
	}
}

func pairMark(a, b *Row) {
	was, is := html.UnescapeString(string(a.HTML)), html.UnescapeString(string(b.HTML))
	if len(was) > maxPairBytes || len(is) > maxPairBytes || was == "" || is == "" {
		return
	}
	d := diffmatchpatch.New()
	d.DiffTimeout = 20 * time.Millisecond
	parts := d.DiffCleanupSemantic(d.DiffMain(was, is, false))
	same := 0
	for _, p := range parts {
		if p.Type == diffmatchpatch.DiffEqual {
			same += len(p.Text)
		}
	}
	if 3*same < min(len(was), len(is)) { // other lines, and no change of one
		return
	}
	var x, y strings.Builder
	for _, p := range parts {
		text := html.EscapeString(p.Text)
		switch p.Type {
		case diffmatchpatch.DiffEqual:
			x.WriteString(text)
			y.WriteString(text)
		case diffmatchpatch.DiffDelete:
			x.WriteString("<del>" + text + "</del>")
		case diffmatchpatch.DiffInsert:
			y.WriteString("<ins>" + text + "</ins>")
		}
	}
	a.HTML, b.HTML = template.HTML(x.String()), template.HTML(y.String()) //nolint:gosec // it is escaped
}
