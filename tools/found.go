package tools

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/internal/service"
)

// foundText returns the text of an answer of search: first the notes, then a line for each
// result with its text below. Of weak results it lists only the paths.
func foundText(r service.SearchResults) string {
	var b strings.Builder
	notes := strings.Join(r.Notes, " ")
	b.WriteString(notes)
	switch n := len(r.Results); {
	case n == 0 || r.Weak:
		b.WriteByte(' ')
	case notes != "":
		b.WriteByte('\n')
	}
	switch n := len(r.Results); {
	case n == 0:
		fmt.Fprintf(&b, "Nothing found in %s.", r.Scope)
		if len(r.Suggestions) > 0 {
			fmt.Fprintf(&b, " Did you mean: %s?", strings.Join(r.Suggestions, ", "))
		}
	case r.Weak:
		var paths []string
		for _, x := range r.Results {
			paths = append(paths, x.Path)
		}
		b.WriteString("Weak matches only: " + strings.Join(paths, ", "))
	case r.Total > n && n == 1:
		fmt.Fprintf(&b, "The best of %s:\n", plural(r.Total, "page", "pages"))
	case r.Total > n:
		fmt.Fprintf(&b, "The best %d of %s:\n", n, plural(r.Total, "page", "pages"))
	default:
		fmt.Fprintf(&b, "%s:\n", plural(n, "page", "pages"))
	}
	if !r.Weak && len(r.Results) > 0 {
		resultsText(&b, r.Results)
	}
	return strings.TrimSpace(b.String())
}

// resultsText writes a line for each result with its text below. It quotes all results if one of
// them is from a source or an import.
func resultsText(b *strings.Builder, results []service.SearchResult) {
	var list strings.Builder
	var warned []string
	quote, above := false, ""
	for i, x := range results {
		if i > 0 && (x.Snippet != "" || above != "") {
			list.WriteByte('\n')
		}
		fmt.Fprintf(&list, "%d. %s\n", i+1, placeText(x))
		if above = x.Snippet; above != "" {
			list.WriteString(strings.TrimRight(above, "\n") + "\n")
		}
		quote = quote || foreign(x.Path)
		if suspicious(x.Path, x.Title+"\n"+x.Heading+"\n"+x.URL+"\n"+x.Snippet) {
			warned = append(warned, strconv.Itoa(i+1))
		}
	}
	if len(warned) > 0 {
		fmt.Fprintf(b, "[%s: %s]\n", strings.Join(warned, ", "), commandsWarning)
	}
	if quote {
		fence(b, "", list.String())
		return
	}
	b.WriteString("\n" + list.String())
}

// placeText names the place of a result: its path and lines, its title and heading, the date of the
// last change of a page of the space, the pages with the same content, the related pages, and, if
// a source took the page from the web, the page's address there.
func placeText(x service.SearchResult) string {
	s := x.Path
	if x.Lines != "" {
		s += ":" + x.Lines
	}
	var about []string
	for _, t := range []string{x.Title, x.Heading} {
		if t = oneLine(t, 100); t != "" && t != path.Base(x.Path) && !slices.Contains(about, t) {
			about = append(about, t)
		}
	}
	if len(about) > 0 {
		s += "  " + strings.Join(about, " › ")
	}
	if x.Date != "" && x.Source == service.SpaceLabel && x.Snippet != "" {
		s += " (" + x.Date + ")"
	}
	if len(x.Also) > 0 {
		s += "; also " + strings.Join(x.Also, ", ")
		if more := x.AlsoTotal - len(x.Also); more > 0 {
			s += fmt.Sprintf(" and %d more", more)
		}
	}
	if len(x.Related) > 0 {
		s += "; related: " + strings.Join(x.Related, ", ")
	}
	if x.URL != "" {
		s += "; from " + x.URL
	}
	return s
}

// foundMeta returns the machine-readable part of an answer of search.
func foundMeta(r service.SearchResults) map[string]any {
	m := map[string]any{
		"results": r.Results, "total": r.Total, "truncated": r.Truncated, "scope": r.Scope,
		"index_commit": r.IndexCommit, "index_age": r.IndexAge,
	}
	if len(r.Notes) > 0 {
		m["notes"] = r.Notes
	}
	if len(r.Suggestions) > 0 {
		m["suggestions"] = r.Suggestions
	}
	if r.Weak {
		m["weak"] = true
	}
	return m
}
