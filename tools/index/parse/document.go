package parse

import (
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/segment"
)

// The fields that BM25F weighs. Parts of identifiers count as words of the field that contains
// the identifier, but not in the length of the field.
const (
	FieldTitle = iota
	FieldCrumb
	FieldBody
	FieldCount
)

// Document is a file that is ready to be indexed.
type Document struct {
	Path  space.Path
	Blob  space.BlobID
	Page  Page
	Kind  Kind
	Text  []byte
	Terms []ChunkTerms // one for each of Page.Chunks
}

// ChunkTerms holds the terms of one chunk.
type ChunkTerms struct {
	Length [FieldCount]int64 // number of words in each field
	Tokens Tokens
	Terms  []termCount   // each term once
	Known  *VocabularyID // the vocabulary of the terms' ids
	Texts  []string      // the texts of terms, by id
}

// termCount is a term with its count in each field.
type termCount struct {
	ID termID
	N  segment.Counts
}

// Kind is the purpose of a file in a space. The first directory of the file's path determines
// it.
type Kind string

const (
	KindMemory    Kind = "memory"
	KindResource  Kind = "resource"
	KindSkill     Kind = "skill"
	KindKnowledge Kind = "knowledge"
	KindFile      Kind = "file"
)

// Kinds lists every kind.
var Kinds = []Kind{KindMemory, KindResource, KindSkill, KindKnowledge, KindFile}

// kindOf returns the kind of a file.
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

// Indexed reports whether a file belongs in the index.
func Indexed(c space.FileChange) bool {
	return c.NewMode != space.Symlink && !space.IsConflictCopy(c.Path)
}

// Analyse returns the document of a file. For a binary file, it only uses the path.
func (a *Analyzer) Analyse(c space.FileChange, data []byte, date time.Time, maxChunks int) Document {
	d := Document{Path: c.Path, Blob: c.New, Kind: kindOf(c.Path)}
	if isBinary(data) {
		data = nil
	}
	d.Text = data
	d.Page = Parse(string(c.Path), data, maxChunks)
	if d.Page.Date.IsZero() {
		d.Page.Date = date
	}
	d.Page.Lang = pageLanguage(string(c.Path), d.Page.Lang, data)
	if d.Page.Version == "" {
		d.Page.Version = versionOf(string(c.Path))
	}
	if len(d.Page.Chunks) == 0 {
		d.Page.Chunks = []Chunk{{Lines: [2]int{1, 1}}} // one chunk, so that a search finds the file by its name
	}
	d.Terms = a.ChunkTerms(string(d.Path), &d.Page, d.Text)
	return d
}

// ChunkTerms analyses the chunks of a page. The result must depend only on the arguments, because
// Writer.Remove computes the terms of a deleted page again.
func (a *Analyzer) ChunkTerms(name string, p *Page, text []byte) []ChunkTerms {
	f := Format(name)
	a.In(p.Lang)
	defer a.In("")
	about := nameWords(name) + " " + strings.Join(p.Tags, " ") + " " + strings.Join(p.Files, " ")
	all := make([]ChunkTerms, len(p.Chunks))
	for i, c := range p.Chunks {
		t := &all[i]
		a.refresh()
		a.Known.chunk++
		a.counts, a.bytes = a.counts[:0], a.bytes[:0]
		field := func(field int, texts ...string) {
			a.hashes = a.hashes[:0]
			for _, s := range texts {
				if a.plain, a.derived = a.plain[:0], a.derived[:0]; !a.read(s) {
					continue
				}
				if len(a.hashes) > 0 {
					a.hashes = append(a.hashes, TokenBreak)
				}
				for _, w := range a.plain {
					a.hashes = append(a.hashes, a.Known.terms[w].hash)
				}
				t.Length[field] += int64(len(a.plain))
				a.count(a.plain, field)
				a.count(a.derived, field)
			}
			a.bytes = appendTokens(a.bytes, a.hashes)
		}
		title := []string{p.Title}
		var heads []string
		for _, h := range append(slices.Clone(c.Crumbs), c.Headings...) {
			if h != p.Title && !slices.Contains(heads, h) {
				heads = append(heads, h)
			}
		}
		heads = append(heads, about)
		body := []string{Indexable(f, string(text[c.Head[0]:c.Head[1]])), Indexable(f, string(text[c.Start:c.End]))}
		if p.Conversation {
			title, heads, body = nil, nil, append(body, p.Title, about)
		}
		field(FieldTitle, title...)
		field(FieldCrumb, heads...)
		field(FieldBody, body...)
		// Keep copies without spare capacity (except for the checksum), because it may take long
		// until they are written.
		t.Terms, t.Known, t.Texts = slices.Clone(a.counts), a.Known.id, a.Known.texts
		t.Tokens = append(make(Tokens, 0, len(a.bytes)+sealBytes), a.bytes...)
	}
	return all
}

// read collects the terms of a text, and reports whether the text has words.
func (a *Analyzer) read(text string) bool {
	a.Known.scan(text, a.lang, func(w token) {
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
func (a *Analyzer) count(list []termID, field int) {
	v := a.Known
	for _, id := range list {
		t := &v.terms[id]
		if t.chunk != v.chunk {
			t.chunk, t.at = v.chunk, uint32(len(a.counts))
			a.counts = append(a.counts, termCount{ID: id})
		}
		if n := &a.counts[t.at].N[field]; *n < math.MaxUint16 {
			*n++
		}
	}
}

// nameWords returns the last two segments of a path as words, without order numbers and the
// extension.
func nameWords(name string) string {
	dir, base := path.Split(name)
	base = strings.TrimSuffix(base, path.Ext(base))
	return strings.TrimLeft(path.Base(dir), "0123456789.") + " " + strings.TrimLeft(base, "0123456789.")
}
