package evaluate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
	"satchel/tools/index/parse"
)

// Docs holds the pages of a documentation tree, and queries that were generated from it.
type Docs struct {
	// Documents are the pages without their descriptions.
	Documents []Document
	// Descriptions are the authors' descriptions of pages, Words are identifiers in words
	// ("use async data"), and Identifiers are identifiers as they are written.
	Descriptions, Words, Identifiers []Query
}

// minDescription is how many words a description must have. Shorter descriptions only repeat
// the title.
const minDescription = 4

// FromDocs generates queries from pages, which are keyed by path. The queries are the
// descriptions in the pages' front matter, and identifiers that are whole headings. A page is
// relevant to its own description, and to an identifier that is its title or one of its
// headings. Only headings down to the given level count; 6 means all.
func FromDocs(pages map[string][]byte, levels int) (*Docs, error) {
	d := &Docs{}
	descriptions, words, identifiers := newQuerySet(), newQuerySet(), newQuerySet()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		path, err := space.ParsePath(name)
		if err != nil {
			return nil, err
		}
		page := pages[name]
		if said := describedAs(page); said != "" {
			descriptions.add(said, name)
		}
		for _, id := range identifiersOf(name, page, levels) {
			identifiers.add(id, name)
			words.add(SplitIdentifier(id), name)
		}
		stripped := WithoutDescription(page)
		d.Documents = append(d.Documents, Document{
			ID: name, Path: path, Size: int64(len(stripped)), Blob: contentID(stripped),
			Read: func() ([]byte, error) { return stripped, nil },
		})
	}
	d.Descriptions, d.Words, d.Identifiers = descriptions.queries, words.queries, identifiers.queries
	if len(d.Descriptions) == 0 || len(d.Identifiers) == 0 {
		return nil, fault.New(fault.Invalid, "Of %d pages none is described in its front matter, or none has a heading that is an identifier: no queries can be made.", len(pages))
	}
	return d, nil
}

// contentID returns an id for a content: a hash as long as git's.
func contentID(data []byte) space.BlobID {
	sum := sha256.Sum256(data)
	return space.BlobID(hex.EncodeToString(sum[:20]))
}

// querySet collects queries, each text once.
type querySet struct {
	queries []Query
	at      map[string]int
}

func newQuerySet() *querySet { return &querySet{at: map[string]int{}} }

func (s *querySet) add(text, relevant string) {
	i, there := s.at[text]
	if !there {
		i = len(s.queries)
		s.at[text] = i
		s.queries = append(s.queries, Query{ID: text, Text: text, Grades: Grades{}})
	}
	s.queries[i].Grades[relevant] = 1
}

func describedAs(page []byte) string {
	said := frontmatter.ParseLoosely(page).Written("description")
	if len(said) != 1 || len(strings.Fields(said[0])) < minDescription {
		return ""
	}
	return strings.Join(strings.Fields(said[0]), " ")
}

// WithoutDescription removes the description from a page's front matter: the line of the key,
// and the indented or blank lines after it that belong to the value.
func WithoutDescription(page []byte) []byte {
	body := frontmatter.ParseLoosely(page).Body
	var out []byte
	within := false
	for line := range bytes.Lines(page[:len(page)-len(body)]) {
		if within {
			within = line[0] == ' ' || line[0] == '\t' || len(bytes.TrimSpace(line)) == 0
		}
		if key, _, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimRight(key, " \t")) == "description" {
			within = true
		}
		if !within {
			out = append(out, line...)
		}
	}
	return append(out, body...)
}

// identifiersOf returns the identifiers that are the title of a page or one of
// its headings, each once.
func identifiersOf(name string, page []byte, levels int) []string {
	headings := frontmatter.ParseLoosely(page).Written("title")
	for _, s := range parse.Sections(name, page) {
		if s.Level <= levels {
			headings = append(headings, s.Title)
		}
	}
	var ids []string
	for _, h := range headings {
		h = strings.TrimSuffix(strings.Trim(h, "` "), "()")
		h = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(h, "<"), ">"), " /")
		if isIdentifier(h) && !slices.Contains(ids, h) {
			ids = append(ids, h)
		}
	}
	return ids
}

// identifierForm matches camelCase, PascalCase and kebab-case with at least two words. It does
// not match a word with hyphens and a capital at the start, which is English ("Built-in").
var identifierForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[a-z][a-z0-9]*(?:-[a-z0-9]+)+)$`)
})

func isIdentifier(s string) bool { return len(s) <= 100 && identifierForm().MatchString(s) }

// SplitIdentifier returns the words of an identifier in lower case:
// "useAsyncData", "UseAsyncData" and "use-async-data" are "use async data", and
// "parseURLPath" is "parse url path".
func SplitIdentifier(id string) string {
	var b strings.Builder
	runes := []rune(id)
	for i, r := range runes {
		switch {
		case r == '-' || r == '_' || r == '.':
			b.WriteByte(' ')
			continue
		case i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
