package index

import (
	"hash/maphash"
	"strings"

	"satchel/tools/index/language"
)

// How many words an analyzer keeps what it made of: a build meets every word of
// a collection, a query few. A word takes about 250 bytes.
const (
	buildWords = 1 << 16
	queryWords = 1 << 14
)

// knownTerm is a term that an analyzer has met.
type knownTerm struct {
	text string
	hash uint32 // its termHash
	id   uint32 // counted from 0 within its vocabulary

	// What chunkTerms knows of it: the last chunk that has it, and where it is
	// among that chunk's terms.
	chunk uint64
	at    int
}

// knownWord is a word as it is written, with what the analyzer makes of it.
type knownWord struct {
	raw   string
	term  *knownTerm // nil where it is none
	forms *wordForms // nil while it is not known to have any
	split bool       // parts were looked for
}

// wordForms are what few words have.
type wordForms struct {
	parts []*knownTerm // of an identifier
	texts []string     // of parts
	own   []stem       // in languages that the word was met in
}

func (w *knownWord) more() *wordForms {
	if w.forms == nil {
		w.forms = &wordForms{}
	}
	return w.forms
}

// stem is a word's stem in a language; term is nil where it has none there.
type stem struct {
	lang string
	term *knownTerm
}

// vocabulary keeps what an analyzer made of words, so that it need not again:
// a hash table of words with open addressing, which is looked into once for
// each word that is read. It only grows, up to a number of words; then the
// analyzer begins another one. Ids of terms mean something within one
// vocabulary alone.
type vocabulary struct {
	seed  maphash.Seed
	slots []wordSlot // a power of two of them, half of them empty at least
	words int
	most  int
	terms map[string]*knownTerm
	id    *vocabularyID
}

// vocabularyID tells vocabularies apart for those who outlive them.
type vocabularyID struct{ _ byte }

type wordSlot struct {
	hash uint64
	word *knownWord // nil: empty
}

func newVocabulary(most int) *vocabulary {
	return &vocabulary{seed: maphash.MakeSeed(), slots: make([]wordSlot, 1<<10), most: most, terms: make(map[string]*knownTerm, 1<<8), id: &vocabularyID{}}
}

// find returns a word, nil where it is not known, and its hash.
func (v *vocabulary) find(raw string) (*knownWord, uint64) {
	hash := maphash.String(v.seed, raw)
	mask := len(v.slots) - 1
	for i := int(hash) & mask; v.slots[i].word != nil; i = (i + 1) & mask {
		if s := &v.slots[i]; s.hash == hash && s.word.raw == raw {
			return s.word, hash
		}
	}
	return nil, hash
}

// add keeps a word that find did not find.
func (v *vocabulary) add(hash uint64, w *knownWord) {
	if 2*v.words >= len(v.slots) {
		old := v.slots
		v.slots = make([]wordSlot, 2*len(old))
		for _, s := range old {
			if s.word != nil {
				v.place(s)
			}
		}
	}
	v.place(wordSlot{hash, w})
	v.words++
}

func (v *vocabulary) place(s wordSlot) {
	mask := len(v.slots) - 1
	i := int(s.hash) & mask
	for v.slots[i].word != nil {
		i = (i + 1) & mask
	}
	v.slots[i] = s
}

// term returns a term, nil for "".
func (v *vocabulary) term(text string) *knownTerm {
	if text == "" {
		return nil
	}
	t := v.terms[text]
	if t == nil {
		text = strings.Clone(text) // not the page that it was cut from
		t = &knownTerm{text: text, hash: termHash(text), id: uint32(len(v.terms))}
		v.terms[text] = t
	}
	return t
}

// refresh begins another vocabulary where this one is full. What was known of
// words before must not be mixed with what is after.
func (a *analyzer) refresh() {
	if v := a.known; v.words >= v.most || len(v.terms) >= 2*v.most {
		a.known = newVocabulary(a.known.most)
	}
}

// know returns what the analyzer makes of a word, and works it out where it does
// not know it.
func (a *analyzer) know(raw string) *knownWord {
	w, hash := a.known.find(raw)
	if w != nil {
		return w
	}
	w = &knownWord{raw: strings.Clone(raw)}
	if low := lowerASCII(w.raw); low != w.raw {
		w.term = a.know(low).term
	} else {
		w.term = a.known.term(language.Term(low))
	}
	a.known.add(hash, w)
	return w
}

// parts returns the terms of the parts of an identifier, nil where the word is
// none.
func (a *analyzer) parts(w *knownWord) []*knownTerm {
	if !w.split {
		w.split = true
		if marks := a.cut(w.raw); len(marks) > 0 {
			f, from := w.more(), 0
			for _, to := range append(marks, len(w.raw)) {
				t := a.know(w.raw[from:to]).term // a part has a letter or a digit that stays
				f.parts, f.texts = append(f.parts, t), append(f.texts, t.text)
				from = to
			}
		}
	}
	if w.forms == nil {
		return nil
	}
	return w.forms.parts
}

// ownStem returns the term of a word's stem in the analyzer's language, nil
// where that has none for it.
func (a *analyzer) ownStem(w *knownWord) *knownTerm {
	f := w.more()
	for _, s := range f.own {
		if s.lang == a.lang {
			return s.term
		}
	}
	s := stem{lang: a.lang}
	if !language.IsStop(strings.ToLower(w.raw), a.lang) {
		s.term = a.known.term(ownTerm(a.lang, language.Stem(a.lang, w.raw)))
	}
	f.own = append(f.own, s)
	return s.term
}

// lowerASCII lower-cases a word that is ASCII alone: only that is as the word's
// term has it whatever the rest.
func lowerASCII(s string) string {
	upper := false
	for i := range len(s) {
		if s[i] >= 0x80 {
			return s
		}
		upper = upper || isUpper(s[i])
	}
	if !upper {
		return s
	}
	return strings.ToLower(s)
}
