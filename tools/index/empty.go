package index

import (
	"fmt"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
	"slices"
	"strings"
)

// whyEmpty reports why a search found nothing, "" where a note has told it
// already. met is whether each filter by itself is met by a page.
func (u *inquiry) whyEmpty(docs int64, met bool, r *Results) string {
	others := u.Filters
	others.Source = query.Condition{}
	switch {
	case docs == 0 && len(r.Notes) > 0:
		return "" // what could not be searched
	case len(r.Indexes) == 0:
		return "The filters leave no source to search."
	case docs == 0:
		return "There is no page here yet."
	case !met || slices.ContainsFunc(u.Filters.Kind.Is, func(k string) bool { return !slices.Contains(parse.Kinds, parse.Kind(k)) }):
		return ""
	case len(u.Words) == 0 && others.Empty() && len(u.Without) > 0:
		return "" // told where the query was read
	case len(u.plan.terms) == 0 && (len(u.Words) > 0 || others.Empty()):
		return "The query has no word to search for."
	case len(u.Words) == 0:
		return fmt.Sprintf("No page is all of this: %s.", others.Describe())
	case len(u.plan.missing) > 0 && len(u.Phrases) == 0 && len(u.Without) == 0 && others.Empty():
		return ""
	}
	page := "No page"
	if d := others.Describe(); d != "" {
		page += " with " + d
	}
	var has string
	switch n := len(u.Phrases); n {
	case 0:
		has = " has these words"
	case 1:
		has = fmt.Sprintf(" has the phrase %q", parse.Clip(u.Phrases[0], 60))
	default:
		has = fmt.Sprintf(" has all of the %d phrases", n)
	}
	if len(u.Without) > 0 {
		has += " and nothing of what is to be left out"
	}
	return page + strings.ToValidUTF8(has, "") + "."
}
