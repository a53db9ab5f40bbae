package files

import (
	"net/url"
	"slices"
	"strings"

	"satchel/internal/service"
	"satchel/web"
)

// chipSources is the maximum number of sources that have a chip: a link that switches a filter.
const chipSources = 6

// chipGroup is a row of filters. In most rows, choosing a filter replaces the row's other filters.
type chipGroup struct {
	Name  string
	Chips []chip
}

type chip struct {
	Name, URL string
	On        bool
}

// choice is a filter: its name on the page, and the part of the query that applies it.
type choice struct{ name, term string }

// chips returns the rows of filters for a query. Each filter links to the same search with the
// filter added or removed.
func (s *pages) chips(v *web.Visit, action, query string) ([]chipGroup, error) {
	where := []choice{{"This space", "source:space"}, {"Other sources", "-source:space"}}
	all, err := s.Service.ListSources(v.R.Context(), v.Actor(), service.ListSourcesInput{})
	if err != nil {
		return nil, err
	}
	for _, x := range all[:min(len(all), chipSources)] {
		where = append(where, choice{web.Shorten(x.Title, 40), "source:" + x.ID})
	}
	if len(all) == 0 {
		where = nil
	}
	groups := []struct {
		name    string
		choices []choice
	}{
		{"Where", where},
		{"Kind", []choice{{"Facts", "kind:memory"}, {"Knowledge", "kind:knowledge"}, {"Skills", "kind:skill"}, {"Resources", "kind:resource"}}},
		{"Changed", []choice{{"Past week", "since:7d"}, {"Past month", "since:30d"}}},
		{"Order", []choice{{"Newest first", "sort:recent"}}},
	}
	terms := termsOf(query)
	var out []chipGroup
	for _, g := range groups {
		var names []string
		for _, c := range g.choices {
			names = append(names, nameOf(c.term))
		}
		others := slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return slices.Contains(names, nameOf(t)) })
		row := chipGroup{Name: g.name}
		for _, c := range g.choices {
			x := chip{Name: c.name, On: slices.Contains(terms, c.term)}
			next := others
			if !x.On {
				next = append(slices.Clone(others), c.term)
			}
			x.URL = searchURL(action, next)
			row.Chips = append(row.Chips, x)
		}
		if len(row.Chips) > 0 {
			out = append(out, row)
		}
	}
	var paths chipGroup
	for i, t := range terms {
		if value, ok := strings.CutPrefix(t, "path:"); ok {
			paths.Name = "Path"
			paths.Chips = append(paths.Chips, chip{web.Shorten(strings.Trim(value, `"`), 60), searchURL(action, slices.Delete(slices.Clone(terms), i, i+1)), true})
		}
	}
	if paths.Name != "" {
		out = append(out, paths)
	}
	return out, nil
}

func searchURL(action string, terms []string) string {
	return action + "?q=" + url.QueryEscape(strings.Join(terms, " "))
}

// nameOf returns the name of a qualifier such as -kind:memory, or "" for a word.
func nameOf(term string) string {
	name, _, ok := strings.Cut(strings.TrimPrefix(term, "-"), ":")
	if !ok || strings.ContainsAny(name, `"`) {
		return ""
	}
	return name
}

// termsOf returns the parts of a query. Spaces in quotation marks do not end a part.
func termsOf(query string) []string {
	quoted := false
	return strings.FieldsFunc(query, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}
