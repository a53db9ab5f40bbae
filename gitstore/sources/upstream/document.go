package upstream

import (
	"bytes"
	"context"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"satchel/gitstore/sources/htmlmark"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
)

// maxDocument limits the bytes of a document that is converted. The Markdown that it becomes is
// limited by Env.MaxFileBytes.
const maxDocument = 64 << 20

// Refusal is the error of a file that cannot become a page.
type Refusal struct {
	Reason Reason
	Err    error // its public message says what to do
}

func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(reason Reason, format string, args ...any) error {
	return &Refusal{reason, fault.New(fault.Invalid, format, args...)}
}

// page is what a source keeps of an original file.
type page struct {
	path, title string
	content     []byte
}

// pageOf converts a file of a directory or an upload. Prose in another encoding becomes
// UTF-8. Other text must be UTF-8, and stays as it is. HTML and documents become Markdown, and .md
// is added to their names. The error is a *Refusal if the file must be left out.
func pageOf(ctx context.Context, env *Env, name string, content []byte) (page, error) {
	p := page{path: name, content: content}
	switch ext := formatOf(name); {
	case isHTML(ext):
		var err error
		if p.content, p.title, err = htmlPage(name, content); err != nil {
			return p, refuse(Unreadable, "The page %s has no text that can be read.", name)
		}
		p.path += ".md"
	case isDocument(ext):
		convert := env.Convert
		if convert == nil {
			convert = func(ctx context.Context, name string, content []byte) ([]byte, error) {
				return Convert(ctx, nil, name, content)
			}
		}
		var err error
		if p.content, err = convert(ctx, name, content); err != nil {
			return p, err
		}
		p.path += ".md"
	case bytes.IndexByte(content, 0) >= 0 && !utf16(content):
		return p, refuse(Unreadable, "The file %s is neither text nor a document that Satchel reads.", name)
	case isProse(ext):
		p.content = utf8Text(content)
	case !utf8.Valid(content):
		return p, refuse(Unreadable, "The file %s is neither text nor a document that Satchel reads.", name)
	}
	if int64(len(p.content)) > env.MaxFileBytes {
		return p, refuse(TooLarge, "The text of %s is larger than the %s that a file may have.", name, bytesize.Text(env.MaxFileBytes))
	}
	if p.title == "" && strings.HasSuffix(p.path, ".md") {
		p.title = TitleOf(p.content)
	}
	return p, nil
}

// limitOf returns the maximum size, in bytes, of the file called name.
func (env *Env) limitOf(name string) int64 {
	if isDocument(formatOf(name)) {
		return maxDocument
	}
	return env.MaxFileBytes
}

// formatOf returns the extension of a name in lower case.
func formatOf(name string) string { return strings.ToLower(path.Ext(name)) }

func isHTML(ext string) bool { return ext == ".html" || ext == ".htm" || ext == ".xhtml" }

// isDocument reports whether Convert reads files with an extension.
func isDocument(ext string) bool {
	return isNotebook(ext) || isCaptions(ext) || converterOf(ext).pkg != ""
}

// isProse reports whether files with an extension may be text in another encoding than UTF-8.
func isProse(ext string) bool {
	switch ext {
	case ".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org":
		return true
	}
	return false
}

func utf16(content []byte) bool {
	return bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff"))
}

// utf8Text returns a text in UTF-8, without a byte order mark.
func utf8Text(content []byte) []byte {
	if !utf8.Valid(content) || utf16(content) {
		e, _, _ := charset.DetermineEncoding(content, "text/plain")
		if text, err := e.NewDecoder().Bytes(content); err == nil {
			content = text
		}
	}
	return bytes.TrimPrefix(bytes.ToValidUTF8(content, []byte("\ufffd")), []byte("\ufeff"))
}

// localHost stands for the directory or the upload in the addresses of its HTML pages. Names under
// .invalid never exist.
const localHost = "local.invalid"

// htmlPage returns the content of an HTML file. Links to other files lead to their pages.
func htmlPage(name string, content []byte) (markdown []byte, title string, err error) {
	at := &url.URL{Scheme: "https", Host: localHost, Path: "/" + name}
	p, err := htmlmark.Convert(content, "", at, func(u *url.URL) string {
		if u.Host != localHost {
			return u.String()
		}
		if isImage(formatOf(u.Path)) {
			return "" // the source has no images
		}
		to := relative(space.Path(name), space.Path(strings.TrimPrefix(path.Clean(u.Path), "/")))
		if ext := formatOf(u.Path); isHTML(ext) || isDocument(ext) {
			to += ".md"
		}
		if u.Fragment != "" {
			to += "#" + u.EscapedFragment()
		}
		return to
	})
	return p.Markdown, p.Title, err
}

func isImage(ext string) bool {
	switch ext {
	case ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".bmp", ".ico":
		return true
	}
	return false
}

// TitleOf returns the title in the front matter of a Markdown page, or else its first heading,
// or else "".
func TitleOf(markdown []byte) string {
	d, _ := frontmatter.Parse(markdown) // a page with broken front matter still has its text
	if t := d.String("title"); t != "" {
		return t
	}
	return firstHeading(d.Body)
}

// titled adds the name of a file as the first heading, unless the text has a title.
func titled(name string, markdown []byte) []byte {
	markdown = append(bytes.TrimSpace(markdown), '\n')
	if TitleOf(markdown) != "" {
		return markdown
	}
	d, _ := frontmatter.Parse(markdown)
	var b bytes.Buffer
	b.Write(markdown[:len(markdown)-len(d.Body)])
	b.WriteString("# " + oneLine(strings.TrimSuffix(path.Base(name), path.Ext(name))) + "\n\n")
	b.Write(bytes.TrimLeft(d.Body, "\n"))
	return b.Bytes()
}

// oneLine returns a text on one line, with single spaces between the words.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// givePage converts the file f.Path, and gives the page to the sink. The error is a *Refusal if the
// file must be left out.
func givePage(ctx context.Context, env *Env, f File, content []byte, sink Sink) error {
	if _, err := space.ParsePath(string(f.Path)); err != nil {
		return &Refusal{BadName, err}
	}
	p, err := pageOf(ctx, env, string(f.Path), content)
	if err != nil {
		return err
	}
	if f.Path, err = space.ParsePath(p.path); err != nil {
		return &Refusal{BadName, err}
	}
	f.Title = p.title
	if err = sink.Put(ctx, f, p.content); fault.CodeOf(err) == fault.Conflict {
		return &Refusal{Duplicate, err}
	}
	return err
}
