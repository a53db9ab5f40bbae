package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
)

const whoseSpace = "whose space it is: `NAME` for their first, NAME/SPACE for another (default: the first admin's)"

func (c *call) logCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "log [PATH]", Args: cobra.MaximumNArgs(1), Short: "list what was changed, newest first"}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		limit := fs.Int("limit", 20, "at most `N` commits, up to 1000")
		tool := fs.String("tool", "", "only what the `TOOL` did, such as bash")
		client := fs.String("client", "", "only what came through the client `NAME`")
		return func(ctx context.Context, args []string) error {
			if *limit < 1 || *limit > 1000 {
				return usage("--limit %d is not between 1 and 1000", *limit)
			}
			return c.admin(ctx, func(s admin.Service) error {
				commits, err := s.Log(ctx, admin.LogRequest{User: *user, Path: argument(args, 0), Tool: *tool, Client: *client, Limit: *limit})
				if err != nil {
					return err
				}
				return c.answer(orEmpty(commits), func() { table(c.Stdout, "COMMIT\tDATE\tBY\tMESSAGE", commits, commitRow) })
			})
		}
	})
}

func commitRow(i admin.CommitInfo) string {
	by := cmp.Or(i.Client, i.Tool)
	if by != "" {
		by = " (" + by + ")"
	}
	subject, _, _ := strings.Cut(i.Message, "\n")
	return fmt.Sprintf("%s\t%s\t%s\t%s", i.Commit.Short(), day(i.Date), printable(i.Author+by), printable(subject))
}

func (c *call) showCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "show COMMIT [PATH]", Args: cobra.RangeArgs(1, 2), Short: "show what a commit changed, or a file as it was", Long: `
COMMIT is a commit's id, or at least 7 digits of it, or HEAD for the newest.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		content := fs.Bool("content", false, "print the file PATH as it was at the commit")
		return func(ctx context.Context, args []string) error {
			if *content && len(args) < 2 {
				return usage("--content needs a PATH")
			}
			return c.admin(ctx, func(s admin.Service) error {
				shown, err := s.Show(ctx, admin.ShowRequest{User: *user, Commit: args[0], Path: argument(args, 1), Content: *content})
				if err != nil {
					return err
				}
				return c.answer(shown, func() { printShown(c.Stdout, shown, *content, c.Terminal) })
			})
		}
	})
}

// printShown prints a commit. What files hold is written as it is into a file
// or a pipe, and without control characters to a terminal, which some of them
// would command.
func printShown(w io.Writer, s admin.Shown, content, terminal bool) {
	text := s.Patch
	if content {
		text = string(s.Content)
	}
	if terminal {
		text = strings.Map(func(r rune) rune {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
				return '\ufffd'
			}
			return r
		}, text)
	}
	if content {
		io.WriteString(w, text)
		return
	}
	fmt.Fprintf(w, "commit %s\nauthor %s\ndate   %s\n", s.Commit, printable(s.Author), day(s.Date))
	if s.Tool != "" {
		fmt.Fprintf(w, "tool   %s\n", printable(s.Tool))
	}
	if s.Client != "" {
		fmt.Fprintf(w, "client %s\n", printable(s.Client))
	}
	fmt.Fprintln(w)
	for line := range strings.Lines(s.Message) {
		fmt.Fprintf(w, "    %s\n", printable(strings.TrimRight(line, "\n")))
	}
	fmt.Fprintln(w)
	printFiles(w, s.Files)
	if text != "" {
		fmt.Fprintf(w, "\n%s", text)
	}
}

func printFiles(w io.Writer, files []admin.ChangedFile) {
	for _, f := range files {
		fmt.Fprintf(w, "%s %s\n", f.Status, printable(string(f.Path)))
	}
}

func (c *call) restoreCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "restore COMMIT [PATH]", Args: cobra.RangeArgs(1, 2), Short: "make a file, a directory or the whole space what it was at a commit", Long: `
The restored state becomes a new commit: nothing leaves the history, so a restore
can be undone by another. Without PATH the whole space is restored, and files that
came since are deleted.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		return func(ctx context.Context, args []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				res, err := s.Restore(ctx, admin.RestoreRequest{User: *user, Commit: args[0], Path: argument(args, 1)})
				if err != nil {
					return err
				}
				return c.answer(res, func() { c.restored(res) })
			})
		}
	})
}

func (c *call) restored(r admin.Restored) {
	if !r.Changed {
		c.printf("Nothing to do: it is so already (%s).\n", r.Commit.Short())
	} else {
		c.printf("Restored; the space is now at %s.\n", r.Commit.Short())
		printFiles(c.Stdout, r.Files)
	}
	for _, f := range r.Refused {
		c.printf("Left out %s: %s\n", printable(f.Path), f.Why)
	}
}

// argument returns the i-th argument, or nothing.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
