package tools

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/facts"
	"satchel/tools/index/present"
)

// fact is one fact of the memory: memory/<type>/<key>.md.
type fact struct {
	facts.Fact
	kind, key string
}

// facts reads the memory facts that have not expired, the latest confirmed first. left
// counts the files that were not read because there are too many.
func (v view) facts(ctx context.Context, today time.Time) (list []fact, left int, err error) {
	entries, err := v.files(ctx, memoryDir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		kind, file, nested := strings.Cut(strings.TrimPrefix(string(e.Path), memoryDir+"/"), "/")
		if !plain(e) || !nested || strings.Contains(file, "/") || path.Ext(file) != ".md" {
			continue
		}
		if len(list) >= v.s.o.Limits.Facts {
			left++
			continue
		}
		h, err := v.head(ctx, e)
		if err != nil {
			return nil, 0, err
		}
		f := fact{facts.Of(h.fields), kind, strings.TrimSuffix(file, ".md")}
		if f.Over(today.Format(time.DateOnly)) {
			continue
		}
		if f.Value == "" {
			// List the file, so that a person can fix it.
			f.Value = "(no value; read " + string(e.Path) + ")"
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b fact) int {
		return cmp.Or(cmp.Compare(b.Confirmed, a.Confirmed), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
	})
	return list, left, nil
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
