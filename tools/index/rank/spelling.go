package rank

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/editdistance"
	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// A word that no page has is compared with words that differ from it by one or two typos,
// and only with those that begin with one of its first two letters: people rarely mistype
// the first letter, and more often swap it with the next. Numbers and versions are never
// respelled, because another number has another meaning.
const (
	// slipLetters is how many letters a word needs for a respelling with one typo. A word with
	// twice as many letters may have two typos.
	slipLetters = 4
	// maxSlipLetters is the length of the longest word that is respelled.
	maxSlipLetters = 32
	// maxRespellings is the maximum number of words that are searched for instead of one word.
	maxRespellings = 3
	// maxLookedUp is how many of the nearest terms are looked up in pages, each in at most
	// maxPassages passages. Usually the first passage shows the word.
	maxLookedUp = 8
	maxPassages = 12
	// rareShare decides between equally near words. A word is left out if the most frequent one
	// is in more than rareShare times as many passages. It is then a typo or a word of another
	// language.
	rareShare = 20
	// MaxRespelled is the maximum number of words of a query that are respelled.
	MaxRespelled = 5
	// maxVocabulary is how many terms of a database one word is compared with.
	maxVocabulary = 100_000
	// The weights of a respelling with one typo and with two.
	oneSlipWeight = 0.5
	twoSlipWeight = 0.3
)

// Respelling is a word of a page that may have been meant.
type Respelling struct {
	Word    string // the word as people write it, not its stem
	written bool   // a page has it in this spelling
	term    string
	slips   int
	docs    int64
	weight  float64
}

// respell returns the likely meanings of a word that no page has: of the words with the
// fewest typos, the most frequent ones. A nil speller means that the word is not respelled.
func respell(ctx context.Context, a *parse.Analyzer, sources []*Source, m *speller, most int) ([]Respelling, error) {
	if m == nil {
		return nil, nil
	}
	for _, s := range sources {
		for _, prefix := range m.prefixes() {
			left := maxVocabulary
			err := s.EachTerm(ctx, prefix, func(term string, df int64) bool {
				m.compare(term, df)
				left--
				return left > 0
			})
			if err != nil {
				return nil, s.Failed(err)
			}
		}
	}
	// The terms are stems, and their endings are guesses. Pages show the real words.
	all := m.ranked()
	all = all[:min(len(all), maxLookedUp)]
	for i := range all {
		left := maxPassages
		for _, s := range sources {
			if all[i].written || left == 0 {
				break
			}
			if err := m.lookUp(ctx, a, s, &all[i], &left); err != nil {
				return nil, s.Failed(err)
			}
		}
	}
	all = slices.DeleteFunc(all, func(r Respelling) bool { return !r.written })
	return nearestFew(all, most), nil
}

// lookUp finds how pages write a term. It reads at most *left passages.
func (m *speller) lookUp(ctx context.Context, a *parse.Analyzer, s *Source, r *Respelling, left *int) error {
	ids, err := s.ChunksWith(ctx, r.term, *left)
	if err != nil {
		return err
	}
	guess, guessed, nearest := r.Word, r.slips, m.limit+1
	for _, id := range ids {
		*left--
		p, err := s.Passage(ctx, id)
		if err != nil {
			return err
		}
		for _, text := range []string{p.Doc.Title, p.Crumbs, p.Text} {
			a.Words(text, func(w parse.Word) {
				shown, as := text[w.Start:w.End], r.term
				switch r.term {
				case w.Term:
					as = language.Fold(shown)
				case w.Joined:
					shown = r.term
				default:
					// The guessed word may be a part of an identifier.
					if !slices.Contains(w.Parts, r.term) || !strings.Contains(language.Fold(shown), guess) {
						return
					}
					shown, as = guess, guess
				}
				// Another page may have a nearer word.
				if slips := editdistance.Within(m.word, as, m.limit); slips <= m.limit && slips < nearest {
					nearest = slips
					r.Word = strings.ToLower(shown)
				}
			})
		}
		if nearest <= guessed {
			break
		}
	}
	if nearest <= m.limit {
		r.slips, r.written = nearest, true
	}
	return nil
}

// speller compares a word with terms.
type speller struct {
	word   string // the word to respell, as language.Fold returns it
	stem   string
	limit  int
	mask   uint64 // the letters of word
	runes  int
	found  map[string]Respelling // the respellings found so far, by term
	suffix []string              // possible endings of a stem
}

// newSpeller returns nil for a word that is not respelled, because it is shorter than least, too
// long, not only letters, or in a script without spaces.
func newSpeller(raw string, least int) *speller {
	n := 0
	for _, r := range raw {
		if n++; !unicode.IsLetter(r) && !unicode.IsMark(r) || parse.Spaceless(r) {
			return nil
		}
	}
	if n < least || n > maxSlipLetters {
		return nil
	}
	m := &speller{word: language.Fold(raw), stem: language.Term(raw), limit: 1, found: map[string]Respelling{}}
	m.runes = utf8.RuneCountInString(m.word)
	if m.runes >= 2*slipLetters {
		m.limit = 2
	}
	m.mask = letterMask(m.word)
	if isLatin := m.word != "" && m.word[0] < utf8.RuneSelf; isLatin {
		m.suffix = suffixes
	}
	return m
}

// suffixes are the usual endings that follow an English stem, "" first.
var suffixes = strings.Split(",s,e,es,ed,er,ers,ing,ings,y,ly,al,able,ion,ions,ation,ations,ment,ments,ness,ive,ity,ies,ance,ence,ent,ents,ant,ants,ate,ates,ated,ating,ator,ize,izes,ized,izing,ization,or,ors,ful,ous,ic,ical,ally,ility,alize,alization,isation,ise,ised,ising,ible,ibility,ably,ively", ",")

// letterMask returns a bit for every letter of a word.
func letterMask(word string) (mask uint64) {
	for _, r := range word {
		mask |= 1 << (uint(r) & 63)
	}
	return mask
}

// prefixes returns the beginnings of the terms to compare.
func (m *speller) prefixes() []string {
	first, n := utf8.DecodeRuneInString(m.word)
	second, _ := utf8.DecodeRuneInString(m.word[n:])
	if first == second {
		return []string{string(first)}
	}
	return []string{string(first), string(second)}
}

// compare adds a term if it is near.
func (m *speller) compare(term string, df int64) {
	// Each letter that only one of the words has costs a typo.
	other := letterMask(term)
	if bits.OnesCount64(other&^m.mask) > m.limit {
		return
	}
	slips, word := m.distance(term, other)
	if slips > m.limit {
		return
	}
	r, ok := m.found[term]
	if !ok {
		r = Respelling{Word: word, term: term, slips: slips}
	}
	r.docs += df
	m.found[term] = r
}

// distance returns the nearest word that may have the term as its stem, and how many typos are
// between that word and the speller's word, at most limit+1.
func (m *speller) distance(term string, mask uint64) (slips int, word string) {
	slips, word = m.limit+1, term
	n := len(term)
	// The term itself may be the word: a word without an ending, or a compound.
	if d := n - len(m.word); d >= -2*m.limit && d <= 2*m.limit && bits.OnesCount64(m.mask&^mask) <= m.limit {
		slips = editdistance.Within(m.word, term, m.limit)
	}
	if slips == 0 || m.suffix == nil || n < 3 || n > len(m.word)+m.limit || term[0] >= utf8.RuneSelf {
		return slips, word
	}
	// The part of the word before its ending must be near too.
	if head := m.word[:min(len(m.word), n)]; bits.OnesCount64(mask&^letterMask(m.word[:min(len(m.word), n+m.limit)])) > m.limit ||
		editdistance.Within(head, term, 2*m.limit) > 2*m.limit {
		return slips, word
	}
	for _, s := range m.suffix[1:] {
		full := term + s
		if s == "y" || s == "ies" {
			full = strings.TrimSuffix(term, "i") + s
		}
		if d := len(full) - len(m.word); d > m.limit || d < -m.limit {
			continue
		}
		if d := editdistance.Within(m.word, full, m.limit); d < slips && language.Term(full) == term {
			slips, word = d, full
		}
	}
	return slips, word
}

// ranked returns the respellings with the nearest first. Equally near ones are sorted by
// frequency.
func (m *speller) ranked() []Respelling {
	all := make([]Respelling, 0, len(m.found))
	for _, r := range m.found {
		all = append(all, r)
	}
	slices.SortFunc(all, byNearness)
	return all
}

func byNearness(a, b Respelling) int {
	written := func(r Respelling) int {
		if r.written {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.slips, b.slips), cmp.Compare(written(a), written(b)), cmp.Compare(b.docs, a.docs), strings.Compare(a.term, b.term))
}

// nearestFew returns at most n respellings, only those with the fewest typos and none that
// is rare compared with the first. If a page has the first in its spelling, nearestFew leaves out
// those that no page has.
func nearestFew(all []Respelling, n int) []Respelling {
	slices.SortFunc(all, byNearness)
	for i := range all {
		if all[i].slips > all[0].slips || all[0].written && !all[i].written || all[i].docs*rareShare < all[0].docs {
			all = all[:i]
			break
		}
		all[i].weight = oneSlipWeight
		if all[i].slips > 1 {
			all[i].weight = twoSlipWeight
		}
	}
	return all[:min(len(all), n)]
}

// maxOneCharacter is how many pairs are looked up for one character.
const maxOneCharacter = 16

// oneCharacter returns the most frequent terms that begin with the single character of a
// query in a script without spaces, because such characters are indexed in pairs. It
// returns nil for any other word.
func (l *lexicon) oneCharacter(ctx context.Context, raw string) ([]string, error) {
	r, size := utf8.DecodeRuneInString(raw)
	if size != len(raw) || !parse.Spaceless(r) {
		return nil, nil
	}
	prefix := language.Fold(raw)
	docs := map[string]int64{}
	for _, s := range l.sources {
		left := maxVocabulary
		err := s.EachTerm(ctx, prefix, func(term string, df int64) bool {
			if term != prefix {
				docs[term] += df
			}
			left--
			return left > 0
		})
		if err != nil {
			return nil, s.Failed(err)
		}
	}
	all := make([]string, 0, len(docs))
	for t := range docs {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(docs[b], docs[a]), strings.Compare(a, b)) })
	return all[:min(len(all), maxOneCharacter)], nil
}
