package render

import (
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/internal/diff"
)

// Limits of the differences on a page.
const (
	MaxPatchLines = 1500     // lines of the difference of a file
	maxLineBytes  = 16 << 10 // bytes of a line
	maxPairBytes  = 400      // bytes of a line in which changed words are marked
	MaxPageLines  = 1 << 20  // bytes of the HTML of all lines of a page

	pairSteps = 20_000  // steps of the search for changed words in a line
	pageSteps = 500_000 // steps for all lines of a page, which take a few milliseconds
)

// Budget is the work and space that a page has left for differences.
type Budget struct {
	steps int
	bytes int
}

// NewBudget returns the budget of an empty page.
func NewBudget() *Budget { return &Budget{pageSteps, MaxPageLines} }

// Row is a line of a difference.
type Row struct {
	// Kind is '+' (added), '-' (removed), ' ' (unchanged) or '@' (lines are skipped here).
	Kind     byte
	Old, New int // line numbers; 0 if there is none
	// HTML is the line, with invisible characters written as their numbers.
	HTML template.HTML

	text string
	twin int // for a removed line: the index of the row that replaced it; 0 if there is none
}

// Change is the difference of a file.
type Change struct {
	Rows           []Row
	Added, Removed int
	Binary         bool
	// Cut reports whether lines at the end, or the end of a line, are missing.
	Cut bool
}

// End marks that lines at the end of the file are left out, if they are. n is the number of lines
// of the file after the change.
func (c *Change) End(n int) {
	if i := len(c.Rows) - 1; i >= 0 && !c.Cut && c.Rows[i].New > 0 && c.Rows[i].New < n {
		c.Rows = append(c.Rows, Row{Kind: '@'})
	}
}

// Patch parses the unified diff of a file. If the budget does not suffice, it omits lines
// at the end, or does not mark changed words.
func Patch(patch string, b *Budget) Change {
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
			c.add(b, Row{Kind: ' ', Old: old, New: now}, line)
			old, now, left, right = old+1, now+1, left-1, right-1
		case line[0] == '-':
			c.Removed++
			c.add(b, Row{Kind: '-', Old: old}, line)
			old, left = old+1, left-1
		case line[0] == '+':
			c.Added++
			c.add(b, Row{Kind: '+', New: now}, line)
			now, right = now+1, right-1
		}
		left, right = max(0, left), max(0, right)
	}
	c.mark(b)
	return c
}

func (c *Change) add(b *Budget, r Row, line string) {
	if c.Cut || len(c.Rows) >= MaxPatchLines {
		c.Cut = true
		return
	}
	if line != "" {
		line = line[1:]
	}
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) > maxLineBytes {
		line = strings.ToValidUTF8(line[:maxLineBytes], "") + "…"
		c.Cut = true
	}
	r.text, r.HTML = line, template.HTML(visible(line)) //nolint:gosec // it is escaped
	if len(r.HTML) > b.bytes {
		c.Cut = true
		return
	}
	b.bytes -= len(r.HTML)
	c.Rows = append(c.Rows, r)
}

// hunk parses @@ -old,left +new,right @@.
func hunk(line string) (old, left, now, right int) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return 0, 0, 0, 0
	}
	read := func(s string) (from, n int) {
		a, b, more := strings.Cut(s[1:], ",")
		from, _ = strconv.Atoi(a) // 0 if it is not a number
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

// maxTwins limits the adjacent removed lines, and the added lines after them. If there are
// more, mark does not compare them.
const maxTwins = 20

// mark finds the lines that replaced removed lines, and marks the words that changed.
func (c *Change) mark(b *Budget) {
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
		if mid == i || max(mid-from, i-mid) > maxTwins {
			continue
		}
		c.twins(from, mid, i)
		for j := from; j < mid; j++ {
			if t := c.Rows[j].twin; t > 0 {
				b.pairMark(&c.Rows[j], &c.Rows[t])
			}
		}
	}
}

// twins finds the added line in Rows[mid:end] that replaced each removed line in
// Rows[from:mid]. If there are as many added as removed lines, they correspond in order.
// Otherwise, a removed line corresponds to the next added line that is alike.
func (c *Change) twins(from, mid, end int) {
	if mid-from == end-mid {
		for j := from; j < mid; j++ {
			c.Rows[j].twin = mid + j - from
		}
		return
	}
	next := mid
	for j := from; j < mid; j++ {
		for t := next; t < end; t++ {
			if alike(c.Rows[j].text, c.Rows[t].text) {
				c.Rows[j].twin, next = t, t+1
				break
			}
		}
	}
}

// alike reports whether two lines have at least half of their words in common.
func alike(a, b string) bool {
	if len(a) > maxPairBytes || len(b) > maxPairBytes {
		return false
	}
	x, y := strings.Fields(a), strings.Fields(b)
	count := make(map[string]int, len(x))
	for _, w := range x {
		count[w]++
	}
	same := 0
	for _, w := range y {
		if count[w] > 0 {
			count[w]--
			same++
		}
	}
	return same > 0 && 2*same >= max(len(x), len(y))
}

// Pair is a line before and after a change, for columns side by side. A line that was
// removed or added has only one side. Gap reports that lines are left out here.
type Pair struct {
	Old, New *Row
	Gap      bool
}

// Pairs returns the lines of a change for two columns. It returns nil unless lines were both
// removed and added, because otherwise one column suffices.
func Pairs(rows []Row) []Pair {
	var added, removed bool
	for _, r := range rows {
		added, removed = added || r.Kind == '+', removed || r.Kind == '-'
	}
	if !added || !removed {
		return nil
	}
	out := make([]Pair, 0, len(rows))
	for i := 0; i < len(rows); {
		switch rows[i].Kind {
		case '@':
			out = append(out, Pair{Gap: true})
			i++
		case '-', '+':
			mid := i
			for mid < len(rows) && rows[mid].Kind == '-' {
				mid++
			}
			end := mid
			for end < len(rows) && rows[end].Kind == '+' {
				end++
			}
			out = pairUp(out, rows, i, mid, end)
			i = end
		default:
			out = append(out, Pair{Old: &rows[i], New: &rows[i]})
			i++
		}
	}
	return out
}

// pairUp adds the removed lines in rows[from:mid], beside the lines that replaced them, and
// the other added lines in rows[mid:end].
func pairUp(out []Pair, rows []Row, from, mid, end int) []Pair {
	next := mid
	for j := from; j < mid; j++ {
		p := Pair{Old: &rows[j]}
		if t := rows[j].twin; t >= next {
			for ; next < t; next++ {
				out = append(out, Pair{New: &rows[next]})
			}
			p.New, next = &rows[t], t+1
		}
		out = append(out, p)
	}
	for ; next < end; next++ {
		out = append(out, Pair{New: &rows[next]})
	}
	return out
}

// pairMark marks the words that differ between two lines.
func (b *Budget) pairMark(was, is *Row) {
	x, y := words(was.text), words(is.text)
	if x == nil || y == nil || b.steps <= 0 {
		return
	}
	left := min(b.steps, pairSteps)
	b.steps -= left
	runs, exact := diff.Diff(x, y, &left)
	b.steps += left
	if !exact {
		return
	}
	var old, now strings.Builder
	same, i, j := 0, 0, 0
	put := func(out *strings.Builder, tag string, words []string) {
		if tag != "" {
			out.WriteString("<" + tag + ">")
		}
		out.WriteString(visible(strings.Join(words, "")))
		if tag != "" {
			out.WriteString("</" + tag + ">")
		}
	}
	for _, r := range runs {
		switch r.Kind {
		case diff.Same:
			put(&old, "", x[i:i+r.N])
			put(&now, "", y[j:j+r.N])
			same += len(strings.Join(x[i:i+r.N], ""))
			i, j = i+r.N, j+r.N
		case diff.Removed:
			put(&old, "del", x[i:i+r.N])
			i += r.N
		case diff.Added:
			put(&now, "ins", y[j:j+r.N])
			j += r.N
		}
	}
	if 3*same < min(len(strings.Join(x, "")), len(strings.Join(y, ""))) { // too different to be two versions of one line
		return
	}
	more := old.Len() + now.Len() - len(was.HTML) - len(is.HTML)
	if more > b.bytes {
		return
	}
	b.bytes -= more
	was.HTML, is.HTML = template.HTML(old.String()), template.HTML(now.String()) //nolint:gosec // it is escaped
}

// words splits a line into words and the characters between them. It returns nil if the
// line is too long to mark.
func words(line string) []string {
	if len(line) > maxPairBytes {
		return nil
	}
	var out []string
	for line != "" {
		n := 0
		for n < len(line) {
			r, size := utf8.DecodeRuneInString(line[n:])
			if !isWord(r) {
				if n == 0 {
					n = size
				}
				break
			}
			n += size
		}
		out = append(out, line[:n])
		line = line[n:]
	}
	return out
}
