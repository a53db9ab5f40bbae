package exports

import (
	"archive/zip"
	"net/url"
	"path"
	"regexp"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
)

func isMarkdown(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".markdown"
}

func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

func isBasicMemory(page []byte) bool {
	d, err := frontmatter.Parse(page)
	return err == nil && d.String("permalink") != ""
}

// hidden reports whether the name of a file or of a folder around it begins with a dot, or
// whether macOS has added the file to an archive.
func hidden(name string) bool {
	return space.HiddenPath(name) || strings.HasPrefix(name, "__MACOSX/")
}

// notes adds the Markdown pages of a folder, as they are.
func (b *builder) notes(a *archive) error {
	for _, f := range a.files {
		if err := b.note(a, f, f.Name, func(page []byte) []byte { return page }); err != nil {
			return err
		}
	}
	return nil
}

// note adds one page at a path inside the folder of the format.
func (b *builder) note(a *archive, f *zip.File, to string, change func([]byte) []byte) error {
	switch {
	case hidden(f.Name):
		return nil // settings of the app
	case !isMarkdown(f.Name):
		b.skip(f.Name, "Only Markdown pages are imported.")
		return nil
	case f.UncompressedSize64 > uint64(b.limits.Page):
		b.skip(f.Name, "It is larger than the "+bytesize.Text(int64(b.limits.Page))+" that an imported page may have.")
		return nil
	}
	page, err := a.read(f, b.limits.Page)
	if err != nil {
		return err
	}
	return b.page(f.Name, "knowledge/"+b.Format+"/"+to, change(page))
}

// notionID is the ID at the end of a name in Notion's export.
var notionID = regexp.MustCompile(`^(.*?) ?([0-9a-f]{32})$`)

// notionName returns a part of a path with its ID shortened to 8 digits.
func notionName(part string) string {
	ext := path.Ext(part)
	if strings.Contains(ext, " ") {
		ext = ""
	}
	m := notionID.FindStringSubmatch(strings.TrimSuffix(part, ext))
	if m == nil {
		return part
	}
	return strings.TrimSpace(strings.TrimSpace(m[1])+" "+m[2][:8]) + ext
}

// notionFolder matches the folder around all pages. Its name differs in each export.
var notionFolder = regexp.MustCompile(`^([0-9a-f-]{36}_)?Export(Block)?-[0-9a-f-]{36}(-Part-\d+)?/`)

func notionPath(p string) string {
	for notionFolder.MatchString(p) {
		p = notionFolder.ReplaceAllString(p, "")
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = notionName(part)
	}
	return strings.Join(parts, "/")
}

// markdownLink matches the target of a link, which can contain pairs of parentheses.
var markdownLink = regexp.MustCompile(`\]\((?:[^()\s]|\([^()\s]*\))+\)`)

// notion adds the pages of Notion's export, and adapts the links between them.
func (b *builder) notion(a *archive) error {
	for _, f := range a.files {
		err := b.note(a, f, notionPath(f.Name), func(page []byte) []byte {
			return markdownLink.ReplaceAllFunc(page, notionLink)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// notionLink returns a link with the path that its target gets in the import.
func notionLink(link []byte) []byte {
	u, err := url.Parse(string(link[2 : len(link)-1]))
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
		return link
	}
	to := notionPath(u.Path)
	if to == u.Path {
		return link
	}
	u.Path, u.RawPath = to, ""
	return []byte("](" + u.String() + ")")
}
