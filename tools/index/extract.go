package index

import (
	"context"
	"satchel/tools/index/parse"
	"strings"
)

// joinedNeighbours is how many chunks on either side of the best one are shown
// with it, though they have none of the query's words, where they are parts of
// one section that was cut.
const joinedNeighbours = 1

// extract is a part of a document as it is shown.
type extract struct {
	text  string
	lines [2]int
}

// Text returns the document where it fits into the budget, else its best
// passage joined with the neighbours that matched too or that are of the same
// section, else as many lines around the snippet as fit, else nothing.
func (f *found) text(ctx context.Context, sn snippet, budget int) (extract, error) {
	name := string(f.doc.path)
	if f.doc.size <= budget*4 { // more bytes than that cannot fit, as good as never
		text, err := f.wholeText(ctx)
		if err != nil {
			return extract{}, err
		}
		if whole := shown(readable(name, text)); costOf(whole) <= budget {
			return extract{whole, [2]int{1, max(1, f.doc.lines)}}, nil
		}
	}
	parts := []passage{f.best}
	head := f.best.head
	render := func() extract {
		var b strings.Builder
		b.WriteString(head)
		for _, p := range parts {
			b.WriteString(p.text)
		}
		text := b.String()
		if parse.Format(name) == parse.FormatMarkdown {
			text = wholeFences(text, "")
		}
		return extract{shown(readable(name, text)), [2]int{parts[0].lines[0], parts[len(parts)-1].lines[1]}}
	}
	out := render()
	if costOf(out.text) > budget {
		return f.linesAround(name, sn, budget), nil
	}
	matched := map[int64]bool{}
	for _, c := range f.chunks {
		matched[c.id] = true
	}
	for _, step := range []int64{1, -1} {
		id := f.chunks[0].id
		for n := 1; ; n++ {
			id += step
			if id>>chunkBits != f.id {
				break
			}
			edge := parts[0]
			if step > 0 {
				edge = parts[len(parts)-1]
			} else if !matched[id] && (n > joinedNeighbours || beginsSection(name, edge)) {
				break
			}
			next, known, err := f.session.neighbour(ctx, id)
			if err != nil {
				return out, err
			}
			if !known || step > 0 && !matched[id] && (n > joinedNeighbours || beginsSection(name, next)) || step < 0 && next.end != edge.start {
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
			if costOf(longer.text) > budget {
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
	for _, l := range parse.ParseLines(name, []byte(p.text), p.start) {
		if !l.Blank {
			return l.Level > 0
		}
	}
	return false
}

// neighbour reads a chunk if there is one.
func (s *session) neighbour(ctx context.Context, id int64) (p passage, known bool, err error) {
	err = s.passages(ctx, []int64{id}, func(_ int64, one passage, _ docRow) { p, known = one, true })
	return p, known, err
}

// linesAround returns the lines of the snippet with as many after and before
// them as fit.
func (f *found) linesAround(name string, sn snippet, budget int) extract {
	ps := f.best
	data := []byte(ps.text)
	lines := parse.ParseLines(name, data, ps.start)
	first, last := -1, -1
	for i, l := range lines {
		if l.Start >= sn.from && l.End <= sn.to {
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
		text := ps.text[lines[first].Start:lines[last].End]
		switch parse.Format(name) {
		case parse.FormatMarkdown:
			text = wholeFences(header(ps, lines, first)+text, opening(data, lines, first))
		case parse.FormatTable:
			text = header(ps, lines, first) + text
		}
		return extract{shown(readable(name, text)), [2]int{ps.lines[0] + lines[first].Number - 1, ps.lines[0] + lines[last].Number - 1}}
	}
	if costOf(render(first, last).text) > budget {
		return extract{}
	}
	// A growing part of the lines, halved where it does not fit.
	for grow := len(lines); grow > 0; {
		a, b := max(0, first-grow/4), min(len(lines)-1, last+grow)
		if (a < first || b > last) && costOf(render(a, b).text) <= budget {
			first, last = a, b
		} else {
			grow /= 2
		}
	}
	return render(first, last)
}

// maxTableBytes is how far above a chunk the header of its table is looked for.
const maxTableBytes = 64 << 10

// tableHead returns the header of the table that the best passage begins in the
// middle of, "" for none.
func (f *found) tableHead(ctx context.Context) (string, error) {
	name := string(f.doc.path)
	csv := parse.Format(name) == parse.FormatTable
	if f.best.start == 0 || !csv && !(parse.Format(name) == parse.FormatMarkdown && strings.HasPrefix(f.best.text, "|")) {
		return "", nil
	}
	from := max(0, f.best.start-maxTableBytes)
	if csv {
		from = 0
	}
	whole, err := f.wholeText(ctx)
	if err != nil {
		return "", err
	}
	text := []byte(whole)
	if f.best.start > len(text) {
		return "", nil // it cannot be: the chunk's checksum is right
	}
	above := text[from:min(f.best.start, from+maxTableBytes)]
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
