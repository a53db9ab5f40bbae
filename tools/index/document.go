package index

import (
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
	title, crumb, body, extra string // the columns of FTS5
	length                    [fieldCount]int64
	packed                    []byte // see packTerms
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
// arguments: a page is deleted from FTS5 by what it gives the second time.
func (a *analyzer) chunkTerms(name string, p *page, text []byte) []chunkTerms {
	f := format(name)
	a.in(p.Lang)
	defer a.in("")
	about := nameWords(name) + " " + strings.Join(p.Tags, " ") + " " + strings.Join(p.Files, " ")
	var words, extra []string
	var hashes []uint32
	all := make([]chunkTerms, len(p.chunks))
	for i, c := range p.chunks {
		t := &all[i]
		hashes = hashes[:0]
		column := func(field int, s string) (string, []string) {
			words, extra = a.terms(s, words[:0], extra[:0])
			t.length[field] = int64(len(words))
			for _, list := range [][]string{words, extra} {
				for _, w := range list {
					hashes = append(hashes, termHash(w)<<2|uint32(field))
				}
			}
			return strings.Join(words, " "), extra
		}
		var more []string
		t.title, more = column(fieldTitle, p.Title)
		t.title += " " + strings.Join(more, " ")
		var crumbs []string
		for _, h := range append(slices.Clone(c.crumbs), c.headings...) {
			if h != p.Title && !slices.Contains(crumbs, h) {
				crumbs = append(crumbs, h)
			}
		}
		t.crumb, more = column(fieldCrumb, strings.Join(crumbs, "\n")+"\n"+about)
		t.crumb += " " + strings.Join(more, " ")
		t.body, more = column(fieldBody, indexable(f, string(text[c.head[0]:c.head[1]])+string(text[c.start:c.end])))
		t.extra = strings.Join(more, " ")
		t.packed = packTerms(hashes, t.length)
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
