package present

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/rank"
)

const (
	// minTextTokens is the remaining budget below which no further hit gets its text.
	minTextTokens = 120
	// metadataShare is the part of the budget for hits without their text. If they need
	// more, there is less text: the number of hits is more important.
	metadataShare = 0.6
	// spareShare of the budget is left unused, for errors of the estimate.
	spareShare = 0.03
	// textShare is the part of the budget that one hit's text may take.
	textShare = 0.4
	// envelopeTokens is what an answer costs without its hits, scope and notes.
	envelopeTokens = 150
	// maxEnvelopeShare is the largest share of a small budget that everything except the hits
	// takes.
	maxEnvelopeShare = 0.25
	// maxRelated is how many related files a hit names.
	maxRelated = 5
)

// DefaultMaxTokens is the default budget of an answer, in tokens.
const DefaultMaxTokens = 5000

// Hit is one document that matches, at its best place.
type Hit struct {
	Collection space.SpaceID
	Source     string     // the collection's label
	Path       string     // the file's path, which begins with the collection's mount
	File       space.Path // the file's path within the collection
	Title      string
	Heading    string // the nearest heading above the best lines; may be empty
	Anchor     string // the anchor of Heading; see parse.Section
	Lines      [2]int // first and last line of Text or, without it, of Snippet
	// Snippet is the lines or sentences that show why this is a hit, from the
	// lines SnippetLines.
	Snippet      string
	SnippetLines [2]int
	Score        float64
	// Description is the description in the document's front matter.
	Description string
	// URL is the page on the web from which a source has the document. It may be empty.
	URL     string
	Kind    parse.Kind
	Lang    string
	Version string
	Date    time.Time    // when it was last changed; zero: unknown
	Blob    space.BlobID // the document's etag
	// AlsoIn lists paths (like Path) of documents that this hit represents: copies, and
	// other versions and languages. It may list only the best. The field Also is the number
	// of all such documents.
	Also   int
	AlsoIn []string
	// Related lists the files that a page is about (relevant_files). For a file, it lists
	// the pages that are about the file.
	Related []string
	// Text is the passage or the whole document. Only the top hits have it, as far as the
	// token budget allows.
	Text string
	// Why explains the score, if the query asks for it.
	Why *rank.Explanation
}

// hitPassage is a document with its best passage and its snippet.
type hitPassage struct {
	*rank.Candidate
	best passage
	sn   snippet
	cost func(string) int // returns the cost of a text in the answer
	body bool             // texts leave out front matter
}

// Hits presents documents, best first, within a budget of tokens for the whole answer. First
// every hit gets its metadata and snippet, as far as the budget allows. Then the best get their
// text. Documents that do not fit are left out. tokens is the approximate cost of the hits.
// scope and the notes of the search are part of the answer.
func Hits(ctx context.Context, u *rank.Run, docs []*rank.Candidate, budget int, scope string) (hits []Hit, tokens int, err error) {
	if budget <= 0 {
		budget = DefaultMaxTokens
	}
	envelope := envelopeTokens + costOf(scope)
	for _, n := range u.Notes {
		envelope += costOf(n)
	}
	budget -= min(envelope, int(maxEnvelopeShare*float64(budget))) + int(spareShare*float64(budget))
	a, w := u.Analyzer(), newHighlightTerms(u.Terms())
	var given []*hitPassage
	room := int(metadataShare * float64(budget))
	for i, doc := range docs {
		f := &hitPassage{Candidate: doc, cost: costOf}
		h, err := f.describe(ctx, a, w)
		if err != nil {
			return nil, 0, doc.Source.Failed(err)
		}
		cost := h.tokens()
		// Each hit may take an equal share of what the hits before it have left.
		if share := (room - tokens) / (len(docs) - i); cost > share {
			h.shorten(a, f, w, share)
			cost = h.tokens()
		}
		if tokens+cost > budget && len(hits) > 0 {
			break
		}
		tokens += cost
		hits = append(hits, h)
		given = append(given, f)
	}
	best := 0.0
	for _, h := range hits {
		best = max(best, h.Score)
	}
	for i, f := range given {
		h := &hits[i]
		if u.Weak(h.Score, best) {
			continue // a weak hit gets no text
		}
		// The text takes the place of the snippet and the description.
		spared := costOf(h.Snippet) + costOf(h.Description)
		left := budget - tokens + spared
		if left-spared < minTextTokens {
			break
		}
		t, err := f.text(ctx, min(left, int(textShare*float64(budget))))
		if err != nil {
			return nil, 0, f.Source.Failed(err)
		}
		if t.text == "" {
			continue
		}
		h.Text, h.Lines = t.text, t.lines
		tokens += costOf(t.text) - spared
	}
	return hits, tokens, nil
}

// CutNote returns the note of an answer that omits hits because they do not fit into its
// budget of tokens.
func CutNote(hits int) string {
	if hits == 1 {
		return "Only the best hit is shown: the token budget has no room for more."
	}
	return fmt.Sprintf("Only the best %d hits fit into the token budget.", hits)
}

// describe creates the hit of a document, without its text.
func (f *hitPassage) describe(ctx context.Context, a *parse.Analyzer, w highlightTerms) (h Hit, err error) {
	if err := f.Load(ctx); err != nil {
		return h, err
	}
	f.best.Passage = *f.Passage
	if f.best.head, err = f.tableHead(ctx); err != nil {
		return h, err
	}
	d := &f.Doc
	f.sn = f.snippet(a, w, snippetBytes)
	h = Hit{
		Collection: f.Source.ID, Source: f.Source.Label,
		Path: f.Source.Shown(string(d.Path)), File: d.Path, Title: shown(d.Title), Heading: shown(f.sn.heading), Anchor: shown(f.sn.anchor),
		Lines: f.sn.lines, SnippetLines: f.sn.lines, Snippet: f.sn.text, Score: f.Score, Description: shown(d.Description),
		Kind: d.Kind, Lang: d.Lang, Version: shown(d.Version), Date: d.Time(), Blob: d.Blob, Also: f.AlsoCount, AlsoIn: f.Also, Why: f.Why,
	}
	if f.Source.Web {
		h.URL = shown(d.URL)
	}
	h.Related, err = f.related(ctx)
	return h, err
}

// snippet returns the snippet of the best passage.
func (f *hitPassage) snippet(a *parse.Analyzer, w highlightTerms, most int) snippet {
	return f.snippetOf(a, f.best, w, most)
}

func (f *hitPassage) snippetOf(a *parse.Analyzer, p passage, w highlightTerms, most int) snippet {
	a.In(f.Doc.Lang)
	defer a.In("")
	return makeSnippet(a, p, string(f.Doc.Path), w, most)
}

// Limits for hits that are shortened because not every hit fits.
const (
	shortSnippetBytes = 120
	shortDescription  = 160
)

// shorten removes the least useful parts of a hit until it costs no more than share or
// nothing else can be removed.
func (h *Hit) shorten(a *parse.Analyzer, f *hitPassage, w highlightTerms, share int) {
	for _, step := range []func(){
		func() { h.AlsoIn = h.AlsoIn[:min(len(h.AlsoIn), 1)] },
		func() { h.Related = h.Related[:min(len(h.Related), 1)] },
		func() {
			if len(h.Description) > shortDescription {
				h.Description = strings.TrimSpace(parse.Clip(h.Description, shortDescription)) + "…"
			}
		},
		func() {
			sn := f.snippet(a, w, shortSnippetBytes)
			f.sn = sn
			h.Snippet, h.Heading, h.Anchor, h.Lines = sn.text, shown(sn.heading), shown(sn.anchor), sn.lines
			h.SnippetLines = sn.lines
		},
		func() { h.Description = "" },
		func() { h.URL = "" },
		func() { h.AlsoIn, h.Related = nil, nil },
	} {
		if h.tokens() <= share {
			break
		}
		step()
	}
}

// shown returns a part of a file as valid text. It replaces control characters by U+FFFD, and
// removes characters that deceive a reader: invisible ones, and those that change the order
// of letters.
func shown(s string) string {
	odd := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return odd(r) || deceptive(r) }) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case odd(r):
			return utf8.RuneError
		case deceptive(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// deceptive reports whether a character invisibly changes what a text seems to say: it
// overrides the direction of letters, has no width, or repeats ASCII invisibly, which an AI
// may read and a person does not. Joiners, which Persian, Indian scripts and emoji need, are
// not deceptive, nor are direction marks between words of two scripts.
func deceptive(r rune) bool {
	switch {
	case r < 0x180e:
		return false
	case r == 0x180e, r == 0x200b, r == 0xfeff, // no width
		r >= 0x202a && r <= 0x202e,   // embeds and overrides a direction
		r >= 0x2060 && r <= 0x206f,   // no width, isolates a direction, deprecated controls
		r >= 0xfff9 && r <= 0xfffb,   // hides an annotation
		r >= 0xe0000 && r <= 0xe007f: // tags
		return true
	}
	return false
}

// readable returns the text of a part of a file: the text of HTML and of notebooks, and the
// lines of all other files.
func readable(name, text string) string {
	switch f := parse.Format(name); f {
	case parse.FormatHTML, parse.FormatNotebook:
		var b strings.Builder
		for l := range strings.Lines(parse.Indexable(f, text)) {
			if l = strings.Join(strings.Fields(l), " "); l != "" || f == parse.FormatNotebook {
				b.WriteString(l + "\n")
			}
		}
		return strings.TrimRight(b.String(), "\n")
	}
	return text
}

// escape returns the character after the backslash in the JSON escape of a byte, or 0 if
// JSON does not escape the byte.
func escape(c byte) byte {
	switch c {
	case '\n':
		return 'n'
	case '\t':
		return 't'
	case '\r':
		return 'r'
	case '"', '\\':
		return c
	}
	return 0
}

// costOf returns the cost of a text in an answer, as a JSON string.
func costOf(s string) int {
	escapes, ascii := 0, true
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf {
			ascii = false
		} else if c <= '\\' && escape(c) != 0 {
			escapes++
		}
	}
	separators := !ascii && strings.ContainsAny(s, "\u2028\u2029")
	if escapes == 0 && !separators {
		return EstimateTokens(s)
	}
	var b strings.Builder
	b.Grow(len(s) + escapes)
	if ascii || !separators && utf8.ValidString(s) {
		from := 0
		for i := range len(s) {
			if c := s[i]; c <= '\\' {
				if e := escape(c); e != 0 {
					b.WriteString(s[from:i])
					b.WriteByte('\\')
					b.WriteByte(e)
					from = i + 1
				}
			}
		}
		b.WriteString(s[from:])
		return EstimateTokens(b.String())
	}
	for _, r := range s {
		switch {
		case r == '\u2028' || r == '\u2029':
			b.WriteString(`\u2028`)
		case r < utf8.RuneSelf && escape(byte(r)) != 0:
			b.WriteByte('\\')
			b.WriteByte(escape(byte(r)))
		default:
			b.WriteRune(r)
		}
	}
	return EstimateTokens(b.String())
}

// hitOverhead is the cost of a hit's field names, its score and the punctuation between
// them.
const hitOverhead = 64

// tokens returns the cost of a hit without its text. The path counts twice, because it is
// also the id.
func (h *Hit) tokens() int {
	n := hitOverhead + 2*costOf(h.Path)
	for _, s := range []string{h.Title, h.Heading, h.Anchor, h.Description, h.URL, h.Snippet, h.Source, h.Lang, h.Version, string(h.Blob)} {
		n += costOf(s)
	}
	if !h.Date.IsZero() {
		n += 10
	}
	for _, list := range [][]string{h.AlsoIn, h.Related} {
		for _, p := range list {
			n += costOf(p) + 3
		}
	}
	return n
}

// related returns the files that a document says it is about. For a file, it returns the
// pages that say they are about the file.
func (f *hitPassage) related(ctx context.Context) (all []string, err error) {
	s := f.Source
	pages, err := s.Links(ctx)
	if err != nil {
		return nil, err
	}
	me := string(f.Doc.Path)
	for _, p := range pages {
		if len(all) >= maxRelated {
			break
		}
		if p.Path != me {
			if slices.ContainsFunc(p.Files, func(file string) bool { return namesFile(file, me) }) {
				all = append(all, s.Shown(p.Path))
			}
			continue
		}
		for _, file := range p.Files[:min(len(p.Files), maxRelated)] {
			file = tidyFile(file)
			known, err := s.HasPath(ctx, file)
			if err != nil {
				return nil, err
			}
			if known {
				file = s.Shown(file)
			} else {
				file = shown(file) // as it is written on the page
			}
			all = append(all, file)
		}
	}
	return all[:min(len(all), maxRelated)], nil
}

func tidyFile(file string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(file, "/space/"), "./"), "/")
}

// namesFile reports whether an entry of relevant_files (a file, a directory or a glob) includes
// a file.
func namesFile(entry, file string) bool {
	entry = tidyFile(entry)
	if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(strings.TrimSuffix(entry, "**"), "/")); ok && (rest == "" || rest[0] == '/' && entry != "") {
		return true
	}
	ok, err := path.Match(entry, file)
	return ok && err == nil
}
