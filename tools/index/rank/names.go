package rank

import (
	"slices"
	"strings"
)

// A query over several sources may name one of them ("deploy on vercel nuxt"). The name is on
// most pages of the source, so it does not show which page is meant. In other sources, it is on
// pages about something else. So the word of the name counts little as a word of a page, and
// the pages of the source count more.
const (
	// nameWeight is the weight of a word that names a source.
	nameWeight = 0.3
	// sourceBoost is the share by which the scores of a source's documents rise if the query
	// names the source.
	sourceBoost = 0.3
	// nameWords is how many words of a query may form one name.
	nameWords = 3
)

// findNames marks the words of the query that name a source, and stores these sources in the
// plan. It does nothing if there is only one source, or if the query has no other words.
func (u *Run) findNames(pieces []piece) {
	if len(u.sources) < 2 {
		return
	}
	marked := make([]bool, len(pieces))
	var named []*Source
	for _, s := range u.sources {
		if s.Mount == "" {
			continue
		}
		for i := range pieces {
			letters := ""
			for j := i; j < min(len(pieces), i+nameWords); j++ {
				letters += squeeze(pieces[j].raw)
				if !s.isNamed(letters) {
					continue
				}
				for k := i; k <= j; k++ {
					marked[k] = true
				}
				if !slices.Contains(named, s) {
					named = append(named, s)
				}
			}
		}
	}
	others := false
	for i := range pieces {
		others = others || !marked[i] && !pieces[i].stop
	}
	if !others {
		return
	}
	for i := range pieces {
		pieces[i].names = marked[i]
	}
	u.plan.named = named
}

// isNamed reports whether letters, a result of squeeze, are a name of the source. In a query,
// "nuxt", "nuxt.js" and "Nuxt" name the source nuxt.
func (s *Source) isNamed(letters string) bool {
	for _, n := range append(slices.Clone(s.Names), s.Label) {
		if n = squeeze(n); n != "" && (letters == n || strings.TrimSuffix(letters, "js") == n) {
			return true
		}
	}
	return false
}

// preferNamed raises the scores of the documents of the sources that the query names.
func (u *Run) preferNamed(docs []*Candidate) {
	if len(u.plan.named) == 0 {
		return
	}
	for _, f := range docs {
		if slices.Contains(u.plan.named, f.Source) {
			f.rescore("The search names the source.", f.Score*(1+sourceBoost))
		}
	}
}
