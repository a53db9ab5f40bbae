package index

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
	"satchel/tools/index/rank"
)

// lagNotes returns notes that say which indexes are behind, and by how much.
func lagNotes(all []IndexState) (notes []string) {
	var late, none []IndexState
	for _, s := range all {
		switch {
		case s.Behind == 0:
		case s.Commit == "":
			none = append(none, s)
		default:
			late = append(late, s)
		}
	}
	if n := len(late); n > 0 {
		by := "behind"
		if p := pagesOf(late); p != "" {
			by = p + " behind"
		}
		index, is := "index", "is"
		if n > 1 {
			index, is = "indexes", "are"
		}
		notes = append(notes, fmt.Sprintf("The %s of %s %s %s, so this answer may lack the newest changes. Search again in a moment.", index, labelsOf(late), is, by))
	}
	if n := len(none); n > 0 {
		is, them := "is", "it"
		if n > 1 {
			is, them = "are", "them"
		}
		pages := ""
		if p := pagesOf(none); p != "" {
			pages = " (" + p + ")"
		}
		notes = append(notes, fmt.Sprintf("%s %s not indexed yet%s, so nothing in %s was searched. Search again in a moment.", labelsOf(none), is, pages, them))
	}
	return notes
}

// pagesOf returns a text that says how many pages the collections lack, or "" if the number
// is unknown for one of them.
func pagesOf(all []IndexState) string {
	sum := 0
	for _, s := range all {
		if s.Pages == 0 {
			return ""
		}
		sum += s.Pages
	}
	if sum == 1 {
		return "1 page"
	}
	return fmt.Sprintf("%d pages", sum)
}

// maxLabels limits the collections that a sentence names.
const maxLabels = 5

// labelsOf lists collections for a sentence.
func labelsOf(all []IndexState) string {
	var labels []string
	for _, s := range all[:min(len(all), maxLabels)] {
		labels = append(labels, s.Collection.Label)
	}
	if more := len(all) - len(labels); more > 0 {
		labels = append(labels, fmt.Sprintf("%d more", more))
	}
	if n := len(labels) - 1; n > 0 {
		labels = append(labels[:n-1], labels[n-1]+" and "+labels[n])
	}
	return strings.Join(labels, ", ")
}

// respelledNote returns a note that lists the words that no page has, and the words that
// were searched for in addition.
func respelledNote(missing []string, respelled []rank.Respelling) string {
	note := missingNote(missing)
	if len(respelled) == 0 {
		return note
	}
	var words []string
	for _, r := range respelled {
		if q := fmt.Sprintf("%q", parse.Clip(r.Word, 60)); !slices.Contains(words, q) {
			words = append(words, q)
		}
	}
	words = words[:min(len(words), rank.MaxRespelled)]
	if n := len(words) - 1; n > 0 {
		words = append(words[:n-1], words[n-1]+" and "+words[n])
	}
	return strings.TrimSuffix(note, ".") + "; searched for " + strings.Join(words, ", ") + " too."
}

func missingNote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", parse.Clip(w, 60))
	}
	if n := len(quoted) - 1; n > 0 {
		quoted = append(quoted[:n-1], quoted[n-1]+" or "+quoted[n])
	}
	return "No page has " + strings.Join(quoted, ", ") + "."
}

// maxUnmet limits the filter values without a matching document that a note lists.
const maxUnmet = 5

// unmetNote returns a note for a search that found nothing. It lists the filter values that
// no document has. It returns "" if each value has a document.
func unmetNote(ctx context.Context, sources []*rank.Source, f query.Filters) (string, error) {
	var unmet []string
	all := f.Single()
	for i, one := range all {
		if len(unmet) == maxUnmet {
			break
		}
		if slices.ContainsFunc(all[:i], func(o query.Filters) bool { return o.Describe() == one.Describe() }) {
			continue
		}
		met := false
		for _, s := range sources {
			filter, err := s.Filter(ctx, one, s.Mount)
			if err == nil && !met {
				met, err = s.Any(ctx, filter)
			}
			if err != nil {
				return "", s.Failed(err)
			}
		}
		if !met {
			unmet = append(unmet, one.Describe())
		}
	}
	if len(unmet) == 0 {
		return "", nil
	}
	return "No page is " + strings.Join(unmet, " or ") + ".", nil
}

// whyEmpty returns why a search found nothing, or "" if a note already says so. met reports
// whether each filter by itself matches a page.
func whyEmpty(u *rank.Run, docs int64, met bool, r *Results) string {
	others := u.Filters
	others.Source = query.Condition{}
	switch {
	case docs == 0 && len(r.Notes) > 0:
		return "" // other notes name the collections that could not be searched
	case len(r.Indexes) == 0:
		return "The filters leave no source to search."
	case docs == 0:
		return "There is no page here yet."
	case !met || slices.ContainsFunc(u.Filters.Kind.Is, func(k string) bool { return !slices.Contains(parse.Kinds, parse.Kind(k)) }):
		return ""
	case len(u.Words) == 0 && others.Empty() && len(u.Without) > 0:
		return "" // the parser has added a note
	case len(u.Terms()) == 0 && (len(u.Words) > 0 || others.Empty()):
		return "The query has no word to search for."
	case len(u.Words) == 0:
		return fmt.Sprintf("No page matches all of these filters: %s.", others.Describe())
	case len(u.Missing()) > 0 && len(u.Phrases) == 0 && len(u.Without) == 0 && others.Empty():
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
		has += " without the excluded words"
	}
	return page + strings.ToValidUTF8(has, "") + "."
}

// shownUnread limits the unreadable files that a note lists.
const shownUnread = 3

// unreadNote returns a note about the files that a search can find only by their names.
func unreadNote(ctx context.Context, s *rank.Source) (string, error) {
	paths, err := s.UnreadPaths(ctx, shownUnread)
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range paths {
		names = append(names, fmt.Sprintf("%q", string(p)))
	}
	list := strings.Join(names, ", ")
	if more := s.State.Unread - int64(len(paths)); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("The text of %s in %s was not searched, because it is damaged on the server's disk. %s", list, s.Label, space.DamagedAdvice), nil
}

// scope describes what a search covered.
func scope(cols []Collection, f query.Filters, indexes []IndexState) string {
	f.Source = query.Condition{}
	docs := int64(0)
	for _, i := range indexes {
		docs += i.Docs
	}
	var labels []string
	for _, c := range cols {
		labels = append(labels, c.Label)
	}
	where := strings.Join(labels, ", ")
	if len(labels) > 6 {
		where = fmt.Sprintf("%s and %d more", strings.Join(labels[:5], ", "), len(labels)-5)
	}
	s := fmt.Sprintf("%s (%d documents)", where, docs)
	if where == "" {
		s = "0 documents"
	}
	if d := f.Describe(); d != "" {
		s += " with " + d
	}
	return s
}
