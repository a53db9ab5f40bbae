package cli

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/exports"
	"satchel/internal/fault"
	"satchel/internal/service"
)

func (c *call) memoryImportCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "import FILE|DIR", Args: cobra.ExactArgs(1), Short: "import conversations, memories and notes from other programs", Long: `
The command reads the export archives of ChatGPT and Claude, a text with one memory on each line, the
JSON of mem0, folders of basic-memory and Obsidian, the Markdown export of Notion, and files such as
CLAUDE.md and .cursorrules. Try --dry-run first. Pages go under knowledge/, and facts under memory/imported/.
A second import adds only what is new, and keeps what you have changed.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		format := fs.String("format", "", "the `FORMAT`: "+strings.Join(exports.Formats(), ", ")+" (default: detected from the content)")
		dryRun := fs.Bool("dry-run", false, "report what the import would create, and change nothing")
		return func(ctx context.Context, args []string) error {
			var links linksLeftOut
			name, stream, err := exported(args[0], &links)
			if err != nil {
				return err
			}
			defer stream.Close()
			var done service.ImportedMemory
			err = c.admin(ctx, func(s admin.Service) error {
				done, err = s.ImportMemory(ctx, service.ImportMemoryInput{Space: spaceNamed(*user), Name: name, Format: *format, DryRun: *dryRun, Stream: stream})
				return err
			})
			if err != nil {
				return err
			}
			done.Skipped = append(links.notes(), done.Skipped...)
			return c.answer(done, func() { c.importedMemory(done) })
		}
	})
}

// importedMemory prints what an import did, or would do.
func (c *call) importedMemory(m service.ImportedMemory) {
	parts := []struct {
		what, title string
		n           service.ImportCounts
	}{{"pages", "Pages", m.Pages}, {"facts", "Facts", m.Facts}}
	for _, part := range parts {
		for _, i := range part.n.First {
			c.printf("%s: %s\n", printable(i.Path), oneLine(strings.ReplaceAll(i.Name, "\n", " ")))
		}
		if more := part.n.Added + part.n.Replaced - len(part.n.First); more > 0 {
			c.printf("and %d more %s\n", more, part.what)
		}
	}
	for _, s := range m.Skipped {
		c.printf("Skipped %s: %s\n", printable(s.Path), oneLine(s.Why))
	}
	if m.Left > 0 {
		c.printf("and %d more skipped\n", m.Left)
	}
	for _, w := range m.Warning {
		c.printf("Warning: %s: %s\n", printable(w.Path), oneLine(w.Why))
	}
	for _, part := range parts {
		if n := part.n; n.Added+n.Replaced+n.Unchanged > 0 {
			c.printf("%s (%s): %d added, %d replaced, %d unchanged\n", part.title, m.Format, n.Added, n.Replaced, n.Unchanged)
		}
	}
	switch {
	case m.DryRun:
		c.printf("This was a dry run: nothing has changed.\n")
	case m.Commit == "":
		c.printf("Nothing new: nothing has changed.\n")
	default:
		c.printf("The space is now at %s.\n", m.Commit.Short())
	}
}

// exported opens the file arg. If arg is a directory, stream is a zip archive of it. name includes
// the parent folder, which distinguishes the CLAUDE.md files of two projects. links counts the
// symbolic links that the archive leaves out, and is complete at the end of the stream.
func exported(arg string, links *linksLeftOut) (name string, stream io.ReadCloser, err error) {
	info, err := os.Stat(arg)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, fault.New(fault.NotFound, "There is no file or directory %q.", arg)
	}
	if err != nil {
		return "", nil, fault.Wrap(err, fault.Unavailable, "%q cannot be read: %s.", arg, cause(err))
	}
	whole, err := filepath.Abs(arg)
	if err != nil {
		return "", nil, err
	}
	name = filepath.Base(filepath.Dir(whole)) + "/" + filepath.Base(whole)
	if info.IsDir() {
		r, w := io.Pipe()
		go func() { w.CloseWithError(zipOf(arg, w, links)) }()
		return name, r, nil
	}
	f, err := os.Open(arg)
	if err != nil {
		return "", nil, fault.Wrap(err, fault.Unavailable, "%q cannot be read: %s.", arg, cause(err))
	}
	return name, f, nil
}

// linksLeftOut counts the symbolic links in a directory, which an import does not follow.
type linksLeftOut struct {
	first []string // three at most
	all   int
}

func (l *linksLeftOut) add(p string) {
	if l.all++; l.all <= 3 {
		l.first = append(l.first, p)
	}
}

func (l *linksLeftOut) notes() (out []service.ImportNote) {
	why := "It is a symbolic link, which an import does not follow."
	if l.all > 1 {
		why = fmt.Sprintf("It is one of %d symbolic links, which an import does not follow.", l.all)
	}
	for _, p := range l.first {
		out = append(out, service.ImportNote{Path: p, Why: why})
	}
	return out
}

// zipOf writes a zip archive of the regular files in a directory, without .git and node_modules.
// Files that no format reads are empty in the archive, so that the server can list them as skipped.
func zipOf(dir string, w io.Writer, links *linksLeftOut) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	z := zip.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fault.Wrap(err, fault.Unavailable, "%q cannot be read: %s.", filepath.Join(dir, p), cause(err))
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type()&fs.ModeSymlink != 0:
			links.add(p)
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		to, err := z.Create(p)
		if err != nil {
			return err
		}
		switch strings.ToLower(filepath.Ext(p)) {
		case ".md", ".markdown", ".json", ".txt", ".zip", ".cursorrules", ".windsurfrules":
		default:
			return nil
		}
		f, err := root.Open(filepath.FromSlash(p))
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "%q cannot be read: %s.", filepath.Join(dir, p), cause(err))
		}
		defer f.Close()
		_, err = io.Copy(to, f)
		return err
	})
	if err != nil {
		return err
	}
	return z.Close()
}
