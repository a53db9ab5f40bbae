package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/present"
)

const nameRead = "read"

func (s *Registry) readTool() tool {
	return tool{
		Tool: Tool{
			Name: nameRead, Title: "Read or list files", Description: describeRead,
			InputSchema: schema(readInput), Scope: space.ScopeRead,
			ReadOnly: true, Idempotent: true,
		},
		run: s.read, example: `{"paths":["a.md"]}`,
		docs: "reads files, parts of files, directories and globs, with line numbers",
	}
}

const describeRead = `Read files when you know their paths, or list a directory or a glob. Several at once: knowledge/x.md, knowledge/x.md:120-180, knowledge/x.md#heading, knowledge/, knowledge/**/*.md. Shared documentation is under /library/. Returns numbered lines and the etag that {write} and {edit} take, or an image; a text that is cut says how to continue.`

const readInput = `{
  "type": "object",
  "properties": {
    "paths": {"type": "array", "items": {"type": "string"}},
    "max_tokens": {"type": "integer", "description": "Of the answer, default 10000, at most 20000"}
  },
  "required": ["paths"],
  "additionalProperties": false
}`

// readItem is the result for one of read's paths.
type readItem struct {
	asked string
	err   error
	// For a text file:
	file    ref
	entry   space.Entry
	excerpt excerpt
	note    string
	// For an image:
	image []byte
	mime  string
	// For everything else: the finished text, such as a note about a binary file, or a listing.
	text string
	list *listing
}

func (s *Registry) read(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, "paths", "max_tokens")
	paths := a.texts("paths", `["knowledge/notes.md"]`, s.o.Limits.Paths)
	budget, lowered := a.count("max_tokens", s.o.Limits.ReadTokens, s.o.Limits.MaxReadTokens)
	if err := a.err(); err != nil {
		return Result{}, err
	}
	v, err := s.view(ctx, c)
	if err != nil {
		return Result{}, err
	}
	items := make([]readItem, len(paths))
	images := s.o.Limits.ImageBytes
	for i, p := range paths {
		items[i], err = v.readOne(ctx, p, budget, &images)
		if err != nil {
			return Result{}, err
		}
	}
	r := s.renderRead(items, budget, lowered, c.Can(space.ScopeWrite))
	r.Meta["head"] = string(v.at)
	return r, nil
}

// readOne reads one path. The item contains an error that concerns only this path.
func (v view) readOne(ctx context.Context, asked string, budget int, images *int64) (readItem, error) {
	it := readItem{asked: asked}
	var err error
	all := v
	v, it.file, it.entry, err = v.resolve(ctx, asked)
	if err != nil && isGlob(asked) && fault.CodeOf(err) == fault.NotFound {
		it.list, err = all.listGlob(ctx, it.file)
		if err == nil {
			return it, nil
		}
	}
	if err == nil && it.entry.Dir {
		it.list, err = v.listDir(ctx, it.file, it.entry.Path)
		if err == nil {
			return it, nil
		}
	}
	if err == nil {
		err = v.readFile(ctx, &it, budget, images)
	}
	switch fault.CodeOf(err) {
	case "":
		return it, nil
	case fault.Invalid, fault.NotFound, fault.TooLarge, fault.Damaged:
		it.err = err
		return it, nil
	}
	return it, err
}

func (v view) readFile(ctx context.Context, it *readItem, budget int, images *int64) error {
	if it.entry.Size > v.s.o.Limits.FileBytes {
		return fault.New(fault.TooLarge, "%s has %s, too much to read at once: use grep, sed -n or head in bash.", it.file, bytesText(it.entry.Size))
	}
	release, err := v.hold(ctx, it.entry.Size)
	if err != nil {
		return err
	}
	defer release()
	b, err := v.content(ctx, it.entry)
	if err != nil {
		return err
	}
	if mime := imageType(b); mime != "" {
		if !validImage(mime, b) {
			// If a client cannot show an image, the whole conversation fails.
			it.text = fmt.Sprintf("%s is not a valid %s (%s); it is not shown.", it.file, imageNames[mime], bytesText(int64(len(b))))
			return nil
		}
		if int64(len(b)) > *images {
			it.text = fmt.Sprintf("%s image, %s: too large to show here (%s of images in one answer).", mime, bytesText(int64(len(b))), bytesText(v.s.o.Limits.ImageBytes))
			return nil
		}
		*images -= int64(len(b))
		it.image, it.mime = b, mime
		return nil
	}
	if isBinary(b) {
		it.text = fmt.Sprintf("a binary file (%s, %s), not shown as text.", http.DetectContentType(b), bytesText(int64(len(b))))
		return nil
	}
	text, repaired := validText(b)
	if repaired {
		it.note = "not valid UTF-8: shown with \ufffd in place of the invalid bytes"
	}
	lines := splitText(text)
	from, to := max(it.file.from, 1), it.file.to
	if it.file.heading != "" {
		all := v.sections(it.entry, b)
		if sec, ok := findSection(all, it.file.heading); ok {
			from, to = sec.From, sec.To
		} else {
			return noHeading(it.file, all)
		}
	}
	if to == 0 || to > len(lines) {
		to = len(lines)
	}
	if from > len(lines) && from > 1 {
		return fault.New(fault.Invalid, "%s has %s; there is no line %d.", it.file, plural(len(lines), "line", "lines"), from)
	}
	it.excerpt = newExcerpt(lines, from, to, budget)
	if foreign(it.file.String()) {
		for i, l := range it.excerpt.lines {
			it.excerpt.lines[i] = oneNumber.Replace(l)
		}
	}
	return nil
}

// maxNearHeadings limits the headings that a wrong heading is compared with.
const maxNearHeadings = 500

// noHeading returns the error for a missing heading, with the headings that exist. The file
// may have changed after the search that returned the heading.
func noHeading(f ref, all []parse.Section) error {
	if len(all) == 0 {
		return fault.New(fault.NotFound, "%s has no headings, so it has no %q. Read it without a heading.", f, clip(f.heading, 80))
	}
	var anchors []string
	for _, s := range all[:min(len(all), maxNearHeadings)] {
		anchors = append(anchors, clip(s.Anchor, 80))
	}
	mean := ""
	if near := nearest(parse.Anchor(f.heading), anchors); near != "" {
		mean = fmt.Sprintf(" Did you mean %s#%s?", f, near)
	}
	var slugs []string
	for _, s := range all[:min(len(all), 30)] {
		slugs = append(slugs, clip(s.Anchor, 80))
	}
	if len(all) > len(slugs) {
		slugs = append(slugs, "…")
	}
	return fault.New(fault.NotFound, "%s has no heading %q.%s Its headings: %s", f, clip(f.heading, 80), mean, strings.Join(slugs, ", "))
}

// renderRead divides the budget among the items and writes them. writer reports whether the caller
// can change files. If writer is false, no etag is above a text.
func (s *Registry) renderRead(items []readItem, budget int, lowered string, writer bool) Result {
	needs := make([]int, len(items))
	for i := range items {
		needs[i] = items[i].need()
	}
	shares := share(needs, budget)

	var out []Content
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, Content{Text: strings.TrimSuffix(text.String(), "\n")})
			text.Reset()
		}
	}
	failed := 0
	files := make([]map[string]any, 0, len(items))
	for i := range items {
		it := &items[i]
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		meta := map[string]any{"path": it.file.String()}
		switch {
		case it.err != nil:
			failed++
			fmt.Fprintf(&text, "== %s\n%s\n", clip(it.asked, 200), fault.PublicOf(it.err))
			meta["path"], meta["error"] = clip(it.asked, 200), string(fault.CodeOf(it.err))
		case it.list != nil:
			it.list.render(&text, shares[i], s)
			meta["entries"], meta["truncated"] = it.list.total, it.list.cut
		case it.image != nil:
			fmt.Fprintf(&text, "== %s (%s, %s, etag %s)\n", it.file, it.mime, bytesText(int64(len(it.image))), it.entry.Blob)
			flush()
			out = append(out, Content{Image: it.image, MIME: it.mime})
			meta["etag"], meta["mime"] = string(it.entry.Blob), it.mime
		case it.text != "":
			fmt.Fprintf(&text, "== %s (etag %s)\n%s\n", it.file, it.entry.Blob, it.text)
			meta["etag"] = string(it.entry.Blob)
		default:
			it.renderText(&text, shares[i], s, meta, textHead{alone: len(items) == 1, etag: writer && !it.file.library})
		}
		files = append(files, meta)
	}
	if lowered != "" {
		fmt.Fprintf(&text, "\n[%s]\n", lowered)
	}
	flush()
	return Result{Content: out, Meta: map[string]any{"files": files}, IsError: failed == len(items)}
}

func (it *readItem) need() int {
	switch {
	case it.list != nil:
		return it.list.tokens()
	case it.excerpt.total > 0:
		return it.excerpt.tokens
	}
	return 0
}

// textHead selects what is written above the text of a file.
type textHead struct {
	alone bool // no other path was asked for
	etag  bool
}

// write writes the range of lines if it is not the whole text, and the etag if h.etag is set. It
// also writes the path, unless the caller asked for this file only, by the same path.
func (h textHead) write(b *strings.Builder, it *readItem, last int) {
	x := it.excerpt
	var about []string
	if x.total > 0 && (x.from > 1 || last < x.total) {
		about = append(about, fmt.Sprintf("lines %d-%d of %s", x.from, last, thousands(int64(x.total))))
	}
	if h.etag {
		about = append(about, "etag "+string(it.entry.Blob))
	}
	name, _, _ := strings.Cut(it.asked, "#")
	if it.file.from > 0 {
		name, _, _ = strings.Cut(name, ":")
	}
	switch said := strings.Join(about, ", "); {
	case !h.alone || it.file.String() != name:
		b.WriteString("== " + it.file.String())
		if said != "" {
			b.WriteString(" (" + said + ")")
		}
		b.WriteByte('\n')
	case said != "":
		b.WriteString("[" + said + "]\n")
	}
}

func (it *readItem) renderText(b *strings.Builder, budget int, s *Registry, meta map[string]any, head textHead) {
	x := it.excerpt
	last := x.write(nil, budget)
	head.write(b, it, last)
	if inside := it.file.inside(); it.entry.Path != "" && string(it.entry.Path) != inside {
		name := it.file.String()
		fmt.Fprintf(b, "[a symbolic link to %s]\n", strings.TrimSuffix(name, inside)+string(it.entry.Path))
	}
	if it.note != "" {
		fmt.Fprintf(b, "[%s]\n", it.note)
	}
	if suspicious(it.file.String(), strings.Join(x.lines[:last-x.from+1], "\n")) {
		fmt.Fprintf(b, "[%s]\n", commandsWarning)
	}
	if x.total == 0 {
		b.WriteString("[empty]\n")
	}
	x.write(b, budget)
	meta["etag"], meta["lines"], meta["from"], meta["to"] = string(it.entry.Blob), x.total, x.from, last
	meta["truncated"] = last < x.to
	if last < x.to {
		next := fmt.Sprintf("%s:%d-", it.file, last+1)
		if x.to < x.total {
			next += fmt.Sprint(x.to)
		}
		meta["next"] = next
		fmt.Fprintf(b, "[cut after line %d to keep to the token budget; read %q with %s to continue]\n", last, next, s.o.Prefix+nameRead)
	}
}

// excerpt is a range of lines of a text. lines ends with the line that exceeds a budget, or at
// the end of the range.
type excerpt struct {
	lines    []string
	from, to int // the requested lines of the text, counted from 1; to is included
	total    int // lines of the text
	tokens   int // the estimated tokens of lines
}

// maxLineChars limits each line of an excerpt of several lines, because a minified script or a
// data URL can be very long. Only the budget limits a line that is read alone.
const maxLineChars = 2000

func newExcerpt(lines []string, from, to, budget int) excerpt {
	x := excerpt{from: from, to: to, total: len(lines)}
	for n := from; n <= to; n++ {
		l := lines[n-1]
		if from != to {
			if cut := clip(l, maxLineChars); len(cut) < len(l) {
				l = fmt.Sprintf("%s [line cut, %s in all]", cut, bytesText(int64(len(l))))
			}
		} else if head, cut := clipTokens(l, budget-lineTokens(from, "")-20); cut {
			l = fmt.Sprintf("%s… [line cut, %s in all]", strings.TrimSuffix(head, "\n"), bytesText(int64(len(l))))
		}
		// Clone the lines, so that they do not keep the whole text in memory.
		x.lines = append(x.lines, strings.Clone(l))
		x.tokens += lineTokens(n, l)
		if x.tokens > budget {
			break
		}
	}
	return x
}

// lineTokens returns the estimated tokens of a numbered line.
func lineTokens(n int, l string) int {
	digits := 1
	for ; n >= 10; n /= 10 {
		digits++
	}
	return (digits+1)/2 + 2 + present.EstimateTokens(l) // with the tab and the line break
}

// write writes numbered lines up to the budget, at least one, and returns the number of the
// last line. With a nil builder it only counts.
func (x excerpt) write(b *strings.Builder, budget int) (last int) {
	last = x.from - 1
	spent := 0
	for i, l := range x.lines {
		spent += lineTokens(x.from+i, l)
		if spent > budget && i > 0 {
			break
		}
		last = x.from + i
		if b != nil {
			fmt.Fprintf(b, "%d\t%s\n", last, l)
		}
	}
	return last
}

// share divides a budget. An item that needs less than an equal share gets what it needs.
// The others share the rest.
func share(needs []int, budget int) []int {
	order := make([]int, len(needs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return needs[a] - needs[b] })
	out := make([]int, len(needs))
	for k, i := range order {
		out[i] = min(needs[i], budget/(len(order)-k))
		budget -= out[i]
	}
	return out
}

// listing is a directory, or the matches of a glob.
type listing struct {
	title string
	in    string   // the directory of the names, empty for the paths of a glob
	names []string // at most Limits.ListEntries
	total int
	cut   bool // set by render
	hint  string
}

func (l *listing) tokens() int {
	n := present.EstimateTokens(l.title) + 4
	for _, name := range l.names {
		n += present.EstimateTokens(name) + 1
	}
	return n
}

func (l *listing) render(b *strings.Builder, budget int, s *Registry) {
	fmt.Fprintf(b, "== %s\n", l.title)
	spent, shown := present.EstimateTokens(l.title)+4, 0
	for _, name := range l.names {
		if spent += present.EstimateTokens(name) + 1; spent > budget && shown > 0 {
			break
		}
		b.WriteString(name)
		b.WriteByte('\n')
		shown++
	}
	if slices.ContainsFunc(l.names[:shown], func(name string) bool { return suspicious(l.in+name, "") }) {
		fmt.Fprintf(b, "[%s]\n", namesWarning)
	}
	if l.cut = shown < l.total; l.cut {
		fmt.Fprintf(b, "[%s more; %s]\n", thousands(int64(l.total-shown)), l.hint)
	}
	if l.total == 0 && l.hint != "" {
		fmt.Fprintf(b, "[%s]\n", l.hint)
	}
}

func (v view) listDir(ctx context.Context, r ref, dir space.Path) (*listing, error) {
	r.dir = true
	if r.library && v.source == nil {
		return v.listShared(ctx, r)
	}
	entries, err := v.children(ctx, dir)
	if err != nil {
		return nil, err
	}
	in := strings.TrimPrefix(r.String(), "/space/")
	l := &listing{in: in, total: len(entries), hint: "list a directory in it, or narrow it with a glob such as " + in + "a*"}
	dirs := 0
	var names []string
	for _, e := range entries {
		name := strings.TrimPrefix(strings.TrimPrefix(string(e.Path), string(dir)), "/")
		switch {
		case e.Dir:
			dirs++
			name += "/"
		case e.Mode == space.Symlink:
			name += " (symbolic link)"
		case e.Size >= 0:
			name += " (" + bytesText(e.Size) + ")"
		}
		names = append(names, name)
	}
	l.title = fmt.Sprintf("%s (directory: %s, %s)", r, plural(dirs, "directory", "directories"), plural(len(entries)-dirs, "file", "files"))
	if len(entries) == 0 {
		l.title = r.String() + " (directory, empty)"
		l.hint = ""
	}
	l.names = names[:min(len(names), v.s.o.Limits.ListEntries)]
	return l, nil
}

func (v view) listGlob(ctx context.Context, r ref) (*listing, error) {
	g, err := parseGlob(r.path)
	if err != nil {
		return nil, err
	}
	l := &listing{hint: "narrow the pattern"}
	add := func(p string) {
		if l.total++; len(l.names) < v.s.o.Limits.ListEntries {
			l.names = append(l.names, p)
		}
	}
	if r.library {
		if all, err := v.sources(ctx); err != nil {
			return nil, err
		} else if len(all) == 0 {
			return &listing{title: r.String() + " (matches nothing)", hint: "the library is empty: nobody has shared anything with this user"}, nil
		}
		if err := v.globShared(ctx, g, add); err != nil {
			return nil, err
		}
	} else {
		files, err := v.files(ctx, g.root())
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if g.match(f.Path) {
				add(string(f.Path))
			}
		}
	}
	l.title = fmt.Sprintf("%s (matches %s)", r, plural(l.total, "file", "files"))
	if l.total == 0 {
		l.hint = "** matches any number of directories, * and ? within a name; list a directory to see what there is"
	}
	return l, nil
}
