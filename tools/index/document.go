package index

import (
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/space"
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
	terms  []termCount // each once
}

// termCount is a term with its count in each field.
type termCount struct {
	text string
	n    counts
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
func (a *analyzer) analyse(c space.FileChange, data []byte, date time.Time, o Options) document {
	d := document{path: c.Path, blob: c.New, kind: kindOf(c.Path)}
	if isBinary(data) {
		data = nil
	}
	d.text = data
	d.page = parsePage(string(c.Path), data, o.MaxChunks)
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
	var words, extra []string
	var hashes []uint32
	at := map[string]int{}
	all := make([]chunkTerms, len(p.chunks))
	for i, c := range p.chunks {
		t := &all[i]
		clear(at)
		t.terms = make([]termCount, 0, 64)
		count := func(list []string, field int) {
			for _, w := range list {
				k, ok := at[w]
				if !ok {
					k = len(t.terms)
					at[w] = k
					t.terms = append(t.terms, termCount{text: w})
				}
				if n := &t.terms[k].n[field]; *n < math.MaxUint16 {
					*n++
				}
			}
		}
		field := func(field int, texts ...string) {
			hashes = hashes[:0]
			for _, s := range texts {
				if words, extra = a.terms(s, words[:0], extra[:0]); len(words) == 0 {
					continue
				}
				if len(hashes) > 0 {
					hashes = append(hashes, tokenBreak)
				}
				for _, w := range words {
					hashes = append(hashes, termHash(w))
				}
				t.length[field] += int64(len(words))
				count(words, field)
				count(extra, field)
			}
			t.tokens = appendTokens(t.tokens, hashes)
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
	}
	return all
}

// nameWords returns the last two segments of a path as words, without order
// numbers and extension.
func nameWords(name string) string {
	dir, base := path.Split(name)
	base = strings.TrimSuffix(base, path.Ext(base))
	return strings.TrimLeft(path.Base(dir), "0123456789.") + " " + strings.TrimLeft(base, "0123456789.")
}
