package index

import (
	"context"
	"fmt"
	"path"
	"satchel/tools/index/parse"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// minTextTokens is the budget under which no hit is given its text.
	minTextTokens = 120
	// metadataShare is the part of the budget that hits are shortened to before
	// any has its text; what cannot be shortened takes of the rest, so that an
	// answer has as many hits as were wanted, and rather less text.
	metadataShare = 0.6
	// spareShare of the budget is left unused, for what the estimate of a hit
	// misses of it.
	spareShare = 0.03
	// textShare is the part of the budget that one hit's text may take.
	textShare = 0.4
	// envelopeTokens is what an answer costs without its hits, scope and notes:
	// names of fields, a commit, notes that are added last.
	envelopeTokens = 150
	// maxEnvelopeShare bounds the above for small budgets.
	maxEnvelopeShare = 0.25
	// maxRelated is how many related files a hit names.
	maxRelated = 5
)

// present fills in the hits within the token budget: all of them get their
// metadata and snippet while the budget lasts, then those at the top their
// text.
func (x *Index) present(ctx context.Context, a *parse.Analyzer, p *plan, docs []*found, budget int, r *Results) error {
	if budget <= 0 {
		budget = DefaultMaxTokens
	}
	envelope := envelopeTokens + costOf(r.Scope)
	for _, n := range r.Notes {
		envelope += costOf(n)
	}
	budget -= min(envelope, int(maxEnvelopeShare*float64(budget))) + int(spareShare*float64(budget))
	w := newWanted(p)
	var windows []snippet
	room := int(metadataShare * float64(budget))
	for i, f := range docs {
		h, sn, err := x.describe(ctx, a, f, w)
		if err != nil {
			return x.failed(ctx, f.session, err)
		}
		cost := h.tokens()
		// Each hit may take what the ones before have left of its share.
		if share := (room - r.Tokens) / (len(docs) - i); cost > share {
			sn = h.shorten(a, f, w, sn, share)
			cost = h.tokens()
		}
		if r.Tokens+cost > budget && len(r.Hits) > 0 {
			r.Notes = append(r.Notes, CutNote(len(r.Hits)))
			break
		}
		r.Tokens += cost
		r.Hits = append(r.Hits, h)
		windows = append(windows, sn)
	}
	best := 0.0
	for _, h := range r.Hits {
		best = max(best, h.Score)
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		if h.Score < best*x.opts.MinScoreShare {
			continue // worth a look, and not worth reading unasked
		}
		// The text takes the place of the snippet and the description.
		spared := costOf(h.Snippet) + costOf(h.Description)
		left := budget - r.Tokens + spared
		if left-spared < minTextTokens {
			break
		}
		t, err := docs[i].text(ctx, windows[i], min(left, int(textShare*float64(budget))))
		if err != nil {
			return x.failed(ctx, docs[i].session, err)
		}
		if t.text == "" {
			continue
		}
		h.Text, h.Lines = t.text, t.lines
		r.Tokens += costOf(t.text) - spared
	}
	return nil
}

// CutNote is the note of an answer that has only so many hits because its budget
// of tokens has no room for as many as were wanted.
func CutNote(hits int) string {
	if hits == 1 {
		return "Only the best hit is given: the budget of tokens has no room for more."
	}
	return fmt.Sprintf("Only the best %d hits fit into the budget of tokens.", hits)
}

// Describe makes the hit of a document, without its text.
func (x *Index) describe(ctx context.Context, a *parse.Analyzer, f *found, w wanted) (h Hit, sn snippet, err error) {
	if err = f.load(ctx); err != nil {
		return h, sn, err
	}
	if f.best.head, err = f.tableHead(ctx); err != nil {
		return h, sn, err
	}
	d := &f.doc
	a.In(d.lang)
	sn = makeSnippet(a, f.best, string(d.path), w, snippetBytes)
	a.In("")
	h = Hit{
		Collection: f.session.col.ID, Source: f.session.col.Label,
		Path: f.session.shown(string(d.path)), File: d.path, Title: shown(d.title), Heading: shown(sn.heading), Anchor: shown(sn.anchor),
		Lines: sn.lines, SnippetLines: sn.lines, Snippet: sn.text, Score: f.score, Description: shown(d.description),
		Kind: d.kind, Lang: d.lang, Version: shown(d.version), Date: d.time(), Blob: d.blob, Also: f.alsoCount, AlsoIn: f.also, Why: f.why,
	}
	h.Related, err = f.related(ctx)
	return h, sn, err
}

// Bounds of what is shortened where not every hit fits as it is.
const (
	shortSnippetBytes = 120
	shortDescription  = 160
)

// shorten takes of a hit what tells least until it costs no more than share, or
// no more can be spared.
func (h *Hit) shorten(a *parse.Analyzer, f *found, w wanted, sn snippet, share int) snippet {
	for _, step := range []func(){
		func() { h.AlsoIn = h.AlsoIn[:min(len(h.AlsoIn), 1)] },
		func() { h.Related = h.Related[:min(len(h.Related), 1)] },
		func() {
			if len(h.Description) > shortDescription {
				h.Description = strings.TrimSpace(parse.Clip(h.Description, shortDescription)) + "…"
			}
		},
		func() {
			a.In(f.doc.lang)
			sn = makeSnippet(a, f.best, string(f.doc.path), w, shortSnippetBytes)
			a.In("")
			h.Snippet, h.Heading, h.Anchor, h.Lines = sn.text, shown(sn.heading), shown(sn.anchor), sn.lines
			h.SnippetLines = sn.lines
		},
		func() { h.Description = "" },
		func() { h.AlsoIn, h.Related = nil, nil },
	} {
		if h.tokens() <= share {
			break
		}
		step()
	}
	return sn
}

// shown returns the path of a file of the session's collection as answers
// write it.
func (s *session) shown(p string) string {
	if s.col.Mount == "" {
		return p
	}
	return s.col.Mount + "/" + p
}

// shown makes valid text of what files hold, without controls and without what
// deceives a reader: what nobody sees, and what puts letters in another order.
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

// deceptive reports whether a character changes what a text seems to say without
// being seen: it overrides the direction of letters, has no width, or repeats
// ASCII invisibly, which an AI may read where a person does not. Joiners are
// none, which Persian, Indian scripts and emoji need, nor are the marks that
// tell the direction of what stands between words of two scripts.
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

// readable is what is shown of a part of a file: of HTML and of notebooks what
// they say, of all else the lines as they are.
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

// costOf returns what a text costs in an answer, where it is a string of JSON.
func costOf(s string) int {
	if !strings.ContainsAny(s, "\n\"\\\t\r\u2028\u2029") {
		return EstimateTokens(s)
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/16)
	if !strings.ContainsAny(s, "\u2028\u2029") && utf8.ValidString(s) {
		from := 0
		for i := range len(s) {
			var escaped byte
			switch c := s[i]; c {
			case '\n':
				escaped = 'n'
			case '\t':
				escaped = 't'
			case '\r':
				escaped = 'r'
			case '"', '\\':
				escaped = c
			default:
				continue
			}
			b.WriteString(s[from:i])
			b.WriteByte('\\')
			b.WriteByte(escaped)
			from = i + 1
		}
		b.WriteString(s[from:])
		return EstimateTokens(b.String())
	}
	for _, r := range s {
		switch r {
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		case '\r':
			b.WriteString(`\r`)
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\u2028', '\u2029':
			b.WriteString(`\u2028`)
		default:
			b.WriteRune(r)
		}
	}
	return EstimateTokens(b.String())
}

// hitOverhead is what the names of a hit's fields, its score and the marks
// between them cost in an answer.
const hitOverhead = 64

// Tokens returns what a hit costs in an answer without its text. Its path is in
// it twice: it is the id, too.
func (h *Hit) tokens() int {
	n := hitOverhead + 2*costOf(h.Path)
	for _, s := range []string{h.Title, h.Heading, h.Anchor, h.Description, h.Snippet, h.Source, h.Lang, h.Version, string(h.Blob)} {
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

// aboutFiles is a page with the files that it says it is about (relevant_files).
type aboutFiles struct {
	path  string
	files []string
}

// maxLinkingPages bounds how many pages with relevant_files are looked through.
const maxLinkingPages = 5000

// related returns the files that the document says it is about, and of a file the
// pages that say so.
func (f *found) related(ctx context.Context) (all []string, err error) {
	s := f.session
	pages, err := s.linkingPages(ctx)
	if err != nil {
		return nil, err
	}
	me := string(f.doc.path)
	for _, p := range pages {
		if len(all) >= maxRelated {
			break
		}
		if p.path != me {
			if slices.ContainsFunc(p.files, func(file string) bool { return namesFile(file, me) }) {
				all = append(all, s.shown(p.path))
			}
			continue
		}
		for _, file := range p.files[:min(len(p.files), maxRelated)] {
			var known bool
			file = tidyFile(file)
			if err := s.tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM docs WHERE path = ?)`, file).Scan(&known); err != nil {
				return nil, err
			}
			if known {
				file = s.shown(file)
			} else {
				file = shown(file) // whatever the page says it is
			}
			all = append(all, file)
		}
	}
	return all[:min(len(all), maxRelated)], nil
}

// linkingPages returns the pages that name files, which are read once for each
// epoch.
func (s *session) linkingPages(ctx context.Context) ([]aboutFiles, error) {
	v := s.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known {
		return v.pages, nil
	}
	pages, err := s.readLinkingPages(ctx)
	if err == nil {
		v.pages, v.known = pages, true
	}
	return pages, err
}

func (s *session) readLinkingPages(ctx context.Context) (pages []aboutFiles, err error) {
	rows, err := s.tx.QueryContext(ctx, `SELECT id, path, files, link FROM docs WHERE files <> '' ORDER BY path LIMIT ?`, maxLinkingPages)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p aboutFiles
		var files string
		var id, sum int64
		if err := rows.Scan(&id, &p.path, &files, &sum); err != nil {
			return nil, err
		}
		if err := linkFields(id, p.path, files).check(sum, nil, "document", id); err != nil {
			return nil, err
		}
		p.files = strings.Split(files, "\n")
		pages = append(pages, p)
	}
	return pages, rows.Err()
}

func tidyFile(file string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(file, "/space/"), "./"), "/")
}

// namesFile reports whether an entry of relevant_files, a file, a directory or a
// glob, is about a file.
func namesFile(entry, file string) bool {
	entry = tidyFile(entry)
	if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(strings.TrimSuffix(entry, "**"), "/")); ok && (rest == "" || rest[0] == '/' && entry != "") {
		return true
	}
	ok, err := path.Match(entry, file)
	return ok && err == nil
}
