package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/service"
)

func (c *call) spaceCommand() *cobra.Command {
	return group("space", "manage spaces", append([]*cobra.Command{
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the spaces"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "only those of the person `NAME`")
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					spaces, err := admin.Do(ctx, s, (*service.Service).ListSpaces, service.ListSpacesInput{User: *user})
					if err != nil {
						return err
					}
					return c.answer(orEmpty(spaces), func() {
						table(c.Stdout, "NAME\tOWNER\tID\tHEAD\tREPOSITORY", spaces, func(s service.SpaceInfo) string {
							return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", s.Name, s.OwnerLabel(), s.ID, cmp.Or(s.Head.Short(), "damaged"), s.Repository)
						})
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "import SOURCE", Args: cobra.ExactArgs(1), Short: "fill a space from a git URL, a git repository, a bundle or a directory", Long: `
The command reads SOURCE here, with your rights and your git configuration, and
sends only its content to the server. You can download a bundle from the pages, or
make one with “git bundle create FILE HEAD”. If the space has not
changed since it was created, a git repository or bundle is imported with its history. Otherwise its files are added
in one commit, and if both sides have a file, both versions are kept.`}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", whoseSpace)
			return func(ctx context.Context, args []string) error {
				return importSource(ctx, c, *user, args[0])
			}
		}),
		c.logCommand(), c.showCommand(), c.restoreCommand(),
		c.statusCommand(), c.syncCommand(), c.remoteCommand(),
		c.purgeCommand(), c.allowCommand(), c.discardCommand(), c.repairCommand(),
	}, c.spaceAccountCommands()...)...)
}

func importSource(ctx context.Context, c *call, user, arg string) error {
	src := source{arg: arg, environ: c.Environ, stdin: c.Stdin, log: c.Stderr, watched: c.Watched}
	maxFile := int64(0)
	src.maxFile = func() int64 { return maxFile }
	if err := src.check(); err != nil {
		return err
	}
	cfg, err := c.existing()
	if err != nil {
		return err
	}
	// A clone may take long, so the data directory is opened only after it.
	kind, stream, err := src.open(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	var res service.ImportResult
	line := progressLine{w: c.Stderr, shown: c.Watched}
	err = c.adminIn(ctx, cfg, func(s admin.Service) error {
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		maxFile = info.MaxFile
		res, err = s.Import(service.WithProgress(ctx, line.show), service.ImportSpaceInput{Space: spaceNamed(user), Kind: kind, Source: sourceName(arg), Stream: stream})
		return err
	})
	line.clear()
	if err != nil {
		return err
	}
	return c.answer(res, func() { c.imported(arg, res) })
}

// imported prints the result of an import.
func (c *call) imported(arg string, res service.ImportResult) {
	switch {
	case res.Files == 0 && len(res.Refused) == 0:
		c.printf("%s has no files to import.\n", printable(arg))
	case res.Files == 0:
		c.printf("Nothing of %s could be imported.\n", printable(arg))
	case !res.Changed:
		c.printf("Nothing new: the space has all %s (%s).\n", counted(res.Files), res.Commit.Short())
	default:
		c.printf("Imported %s; the space is now at %s.\n", counted(res.Files), res.Commit.Short())
	}
	for _, r := range res.Refused {
		c.printf("Left out %s: %s\n", printable(r.Path), r.Why)
	}
	for _, w := range res.Warnings {
		c.printf("Warning: %s: %s\n", printable(w.Path), w.Why)
	}
	for _, p := range res.Replaced {
		c.printf("%s now has the imported content: nobody had changed it since the space was created.\n", printable(p))
	}
	for _, k := range res.Conflicts {
		c.printf("%s differs from the space's; the imported one is %s.\n", printable(k.Path), printable(k.Kept))
	}
}

func counted(files int) string {
	if files == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", files)
}

// printable returns a name. If the name has characters that Go would escape, such as control
// characters, printable quotes it.
func printable(s string) string {
	if q := strconv.Quote(s); q[1:len(q)-1] != s {
		return q
	}
	return s
}

// progressLine shows messages on one line of a terminal. Each message replaces the previous
// message. If the field shown is false, because nobody watches, progressLine prints nothing.
type progressLine struct {
	w     io.Writer
	shown bool
	dirty bool
}

func (p *progressLine) show(text string) {
	if !p.shown {
		return
	}
	if r := []rune(text); len(r) > 78 {
		text = string(r[:78])
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	p.dirty = true
}

func (p *progressLine) clear() {
	if p.dirty {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// sourceName returns the name of a source for a commit message: a URL without
// credentials, or the last element of a path.
func sourceName(arg string) string {
	if !isURL(arg) {
		if abs, err := filepath.Abs(arg); err == nil {
			arg = abs
		}
		return filepath.Base(arg)
	}
	if u, err := url.Parse(arg); err == nil && u.Host != "" {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		return u.String()
	}
	if !strings.Contains(arg, "://") { // git@host:path
		return arg[strings.IndexByte(arg, '@')+1:]
	}
	return "a git repository"
}
