package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (c *call) sourceUpload() *cobra.Command {
	return c.command(&cobra.Command{Use: "upload ID FILE…", Args: cobra.MinimumNArgs(2), Short: "add files to a source, and create the source if it does not exist", Long: `
The server converts the files to pages: Markdown, text, HTML, PDF, .docx, .odt, .rtf, .pptx, .epub,
.ipynb, .vtt, .srt, or a .zip archive of them. A file with the name of an earlier one replaces it.
With --remove, each FILE is the name of a file in the source, and the command removes that file.`}, func(fs *pflag.FlagSet) runner {
		text := space.SourceText{}
		fs.StringVar(&text.Title, "title", "", "the `NAME` of a new source that people see")
		fs.StringVar(&text.Description, "description", "", "a `SENTENCE` for a new source that says when an AI should look there")
		readers := fs.StringSlice("for", nil, "the `NAMES` of the readers of a new source, separated by commas (default: everybody)")
		under := fs.String("under", "", "the `DIRECTORY` of the source for the files (default: its root)")
		remove := fs.Bool("remove", false, "remove the files from the source")
		return func(ctx context.Context, args []string) error {
			id, names := args[0], args[1:]
			if *remove {
				x, err := longTask(ctx, c, (*service.Service).RemoveFromSource, service.RemoveFromSourceInput{ID: id, Names: names})
				if err != nil {
					return err
				}
				return c.answer(x, func() { c.printUpload(x) })
			}
			create := &service.SyncedSourceInput{Source: space.Source{SourceText: text, Everybody: !c.flags.Changed("for")}, Readers: *readers}
			line := progressLine{w: c.Stderr, shown: c.Watched}
			defer line.clear()
			ctx = service.WithProgress(ctx, line.show)
			var x service.UploadedToSource
			all := []space.UploadedFile{}
			err := c.admin(ctx, func(s admin.Service) error {
				for _, name := range names {
					var err error
					x, err = upload(ctx, s, id, name, *under, create)
					if err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					all = append(all, x.Files...)
				}
				return nil
			})
			line.clear()
			if len(all) == 0 {
				return err
			}
			x.Files = all
			return errors.Join(c.answer(x, func() { c.printUpload(x) }), err)
		}
	})
}

func upload(ctx context.Context, s admin.Service, id, name, under string, create *service.SyncedSourceInput) (service.UploadedToSource, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return service.UploadedToSource{}, fault.New(fault.NotFound, "There is no file %q.", name)
	}
	if err != nil {
		return service.UploadedToSource{}, fault.Wrap(err, fault.Unavailable, "%q cannot be read: %s.", name, cause(err))
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return service.UploadedToSource{}, fault.New(fault.Invalid, "%q is a directory. Pack it as a .zip archive, or follow it: satchel source add --kind directory %s.", name, name)
	}
	to := filepath.Base(name)
	if under != "" {
		to = filepath.ToSlash(filepath.Join(under, to))
	}
	return s.UploadToSource(ctx, service.UploadToSourceInput{ID: id, Name: to, Stream: f, Create: create})
}

func (c *call) printUpload(x service.UploadedToSource) {
	for _, f := range x.Files {
		if f.Path != "" {
			c.printf("%s: /library/docs/%s/%s\n", printable(f.Name), x.ID, printable(string(f.Path)))
		} else {
			c.printf("%s was left out (%s): %s\n", printable(f.Name), f.Reason, printable(f.Problem))
		}
	}
	c.printf("%s has %s.\n", x.ID, counted(x.Source.Files))
}
