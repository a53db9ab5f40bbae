package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/service"
	"satchel/internal/space"
)

const whoseSpace = "the owner's `NAME` for their first space, or NAME/SPACE (default: the first admin)"

func (c *call) logCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "log [PATH]", Args: cobra.MaximumNArgs(1), Short: "list the commits of a space, newest first"}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		limit := fs.Int("limit", 20, "at most `N` commits, up to 1000")
		tool := fs.String("tool", "", "only commits of this `TOOL`, such as bash")
		client := fs.String("client", "", "only commits of the client `NAME`")
		return func(ctx context.Context, args []string) error {
			if *limit < 1 || *limit > 1000 {
				return usage("--limit %d is not between 1 and 1000", *limit)
			}
			return c.admin(ctx, func(s admin.Service) error {
				q := space.LogQuery{Path: space.Path(argument(args, 0)), Tool: *tool, Client: *client, Limit: *limit}
				list, err := admin.Do(ctx, s, (*service.Service).ListCommits, service.ListCommitsInput{Space: spaceNamed(*user), LogQuery: q})
				if err != nil {
					return err
				}
				commits := make([]commit, len(list))
				for i, x := range list {
					commits[i] = commitOf(x)
				}
				return c.answer(commits, func() { table(c.Stdout, "COMMIT\tDATE\tBY\tMESSAGE", commits, commitRow) })
			})
		}
	})
}

// spaceNamed parses the value of --user, which is NAME or NAME/SPACE.
func spaceNamed(user string) service.SpaceRef {
	name, which, _ := strings.Cut(user, "/")
	return service.SpaceRef{User: name, Name: which}
}

// commit is a commit in JSON, which scripts read.
type commit struct {
	Commit  space.CommitID `json:"commit"`
	Author  string         `json:"author"`
	Date    time.Time      `json:"date"`
	Message string         `json:"message"`
	Tool    string         `json:"tool,omitempty"`
	Client  string         `json:"client,omitempty"`
}

func commitOf(c space.Commit) commit {
	return commit{Commit: c.ID, Author: c.Author.Name, Date: c.Time, Message: c.Message, Tool: c.Tool, Client: c.Client}
}

// shown is the answer of the show command: a commit with its changes, or with one file's content.
type shown struct {
	commit
	Files   []changedFile `json:"files"`
	Patch   string        `json:"patch,omitempty"`
	Content []byte        `json:"content,omitempty"`
}

// changedFile is a file that a commit changed. Status is git's letter for the kind of change.
type changedFile struct {
	Path   space.Path       `json:"path"`
	Status space.FileStatus `json:"status"`
}

func changedFiles(files []space.FileChange) []changedFile {
	out := make([]changedFile, len(files))
	for i, f := range files {
		out[i] = changedFile{f.Path, f.Status}
	}
	return out
}

// restored is the answer of the restore command: what the restore did.
type restored struct {
	Commit  space.CommitID    `json:"commit"`
	Changed bool              `json:"changed"` // false if the space already had this content
	Files   []changedFile     `json:"files"`
	Refused []space.Rejection `json:"refused,omitempty"`
}

func commitRow(i commit) string {
	by := cmp.Or(i.Client, i.Tool)
	if by != "" {
		by = " (" + by + ")"
	}
	subject, _, _ := strings.Cut(i.Message, "\n")
	return fmt.Sprintf("%s\t%s\t%s\t%s", i.Commit.Short(), day(i.Date), printable(i.Author+by), printable(subject))
}

func (c *call) showCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "show COMMIT [PATH]", Args: cobra.RangeArgs(1, 2), Short: "show the changes of a commit, or a file at that commit", Long: `
COMMIT is a commit's id, or at least 7 digits of it, or HEAD for the newest.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		content := fs.Bool("content", false, "print the file PATH at the commit")
		return func(ctx context.Context, args []string) error {
			if *content && len(args) < 2 {
				return usage("--content needs a PATH")
			}
			return c.admin(ctx, func(s admin.Service) error {
				in := service.ShowCommitInput{Space: spaceNamed(*user), Commit: args[0], Path: argument(args, 1), Content: *content}
				found, err := admin.Do(ctx, s, (*service.Service).ShowCommit, in)
				if err != nil {
					return err
				}
				out := shown{commitOf(found.Commit), changedFiles(found.Files), found.Patch, found.Content}
				return c.answer(out, func() { printShown(c.Stdout, out, *content, c.Terminal) })
			})
		}
	})
}

// printShown prints a commit. It writes the content of files unchanged to a file or a pipe. For a
// terminal, it replaces control characters.
func printShown(w io.Writer, s shown, content, terminal bool) {
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
	fmt.Fprintf(w, "commit %s\nauthor %s\ndate   %s\n", s.commit.Commit, printable(s.Author), day(s.Date))
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

func printFiles(w io.Writer, files []changedFile) {
	for _, f := range files {
		fmt.Fprintf(w, "%c %s\n", f.Status, printable(string(f.Path)))
	}
}

func (c *call) restoreCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "restore COMMIT [PATH]", Args: cobra.RangeArgs(1, 2), Short: "restore a file, a directory or the whole space from a commit", Long: `
The restored state becomes a new commit. Nothing is removed from the history, so you
can undo a restore with another one. Without PATH the whole space is restored, and
files that were added since are deleted.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		return func(ctx context.Context, args []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				made, err := admin.Do(ctx, s, (*service.Service).Restore, service.RestoreInput{Space: spaceNamed(*user), Commit: args[0], Path: argument(args, 1)})
				if err != nil {
					return err
				}
				res := restored{made.ID, made.Changed, changedFiles(made.Files), made.Rejected}
				return c.answer(res, func() { c.printRestored(res) })
			})
		}
	})
}

func (c *call) printRestored(r restored) {
	if !r.Changed {
		c.printf("Nothing to do: it is already the same (%s).\n", r.Commit.Short())
	} else {
		c.printf("Restored; the space is now at %s.\n", r.Commit.Short())
		printFiles(c.Stdout, r.Files)
	}
	for _, f := range r.Refused {
		c.printf("Left out %s: %s\n", printable(f.Path), f.Why)
	}
}

// argument returns the i-th argument, or "" if there is none.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
