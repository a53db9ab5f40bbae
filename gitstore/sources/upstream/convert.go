package upstream

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"satchel/internal/fault"
)

// Command is a shell command that converts a document.
type Command struct {
	Shell  string
	Files  map[string][]byte // by name: the files in the directory in which the command runs
	Output string            // the file that the command writes
}

// Run runs a command in a sandbox without a network, and returns what the command wrote to its
// output file. The error is a fault.Unavailable if no sandbox can start on this machine, and a
// *Refusal if the command exceeds its time, its memory or the size of a file.
type Run func(ctx context.Context, c Command) (output []byte, exitCode int, err error)

// Convert returns the Markdown of a document. The extension of name says the format. run is
// required for formats that a program on the machine converts. The error is a *Refusal if the
// document cannot be converted. If a program is missing, the Reason of the Refusal names its
// Debian package.
func Convert(ctx context.Context, run Run, name string, content []byte) ([]byte, error) {
	if len(content) > maxDocument {
		return nil, refuse(TooLarge, "The document %s is larger than the %d MB that a document may have.", name, maxDocument>>20)
	}
	switch ext := formatOf(name); {
	case isNotebook(ext):
		return notebook(name, content)
	case isCaptions(ext):
		return captionsPage(name, content)
	default:
		c := converterOf(ext)
		if c.pkg == "" {
			return nil, refuse(Unreadable, "Satchel cannot read documents of the format %q.", ext)
		}
		return c.convert(ctx, run, name, content)
	}
}

// converter is a program that converts documents of a format.
type converter struct {
	pkg     string // the Debian package that contains the program
	program string
	options string
	files   map[string][]byte // the files that the program needs besides the document
	finish  func([]byte) []byte
}

// converterOf returns the converter for files with an extension. Its pkg is empty if no program
// converts such files.
func converterOf(ext string) converter {
	switch ext {
	case ".pdf":
		return converter{pkg: "poppler-utils", program: "pdftotext", options: "-q -enc UTF-8 -eol unix document out", finish: pdfPages}
	case ".docx", ".odt", ".rtf", ".epub", ".pptx":
		return converter{
			pkg: "pandoc", program: "pandoc",
			// With --sandbox, pandoc reads no other files. A table that Markdown cannot express
			// stays HTML.
			options: "--sandbox --from " + ext[1:] + " --to gfm --standalone --wrap=none --lua-filter clean.lua --output out document",
			files:   map[string][]byte{"clean.lua": []byte(cleanFilter)},
			finish:  func(b []byte) []byte { return b },
		}
	}
	return converter{}
}

// notFound is the exit code of a shell for a program that does not exist.
const notFound = 127

func (c converter) convert(ctx context.Context, run Run, name string, content []byte) ([]byte, error) {
	needsSandbox := func(err error) error {
		return &Refusal{NeedsSandbox, fault.Wrap(err, fault.Unavailable, "Documents such as %s are converted in a sandbox, and none can start on this server. satchel doctor says why.", name)}
	}
	if run == nil {
		return nil, needsSandbox(nil)
	}
	files := map[string][]byte{"document": content}
	for n, b := range c.files {
		files[n] = b
	}
	out, code, err := run(ctx, Command{
		Shell: fmt.Sprintf("command -v %s >/dev/null || exit %d\nexec %s %s", c.program, notFound, c.program, c.options), Files: files, Output: "out",
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case fault.CodeOf(err) == fault.Unavailable:
		return nil, needsSandbox(err)
	case err != nil:
		return nil, err
	case code == notFound:
		return nil, &Refusal{Reason("needs_" + c.pkg), fault.New(fault.Unavailable, "Documents such as %s need the program %s on the server. Install it (apt install %s), and try again.", name, c.program, c.pkg)}
	case code != 0:
		return nil, refuse(Unreadable, "The document %s cannot be read. It is damaged, protected with a password, or of another format than its name says.", name)
	}
	out = c.finish(bytes.ToValidUTF8(out, []byte("\ufffd")))
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, refuse(Unreadable, "The document %s has no text. A scanned document needs text recognition (OCR) first.", name)
	}
	return titled(name, out), nil
}

// cleanFilter is a filter of pandoc. It leaves out images, raw code and the attributes of the
// original format. Of the metadata, it keeps only the title, the author and the date.
const cleanFilter = `
local function content(el) return el.content end
local function nothing() return {} end
Image, RawInline, RawBlock = nothing, nothing, nothing
Span, Div, Figure = content, content, content
function Link(el)
  if #el.content == 0 then return {} end
  if el.target:sub(1, 1) == '#' then return el.content end
  el.attr = pandoc.Attr()
  return el
end
function Header(el) el.attr = pandoc.Attr() return el end
function CodeBlock(el)
  el.attr = pandoc.Attr('', el.classes:filter(function(c) return c ~= 'sourceCode' end))
  return el
end
function Meta(m) return {title = m.title, author = m.author, date = m.date} end
`

// pdfPages returns the text of pdftotext with a heading for each page, so that readers can cite the
// page. Empty pages are left out.
func pdfPages(text []byte) []byte {
	var b bytes.Buffer
	for i, p := range bytes.Split(text, []byte("\f")) {
		if len(bytes.TrimSpace(p)) == 0 {
			continue
		}
		fmt.Fprintf(&b, "## Page %d\n\n", i+1)
		blank := true
		for l := range strings.Lines(string(p)) {
			l = strings.TrimSpace(l)
			if l == "" && blank {
				continue
			}
			blank = l == ""
			b.WriteString(plainLine(l) + "\n")
		}
		if !blank {
			b.WriteString("\n")
		}
	}
	return b.Bytes()
}

// plainLine returns a line of plain text as Markdown that shows the same text. A line that
// begins with a bullet becomes an item of a list.
func plainLine(l string) string {
	for _, bullet := range []string{"• ", "▪ ", "◦ ", "‣ ", "● "} {
		if rest, ok := strings.CutPrefix(l, bullet); ok {
			return "- " + plainText(rest)
		}
	}
	switch {
	case l == "":
	case strings.Trim(l, "-") == "", strings.Trim(l, "=") == "", strings.ContainsRune("#>`~|", rune(l[0])):
		return `\` + plainText(l)
	}
	return plainText(l)
}

func plainText(l string) string {
	return strings.NewReplacer("<", `\<`, "`", "\\`", "*", `\*`, "[", `\[`).Replace(l)
}
