package exports

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/bytesize"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
)

// The formats.
const (
	ChatGPT      = "chatgpt"
	Claude       = "claude"
	Memory       = "memory" // a list of sentences, one on each line
	Mem0         = "mem0"
	BasicMemory  = "basic-memory"
	Obsidian     = "obsidian"
	Notion       = "notion"
	Instructions = "instructions" // CLAUDE.md, AGENTS.md or .cursorrules
)

// Formats returns all formats.
func Formats() []string {
	return []string{ChatGPT, Claude, Memory, Mem0, BasicMemory, Obsidian, Notion, Instructions}
}

// folders are where Read puts pages and facts.
var folders = []string{
	"knowledge/conversations/" + ChatGPT + "/", "knowledge/conversations/" + Claude + "/", "knowledge/projects/" + Claude + "/", "knowledge/" + Claude + "/",
	"knowledge/" + BasicMemory + "/", "knowledge/" + Obsidian + "/", "knowledge/" + Notion + "/", "knowledge/" + Instructions + "/",
	facts.Dir + "/" + factType + "/",
}

// Imported reports whether a path of a space is in a folder into which imports write.
func Imported(path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(path, f) })
}

// Limits bound what is read. Zero means the default.
type Limits struct {
	Archive  int64 // bytes of the archive; default 512 MiB
	Unpacked int64 // bytes of all files in the archive; default 2 GiB
	Files    int   // number of files in the archive; default 50,000
	Page     int   // bytes of one page; default 1 MiB
	Pages    int64 // bytes of all pages; default 96 MiB
	Facts    int   // number of facts; default 2,000
}

// WithDefaults returns the limits with the defaults for zeros.
func (l Limits) WithDefaults() Limits {
	l.Archive = cmp.Or(l.Archive, 512<<20)
	l.Unpacked = cmp.Or(l.Unpacked, 2<<30)
	l.Files = cmp.Or(l.Files, 50_000)
	l.Page = cmp.Or(l.Page, 1<<20)
	l.Pages = cmp.Or(l.Pages, 96<<20)
	l.Facts = cmp.Or(l.Facts, 2000)
	return l
}

// Page is a page to create.
type Page struct {
	Path    string
	Name    string // the name of the page in the source
	Content []byte
}

// Skipped is a part of the source that does not become a page or a fact.
type Skipped struct{ Name, Why string }

// Bundle is the content of a source.
type Bundle struct {
	Format  string
	Pages   []Page
	Facts   []facts.Statement
	Skipped []Skipped
	Left    int // number of skipped parts that Skipped does not list
}

// Read reads a file. An empty format means that Read detects the format. name is the name
// of the file, and may begin with the name of its folder. The same bytes with the same name
// always give the same bundle.
func Read(name, format string, r io.ReaderAt, size int64, l Limits) (Bundle, error) {
	l = l.WithDefaults()
	if format != "" && !slices.Contains(Formats(), format) {
		return Bundle{}, fault.New(fault.Invalid, "%q is not a format. Use one of: %s.", format, strings.Join(Formats(), ", "))
	}
	if size > l.Archive {
		return Bundle{}, fault.New(fault.TooLarge, "The file is larger than the %s that an import may have.", bytesize.Text(l.Archive))
	}
	b := &builder{Bundle: Bundle{Format: format}, limits: l, at: map[string]bool{}, keys: map[string]bool{}}
	begin := make([]byte, 4)
	n, err := r.ReadAt(begin, 0)
	if err != nil && err != io.EOF {
		return Bundle{}, err
	}
	if begin = begin[:n]; bytes.HasPrefix(begin, []byte("PK")) {
		err = b.zip(r, size)
	} else {
		err = b.file(name, io.NewSectionReader(r, 0, size), size)
	}
	if err != nil {
		return Bundle{}, err
	}
	if len(b.Pages)+len(b.Facts)+len(b.Skipped) == 0 {
		return Bundle{}, fault.New(fault.Invalid, "The file has nothing to import.")
	}
	return b.Bundle, nil
}

// builder collects a bundle.
type builder struct {
	Bundle
	limits Limits
	bytes  int64
	items  int
	at     map[string]bool // paths of pages
	keys   map[string]bool // keys of facts
}

// maxSkipped limits Bundle.Skipped, because an export can consist of many small wrong parts.
const maxSkipped = 1000

func (b *builder) skip(name, why string) {
	if len(b.Skipped) == maxSkipped {
		b.Left++
		return
	}
	name = strings.ToValidUTF8(name, "\uFFFD")
	if r := []rune(name); len(r) > 200 {
		name = string(r[:200]) + "…"
	}
	b.Skipped = append(b.Skipped, Skipped{name, why})
}

// page adds a page, or skips it and says why. name is its name in the source.
func (b *builder) page(name, p string, content []byte) error {
	if _, err := space.ParsePath(p); err != nil {
		b.skip(name, "Its name cannot be a path. "+fault.PublicOf(err))
		return nil
	}
	switch folded := strings.ToLower(p); {
	case b.at[folded]:
		b.skip(name, "The source has another page of the same name or ID.")
		return nil
	case len(content) > b.limits.Page:
		b.skip(name, "It is larger than the "+bytesize.Text(int64(b.limits.Page))+" that an imported page may have.")
		return nil
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		b.skip(name, "It is not text.")
		return nil
	default:
		b.at[folded] = true
	}
	if b.bytes += int64(len(content)); b.bytes > b.limits.Pages {
		return fault.New(fault.TooLarge, "The pages have more than the %s that one import may have. Split the source.", bytesize.Text(b.limits.Pages))
	}
	b.Pages = append(b.Pages, Page{p, name, content})
	return nil
}

// factType is the type of imported facts.
const factType = "imported"

// fact adds a fact. Its key derives from id, or from value if id is empty.
func (b *builder) fact(id, value string) error {
	value = clean(value)
	if value == "" {
		return nil
	}
	if len(value) > facts.MaxValue {
		b.skip(firstWords(value), "The memory is too long for a fact.")
		return nil
	}
	key := slug(firstWords(value)) + "-" + short(value, 8)
	if id != "" {
		key = b.Format + "-" + short(id, 12)
	}
	if b.keys[key] {
		return nil // the same fact again
	}
	if b.keys[key] = true; len(b.Facts) == b.limits.Facts {
		return fault.New(fault.TooLarge, "The source has more than the %d facts that one import may have. Split the source.", b.limits.Facts)
	}
	b.Facts = append(b.Facts, facts.Statement{Type: factType, Key: key, Value: value})
	return nil
}

// short returns the first hexadecimal digits of the hash of an ID.
func short(id string, digits int) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:digits]
}

func firstWords(text string) string {
	words := strings.Fields(text)
	out := strings.Join(words[:min(6, len(words))], " ")
	if r := []rune(out); len(r) > 50 {
		out = string(r[:50])
	}
	return out
}

// Slug joins the words of a text for a file name. It returns "" if there are none.
func Slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
	return strings.Join(words, "-")
}

func slug(text string) string { return cmp.Or(Slug(text), "page") }

// clean returns a text without control characters, except tabs and line ends, and without
// blanks around it.
func clean(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// title returns the beginning of a text as one line. If the text is empty, title returns the
// value of otherwise.
func title(text, otherwise string) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return cmp.Or(text, otherwise)
}

const digestKey = "imported"

// generated returns a page with front matter. The front matter has a digest of the page,
// which Untouched checks.
func generated(body string, fields ...facts.Field) []byte {
	digest := short(string(facts.New(fields...))+body, 16)
	return append(facts.New(append(fields, facts.Field{Key: digestKey, Value: digest})...), body...)
}

// Untouched reports whether a page is as an import has written it, so that a newer import
// can replace it.
func Untouched(page []byte) bool {
	d, err := frontmatter.Parse(page)
	digest, ok := d.Fields[digestKey].(string)
	if err != nil || !ok {
		return false
	}
	head := string(page[:len(page)-len(d.Body)])
	start := strings.LastIndex(head, digestKey+": ")
	if start < 0 {
		return false
	}
	return short(head[:start]+"---\n"+string(d.Body), 16) == digest
}

// base returns the last part of a name in an archive.
func base(name string) string { return path.Base(strings.ReplaceAll(name, `\`, "/")) }
