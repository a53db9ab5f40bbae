package render

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// Limits of the front matter on a page.
const (
	maxFields     = 40
	maxFieldRunes = 600
	maxItems      = 24
)

// Field is a field of the front matter.
type Field struct {
	Name string
	// Text is a single value. Items is a list of values.
	Text  string
	Items []string
}

// fieldsOf returns the fields of a block of front matter in their order.
func fieldsOf(block []byte, all map[string]any) []Field {
	names := make([]string, 0, len(all))
	for n := range all {
		names = append(names, n)
	}
	sort.Strings(names)
	at := func(n string) int {
		if i := bytes.Index(block, []byte("\n"+n+":")); i >= 0 {
			return i
		}
		return len(block)
	}
	order := make(map[string]int, len(names))
	for _, n := range names[:min(len(names), 4*maxFields)] {
		order[n] = at(n)
	}
	slices.SortStableFunc(names, func(a, b string) int { return order[a] - order[b] })
	var out []Field
	for _, n := range names {
		if len(out) == maxFields {
			out = append(out, Field{Name: "…", Text: fmt.Sprintf("%d more", len(names)-maxFields)})
			break
		}
		f := Field{Name: clip(n, 80)}
		if list, ok := all[n].([]any); ok && flat(list) {
			for i, v := range list {
				if i == maxItems {
					f.Items = append(f.Items, fmt.Sprintf("and %d more", len(list)-i))
					break
				}
				f.Items = append(f.Items, clip(valueText(v, 0), 120))
			}
		} else {
			f.Text = clip(valueText(all[n], 0), maxFieldRunes)
		}
		out = append(out, f)
	}
	return out
}

func flat(list []any) bool {
	for _, v := range list {
		switch v.(type) {
		case []any, map[string]any:
			return false
		}
	}
	return len(list) > 0
}

// valueText formats a value on one line.
func valueText(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case string:
		return strings.Join(strings.Fields(v), " ")
	case time.Time:
		return v.Format(time.DateOnly)
	case []any:
		var parts []string
		for i, e := range v {
			if i == maxItems || depth > 3 {
				parts = append(parts, "…")
				break
			}
			parts = append(parts, valueText(e, depth+1))
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		var parts []string
		for i, k := range keys {
			if i == maxItems || depth > 3 {
				parts = append(parts, "…")
				break
			}
			parts = append(parts, k+": "+valueText(v[k], depth+1))
		}
		return strings.Join(parts, "; ")
	}
	return fmt.Sprint(v)
}

func clip(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
