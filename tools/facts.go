package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/facts"
	"satchel/internal/service"
	"satchel/tools/index/present"
)

// memory is what the instructions tool reports about memory/.
type memory struct {
	facts []service.MemoryFact // facts that have not expired, the latest confirmed first
	left  int                  // how many files were not read because there are too many
	wrong []service.MemoryFact // files that are not valid facts
}

func (s *Registry) memory(ctx context.Context, c Caller) (memory, error) {
	all, err := s.o.Service.ListFacts(ctx, c.Actor, service.ListFactsInput{Space: c.Space()})
	m := memory{left: all.Left}
	for _, f := range all.Facts {
		switch {
		case f.Problem != "":
			m.wrong = append(m.wrong, f)
		case !f.Expired:
			m.facts = append(m.facts, f)
		}
	}
	slices.SortStableFunc(m.facts, func(a, b service.MemoryFact) int {
		return cmp.Or(cmp.Compare(b.Confirmed, a.Confirmed), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Key, b.Key))
	})
	return m, err
}

// maxWrongFacts limits the invalid files that the instructions tool names.
const maxWrongFacts = 5

// wrongText lists the files under memory/ that are not valid facts.
func (m memory) wrongText() string {
	var b strings.Builder
	for i, w := range m.wrong {
		if i == maxWrongFacts {
			fmt.Fprintf(&b, "… and %s\n", plural(len(m.wrong)-i, "more file", "more files"))
			break
		}
		fmt.Fprintf(&b, "- %s: %s\n", oneLine(string(w.Path), 200), oneLine(w.Problem, 200))
	}
	return b.String()
}

// factLine is the line of a fact in a list.
func factLine(f service.MemoryFact) string {
	var about []string
	short := f.Fact
	short.Client, _, _ = strings.Cut(f.Client, "/") // the client's name without its version
	if text := oneLine(short.Attribution(), 60); text != "" {
		about = append(about, text)
	}
	if f.HasSure && f.Source == facts.Inferred {
		about = append(about, fmt.Sprintf("confidence %.2g", f.Sure))
	}
	if f.Confirmed != "" {
		about = append(about, f.Confirmed)
	}
	if suspicious(string(f.Path), f.Value) {
		about = append(about, commandsRemark)
	}
	s := fmt.Sprintf("- %s: %s", oneLine(f.Key, 80), oneLine(f.Value, 400))
	if len(about) > 0 {
		s += " (" + strings.Join(about, ", ") + ")"
	}
	return s
}

// fitting returns how many of the first facts fit a budget of tokens, and their cost.
func fitting(list []service.MemoryFact, budget int) (n, cost int) {
	cost = 40 // for the line about the rest
	seen := map[string]bool{}
	for _, f := range list {
		c := present.EstimateTokens(factLine(f)) + 1
		if !seen[f.Type] {
			c += present.EstimateTokens(f.Type) + 2
		}
		if cost+c > budget {
			break
		}
		seen[f.Type] = true
		cost += c
		n++
	}
	return n, cost
}

// factsText lists facts by type within a budget of tokens. It takes the first facts of list, which
// begins with the latest confirmed one. left is the number of facts that are not in list.
func factsText(list []service.MemoryFact, left, budget int) string {
	n, _ := fitting(list, budget)
	var kinds []string
	groups := map[string][]service.MemoryFact{}
	for _, f := range list[:n] {
		if groups[f.Type] == nil {
			kinds = append(kinds, f.Type)
		}
		groups[f.Type] = append(groups[f.Type], f)
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "%s:\n", oneLine(k, 80))
		for _, f := range groups[k] {
			b.WriteString(factLine(f))
			b.WriteByte('\n')
		}
	}
	if more := len(list) - n + left; more > 0 {
		fmt.Fprintf(&b, "… and %s, not shown here: search with kind:memory, or list memory/\n", plural(more, "more fact", "more facts"))
	}
	return b.String()
}
