package present

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
)

// joinedNeighbours is how many chunks without a word of the query are shown on either side of
// the best chunk, if they are parts of the same section.
const joinedNeighbours = 1

// extract is the shown part of a document.
type extract struct {
	text  string
	lines [2]int
}

// text returns the document if it fits into the budget. Otherwise it returns the best passage
// with the neighbours that also match or are of the same section. If that does not fit either,
// it returns as many lines around the snippet as fit, or nothing.
func (f *hitPassage) text(ctx context.Context, budget int) (extract, error) {
	name := string(f.Doc.Path)
	if f.Doc.Size <= budget*4 { // a longer text almost never fits
		text, err := f.wholeText(ctx)
		if err != nil {
			return extract{}, err
		}
		text, from := f.withoutHead(text, 1)
		if whole := shown(readable(name, text)); f.cost(whole) <= budget {
			return extract{whole, [2]int{from, max(from, f.Doc.Lines)}}, nil
		}
	}
	parts := []passage{f.best}
	head := f.best.head
	render := func() extract {
		var b strings.Builder
		b.WriteString(head)
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		text, from := f.withoutHead(b.String(), parts[0].Lines[0])
		if parse.Format(name) == parse.FormatMarkdown {
			text = wholeFences(text, "")
		}
		return extract{shown(readable(name, text)), [2]int{from, max(from, parts[len(parts)-1].Lines[1])}}
	}
	out := render()
	if f.cost(out.text) > budget {
		return f.linesAround(name, budget), nil
	}
	matched := map[int64]bool{}
	for _, c := range f.Chunks {
		matched[c.ID] = true
	}
	for _, step := range []int64{1, -1} {
		id := f.Chunks[0].ID
		for n := 1; ; n++ {
			id += step
			if id>>postings.ChunkBits != f.ID {
				break
			}
			edge := parts[0]
			if step > 0 {
				edge = parts[len(parts)-1]
			} else if !matched[id] && (n > joinedNeighbours || beginsSection(name, edge)) {
				break
			}
			next, known, err := f.neighbour(ctx, id)
			if err != nil {
				return out, err
			}
			if !known || step > 0 && !matched[id] && (n > joinedNeighbours || beginsSection(name, next)) || step < 0 && next.End != edge.Start {
				break
			}
			was, wasHead := parts, head
			if step > 0 {
				parts = append(parts[:len(parts):len(parts)], next)
			} else {
				parts = append([]passage{next}, parts...)
				head = ""
			}
			longer := render()
			if f.cost(longer.text) > budget {
				parts, head = was, wasHead
				break
			}
			out = longer
		}
	}
	return out, nil
}

// beginsSection reports whether a passage begins with a heading.
func beginsSection(name string, p passage) bool {
	for _, l := range parse.ParseLines(name, []byte(p.Text), p.Start) {
		if !l.Blank {
			return l.Level > 0
		}
	}
	return false
}

// neighbour reads a chunk if it exists.
func (f *hitPassage) neighbour(ctx context.Context, id int64) (p passage, known bool, err error) {
	n, err := f.Source.Passage(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	return passage{Passage: *n}, true, nil
}

// linesAround returns the lines of the snippet with as many before and after them as fit.
func (f *hitPassage) linesAround(name string, budget int) extract {
	ps := f.best
	data := []byte(ps.Text)
	lines := parse.ParseLines(name, data, ps.Start)
	first, last := -1, -1
	for i, l := range lines {
		if l.Start >= f.sn.from && l.End <= f.sn.to {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return extract{}
	}
	render := func(first, last int) extract {
		first, last = window(parse.Format(name), data, lines, first, last)
		text := ps.Text[lines[first].Start:lines[last].End]
		switch parse.Format(name) {
		case parse.FormatMarkdown:
			text = wholeFences(header(ps, lines, first)+text, opening(data, lines, first))
		case parse.FormatTable:
			text = header(ps, lines, first) + text
		}
		return extract{shown(readable(name, text)), [2]int{ps.Lines[0] + lines[first].Number - 1, ps.Lines[0] + lines[last].Number - 1}}
	}
	if f.cost(render(first, last).text) > budget {
		return extract{}
	}
	// Add ever smaller numbers of lines, as long as they fit.
	for grow := len(lines); grow > 0; {
		up := grow / 4
		if lines[first].Level > 0 {
			up = 0 // a heading is a good beginning
		}
		a, b := max(0, first-up), min(len(lines)-1, last+grow)
		if (a < first || b > last) && f.cost(render(a, b).text) <= budget {
			first, last = a, b
		} else {
			grow /= 2
		}
	}
	return render(first, last)
}

// maxTableBytes limits how far above a chunk tableHead looks for the header of a Markdown table.
const maxTableBytes = 64 << 10

// tableHead returns the header of the table in whose middle the best passage begins; "" if
// there is none.
func (f *hitPassage) tableHead(ctx context.Context) (string, error) {
	name := string(f.Doc.Path)
	csv := parse.Format(name) == parse.FormatTable
	if f.best.Start == 0 || !csv && !(parse.Format(name) == parse.FormatMarkdown && strings.HasPrefix(f.best.Text, "|")) {
		return "", nil
	}
	from := max(0, f.best.Start-maxTableBytes)
	if csv {
		from = 0
	}
	whole, err := f.wholeText(ctx)
	if err != nil {
		return "", err
	}
	text := []byte(whole)
	if f.best.Start > len(text) {
		return "", nil // cannot happen, because the chunk's checksum is right
	}
	above := text[from:min(f.best.Start, from+maxTableBytes)]
	lines := parse.PlainLines(above)
	if csv {
		return string(above[:min(lines[0].End, parse.MaxHead)]), nil
	}
	first := len(lines)
	for first > 0 && above[lines[first-1].Start] == '|' {
		first--
	}
	if first+1 >= len(lines) || first == 0 && from > 0 || lines[first+1].End-lines[first].Start > parse.MaxHead {
		return "", nil
	}
	return string(above[lines[first].Start:lines[first+1].End]), nil
}

func (f *hitPassage) wholeText(ctx context.Context) (string, error) {
	return f.Source.WholeText(ctx, f.ID, &f.Doc)
}
