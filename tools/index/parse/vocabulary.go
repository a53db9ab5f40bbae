package parse

import (
	"hash/maphash"
	"math"
	"strings"
	"unicode/utf8"

	"satchel/tools/index/language"
)

// The limits of words that an analyzer caches: a build sees every word of a collection, and a
// query few words. A word takes about 150 bytes.
const (
	buildWords = 1 << 16
	queryWords = 1 << 14
)

// vocabulary caches the results of an analyzer for words. It is a hash table with open
// addressing, and takes one lookup for each word. Its speed depends on the processor's cache,
// so the table is packed and has almost no pointers. A vocabulary only grows, up to a limit of
// words; then the analyzer starts another. Ids of words and terms are only valid within one
// vocabulary.
type vocabulary struct {
	seed  maphash.Seed
	slots []wordSlot // the length is a power of two, and at least half of the slots are empty
	words []knownWord
	raw   []byte      // the spellings of the words, one after another
	forms []wordForms // for the few words that have any, from index 1
	terms []knownTerm // from index 1
	texts []string    // the texts of terms
	ids   map[string]termID
	chunk uint32 // the chunk that is being counted; see knownTerm
	marks []int  // the buffer of cut
	most  int
	id    *VocabularyID
}

// VocabularyID identifies a vocabulary for code that outlives it.
type VocabularyID struct{ _ byte }

type (
	wordID uint32
	termID uint32 // 0: none
)

// wordSlot is empty if word is 0. Otherwise, word is the id of the word plus 1.
type wordSlot struct{ hash, word uint32 }

// knownWord is one spelling of a word, with its forms.
type knownWord struct {
	from  uint32 // offset in raw
	size  uint8
	split bool // parts has been called
	term  termID
	forms uint32 // 0: none
}

// wordForms holds the forms that only few words have.
type wordForms struct {
	parts []termID // the parts of an identifier
	texts []string // the texts of parts
	own   []stem   // the stems in the languages of the texts with the word
}

// stem is a word's stem in one language. term is 0 if the word has no stem there.
type stem struct {
	lang string
	term termID
}

// knownTerm holds a term's TermHash, the last chunk that contains the term, and the term's
// place among the terms of that chunk.
type knownTerm struct{ hash, chunk, at uint32 }

// NewVocabulary returns an empty vocabulary. most is about how many words it holds before the
// analyzer replaces it.
func NewVocabulary(most int) *vocabulary {
	return &vocabulary{
		seed: maphash.MakeSeed(), slots: make([]wordSlot, 1<<10), ids: make(map[string]termID, 1<<8), most: most, id: &VocabularyID{},
		forms: make([]wordForms, 1), terms: make([]knownTerm, 1), texts: make([]string, 1),
	}
}

// term returns the id of a term, or 0 for "".
func (v *vocabulary) term(text string) termID {
	if text == "" {
		return 0
	}
	t, ok := v.ids[text]
	if !ok {
		text = strings.Clone(text) // so that the page is not kept in memory
		t = termID(len(v.terms))
		v.terms = append(v.terms, knownTerm{hash: TermHash(text)})
		v.texts = append(v.texts, text)
		v.ids[text] = t
	}
	return t
}

// find returns the id of a word, if the word is known, and its hash.
func (v *vocabulary) find(raw string) (w wordID, hash uint64, ok bool) {
	hash = maphash.String(v.seed, raw)
	mask := uint64(len(v.slots) - 1)
	for i := hash & mask; v.slots[i].word != 0; i = (i + 1) & mask {
		if s := v.slots[i]; s.hash == uint32(hash>>32) {
			k := &v.words[s.word-1]
			if string(v.raw[k.from:k.from+uint32(k.size)]) == raw {
				return wordID(s.word - 1), hash, true
			}
		}
	}
	return 0, hash, false
}

// add adds a word that find did not find.
func (v *vocabulary) add(hash uint64, raw string, t termID) wordID {
	w := wordID(len(v.words))
	if len(raw) > math.MaxUint8 { // too long for a name, and unlikely to be repeated
		v.words = append(v.words, knownWord{term: t, split: true})
		return w
	}
	v.words = append(v.words, knownWord{from: uint32(len(v.raw)), size: uint8(len(raw)), term: t})
	v.raw = append(v.raw, raw...)
	if 2*len(v.words) > len(v.slots) {
		v.slots = make([]wordSlot, 2*len(v.slots))
		for i := range v.words[:w] {
			if k := &v.words[i]; k.size > 0 {
				v.place(maphash.Bytes(v.seed, v.raw[k.from:k.from+uint32(k.size)]), wordID(i))
			}
		}
	}
	v.place(hash, w)
	return w
}

func (v *vocabulary) place(hash uint64, w wordID) {
	mask := uint64(len(v.slots) - 1)
	i := hash & mask
	for v.slots[i].word != 0 {
		i = (i + 1) & mask
	}
	v.slots[i] = wordSlot{uint32(hash >> 32), uint32(w) + 1}
}

// more returns the forms of a word, and creates them if necessary.
func (v *vocabulary) more(w wordID) *wordForms {
	k := &v.words[w]
	if k.forms == 0 {
		k.forms = uint32(len(v.forms))
		v.forms = append(v.forms, wordForms{})
	}
	return &v.forms[k.forms]
}

// refresh starts another vocabulary if this one is full. Ids of the two must not be mixed.
func (a *Analyzer) refresh() {
	if v := a.Known; len(v.words) >= v.most || len(v.terms) >= 2*v.most {
		a.Known = NewVocabulary(v.most)
	}
}

// know returns the ids of a word and of its term, and adds a new word.
func (v *vocabulary) know(raw string) (wordID, termID) {
	w, hash, ok := v.find(raw)
	if ok {
		return w, v.words[w].term
	}
	var t termID
	if low := lowerASCII(raw); low != raw {
		_, t = v.know(low)
	} else {
		t = v.term(language.Term(low))
	}
	return v.add(hash, raw, t), t
}

// parts returns the terms of the parts of an identifier, or nil if the word is not an
// identifier.
func (v *vocabulary) parts(w wordID, raw string) []termID {
	if k := &v.words[w]; k.split {
		return v.forms[k.forms].parts
	}
	v.words[w].split = true
	marks := v.cut(raw)
	if len(marks) == 0 {
		return nil
	}
	parts, texts := make([]termID, 0, len(marks)+1), make([]string, 0, len(marks)+1)
	from := 0
	for _, to := range append(marks, len(raw)) {
		_, t := v.know(raw[from:to])
		parts, texts = append(parts, t), append(texts, v.texts[t])
		from = to
	}
	f := v.more(w)
	f.parts, f.texts = parts, texts
	return parts
}

// ownStem returns the term of a word's stem in a language, or 0 if the word has no stem there.
func (v *vocabulary) ownStem(w wordID, raw, lang string) termID {
	f := v.more(w)
	for _, s := range f.own {
		if s.lang == lang {
			return s.term
		}
	}
	s := stem{lang: lang}
	if !language.IsStop(strings.ToLower(raw), lang) {
		s.term = v.term(OwnTerm(lang, language.Stem(lang, raw)))
	}
	f.own = append(f.own, s)
	return s.term
}

// lowerASCII returns an ASCII word in lower case, and any other word unchanged. The term of a word
// does not depend on the case of its letters.
func lowerASCII(s string) string {
	upper := false
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return s
		}
		upper = upper || IsUpper(s[i])
	}
	if !upper {
		return s
	}
	return strings.ToLower(s)
}
