package index

import (
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/segment"
)

// The fields that BM25F weighs. Parts of identifiers count as body.
const (
	fieldTitle = iota
	fieldCrumb
	fieldBody
	fieldCount
)

// document is a file ready to be written.
type document struct {
	path  space.Path
	blob  space.BlobID
	page  page
	kind  Kind
	text  []byte
	terms []chunkTerms // one for each of page.chunks
}

// chunkTerms are the terms of one chunk.
type chunkTerms struct {
	length [fieldCount]int64 // in words
	tokens tokens
	terms  []termCount   // each once
	known  *vocabularyID // that the ids of terms are of
	texts  []string      // of terms, by id
}

// termCount is a term with its count in each field.
type termCount struct {
	id termID
	n  segment.Counts
}

// Kind is what a file of a space is for, told by where it is.
type Kind string

// The kinds.
const (
	KindMemory    Kind = "memory"
	KindResource  Kind = "resource"
	KindSkill     Kind = "skill"
	KindKnowledge Kind = "knowledge"
	KindFile      Kind = "file"
)

var kinds = []Kind{KindMemory, KindResource, KindSkill, KindKnowledge, KindFile}

// kindOf tells the kind of a file by its first directory.
func kindOf(p space.Path) Kind {
	top, _, nested := strings.Cut(string(p), "/")
	if nested {
		switch top {
		case "memory":
			return KindMemory
		case "resources":
			return KindResource
		case "skills":
			return KindSkill
		case "knowledge":
			return KindKnowledge
		}
	}
	return KindFile
}

// indexed tells whether a file belongs in the index at all.
func indexed(c space.FileChange) bool {
	return c.NewMode != space.Symlink && !space.IsConflictCopy(c.Path)
}

// analyse makes a document of a file. A binary file is known by its path alone.
func (a *analyzer) analyse(c space.FileChange, data []byte, date time.Time, maxChunks int) document {
	d := document{path: c.Path, blob: c.New, kind: kindOf(c.Path)}
	if isBinary(data) {
		data = nil
	}
	d.text = data
	d.page = parsePage(string(c.Path), data, maxChunks)
	if d.page.Date.IsZero() {
		d.page.Date = date
	}
	d.page.Lang = pageLanguage(string(c.Path), d.page.Lang, data)
	if d.page.Version == "" {
		d.page.Version = versionOf(string(c.Path))
	}
	if len(d.page.chunks) == 0 {
		d.page.chunks = []chunk{{lines: [2]int{1, 1}}} // so that it is found by its name
	}
	d.terms = a.chunkTerms(string(d.path), &d.page, d.text)
	return d
}

// chunkTerms analyses the chunks of a page. It must depend on nothing but its
// arguments: where a page is deleted, its terms are what it gives once more.
func (a *analyzer) chunkTerms(name string, p *page, text []byte) []chunkTerms {
	f := format(name)
	a.in(p.Lang)
	defer a.in("")
	about := nameWords(name) + " " + strings.Join(p.Tags, " ") + " " + strings.Join(p.Files, " ")
	all := make([]chunkTerms, len(p.chunks))
	for i, c := range p.chunks {
		t := &all[i]
		a.refresh()
		a.known.chunk++
		a.counts, a.bytes = a.counts[:0], a.bytes[:0]
		field := func(field int, texts ...string) {
			a.hashes = a.hashes[:0]
			for _, s := range texts {
				if a.plain, a.derived = a.plain[:0], a.derived[:0]; !a.read(s) {
					continue
				}
				if len(a.hashes) > 0 {
					a.hashes = append(a.hashes, tokenBreak)
				}
				for _, w := range a.plain {
					a.hashes = append(a.hashes, a.known.terms[w].hash)
				}
				t.length[field] += int64(len(a.plain))
				a.count(a.plain, field)
				a.count(a.derived, field)
			}
			a.bytes = appendTokens(a.bytes, a.hashes)
		}
		field(fieldTitle, p.Title)
		var crumbs []string
		for _, h := range append(slices.Clone(c.crumbs), c.headings...) {
			if h != p.Title && !slices.Contains(crumbs, h) {
				crumbs = append(crumbs, h)
			}
		}
		field(fieldCrumb, append(crumbs, about)...)
		field(fieldBody, indexable(f, string(text[c.head[0]:c.head[1]])), indexable(f, string(text[c.start:c.end])))
		// Of the size that they have: they wait to be written.
		t.terms, t.known, t.texts = slices.Clone(a.counts), a.known.id, a.known.texts
		t.tokens = append(make(tokens, 0, len(a.bytes)+sealBytes), a.bytes...)
	}
	return all
}

// read gathers the terms of a text, and tells whether it has words.
func (a *analyzer) read(text string) bool {
	a.known.scan(text, a.lang, func(w token) {
		a.plain = append(a.plain, w.term)
		a.derived = append(a.derived, w.parts...)
		if w.joined != 0 {
			a.derived = append(a.derived, w.joined)
		}
		if w.own != 0 {
			a.derived = append(a.derived, w.own)
		}
	})
	return len(a.plain) > 0
}

// count counts terms in a field of the current chunk.
func (a *analyzer) count(list []termID, field int) {
	v := a.known
	for _, id := range list {
		t := &v.terms[id]
		if t.chunk != v.chunk {
			t.chunk, t.at = v.chunk, uint32(len(a.counts))
			a.counts = append(a.counts, termCount{id: id})
		}
		if n := &a.counts[t.at].n[field]; *n < math.MaxUint16 {
			*n++
		}
	}
}

// nameWords returns the last two segments of a path as words, without order
// numbers and extension.
func nameWords(name string) string {
	dir, base := path.Split(name)
	base = strings.TrimSuffix(base, path.Ext(base))
	return strings.TrimLeft(path.Base(dir), "0123456789.") + " " + strings.TrimLeft(base, "0123456789.")
}
