package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/internal/facts"
	"satchel/internal/space"
	"satchel/tools/index/present"
)

// fact is one fact of the memory: memory/<type>/<key>.md.
type fact struct {
	facts.Fact
	kind, key string
}

// memory is the content of memory/.
type memory struct {
	facts []fact // that have not expired, the latest confirmed first
	left  int    // files that were not read because there are too many
	wrong []wrongFact
}

// wrongFact is a file under memory/ that is not a valid fact.
type wrongFact struct {
	path space.Path
	why  string
}

// memory reads the files under memory/.
func (v view) memory(ctx context.Context, today time.Time) (memory, error) {
	entries, err := v.files(ctx, memoryDir)
	if err != nil {
		return memory{}, err
	}
	var m memory
	for _, e := range entries {
		kind, key, ok := facts.Place(string(e.Path))
		switch {
		case facts.Hidden(string(e.Path)):
			continue
		case !ok:
			m.wrong = append(m.wrong, wrongFact{e.Path, facts.Misplaced})
			continue
		case !plain(e):
			m.wrong = append(m.wrong, wrongFact{e.Path, "It is a link."})
			continue
		case len(m.facts) >= v.s.o.Limits.Facts:
			m.left++
			continue
		}
		h, err := v.head(ctx, e)
		if err != nil {
			return memory{}, err
		}
		f := fact{facts.Of(h.fields), kind, key}
		switch {
		case h.problem != "":
			m.wrong = append(m.wrong, wrongFact{e.Path, h.problem})
		case f.Value == "":
			m.wrong = append(m.wrong, wrongFact{e.Path, "It has no value in its front matter."})
		case !f.Over(today.Format(time.DateOnly)):
			m.facts = append(m.facts, f)
		}
	}
	slices.SortStableFunc(m.facts, func(a, b fact) int {
		return cmp.Or(cmp.Compare(b.Confirmed, a.Confirmed), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
	})
	return m, nil
}

// maxWrongFacts limits the files that instructions names.
const maxWrongFacts = 5

// wrongText lists the files under memory/ that are not valid facts.
func (m memory) wrongText() string {
	var b strings.Builder
	for i, w := range m.wrong {
		if i == maxWrongFacts {
			fmt.Fprintf(&b, "… and %s\n", plural(len(m.wrong)-i, "more file", "more files"))
			break
		}
		fmt.Fprintf(&b, "- %s: %s\n", oneLine(string(w.path), 200), oneLine(w.why, 200))
	}
	return b.String()
}

func (f fact) line() string {
	var about []string
	switch f.Source {
	case facts.Explicit, "":
	case facts.Inferred:
		if f.HasSure {
			about = append(about, fmt.Sprintf("inferred, confidence %.2g", f.Sure))
		} else {
			about = append(about, "inferred")
		}
	default:
		about = append(about, oneLine(f.Source, 40))
	}
	if f.Confirmed != "" {
		about = append(about, f.Confirmed)
	}
	s := fmt.Sprintf("- %s: %s", oneLine(f.key, 80), oneLine(f.Value, 400))
	if len(about) > 0 {
		s += " (" + strings.Join(about, ", ") + ")"
	}
	return s
}

// fitting returns how many of the first facts fit a budget, and their cost.
func fitting(list []fact, budget int) (n, cost int) {
	cost = 40 // for the line about the rest
	seen := map[string]bool{}
	for _, f := range list {
		c := present.EstimateTokens(f.line()) + 1
		if !seen[f.kind] {
			c += present.EstimateTokens(f.kind) + 2
		}
		if cost+c > budget {
			break
		}
		seen[f.kind] = true
		cost += c
		n++
	}
	return n, cost
}

// factsText lists facts by type within a budget. It takes the latest confirmed facts of all
// types, and begins with the type of the latest.
func factsText(list []fact, left, budget int) string {
	n, _ := fitting(list, budget)
	var kinds []string
	groups := map[string][]fact{}
	for _, f := range list[:n] {
		if groups[f.kind] == nil {
			kinds = append(kinds, f.kind)
		}
		groups[f.kind] = append(groups[f.kind], f)
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "%s:\n", oneLine(k, 80))
		for _, f := range groups[k] {
			b.WriteString(f.line())
			b.WriteByte('\n')
		}
	}
	if more := len(list) - n + left; more > 0 {
		fmt.Fprintf(&b, "… and %s, not shown here: search with kind:memory, or list memory/\n", plural(more, "more fact", "more facts"))
	}
	return b.String()
}
