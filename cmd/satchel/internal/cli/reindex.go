package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/cmd/satchel/internal/pathlist"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// maxChanged limits a list of paths, in bytes. The list must fit into a request to
// a running server, whose JSON is limited to 1 MiB.
const maxChanged = 512 << 10

func (c *call) reindexCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "reindex [all]", Args: cobra.MaximumNArgs(1), Short: "read changed pages again, or rebuild the whole search index", Long: `
Satchel updates the index after every commit. Use this command if you do not trust the
index, and in a git hook that must know when a pushed change is searchable (docs/search.md). With
--changed it brings the index of the space to the newest commit and reads the paths
in FILE again: one on each line, as git diff --name-only prints them, or with NULs
between them, as with -z. Searches continue meanwhile.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", "only the space of the person `NAME` (default: all spaces; with --changed the first admin's)")
		id := fs.String("space", "", "only the space with this `ID`, from: satchel space list")
		changed := fs.String("changed", "", "only the paths in `FILE`; - for standard input")
		return func(ctx context.Context, args []string) error {
			if len(args) == 1 && args[0] != "all" {
				return usage("%q cannot be indexed; name a person with --user, a space with --space, or all", args[0])
			}
			if len(args) == 1 && (*user != "" || *id != "" || fs.Changed("changed")) {
				return usage("all spaces are indexed without --user, --space and --changed")
			}
			if *user != "" && *id != "" {
				return usage("--user and --space each name the space; give one of them")
			}
			in := service.ReindexInput{Space: service.SpaceRef{ID: space.SpaceID(*id)}}
			if *user != "" {
				in.Space = spaceNamed(*user)
			}
			if fs.Changed("changed") {
				var err error
				if in.Changed, err = changedPaths(*changed, c.Stdin); err != nil {
					return err
				}
			}
			done, err := longTask(ctx, c, (*service.Service).Reindex, in)
			if err != nil {
				return err
			}
			return c.answer(map[string]any{"spaces": orEmpty(done)}, func() { c.reindexed(done) })
		}
	})
}

func (c *call) reindexed(done []service.Reindexed) {
	if len(done) == 0 {
		c.printf("There is no space to index.\n")
	}
	for _, d := range done {
		at := ""
		if d.Commit != "" {
			at = " at " + d.Commit.Short()
		}
		c.printf("%s's space %s: the index holds %s%s; %d read in %.1f s.\n", printable(d.Owner), d.Space, counted(int(d.Documents)), at, d.Read, d.Seconds)
		for _, p := range d.Absent {
			c.printf("Not in the space: %s\n", printable(string(p)))
		}
	}
}

// changedPaths reads a list of paths. It checks every path, so that nothing is indexed if one path
// is invalid. If the list has no paths, the result is empty, but not nil.
func changedPaths(file string, stdin io.Reader) ([]string, error) {
	name := file
	if file == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(file)
		if err != nil {
			return nil, fault.Wrap(err, fault.NotFound, "The list of paths %q cannot be read: %s.", file, cause(err))
		}
		defer f.Close()
		stdin = f
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxChanged+1))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The list of paths in %s cannot be read: %s.", name, cause(err))
	}
	if len(data) > maxChanged {
		return nil, fault.New(fault.TooLarge, "The list of paths in %s has more than %d kB; run satchel reindex without --changed, which reads everything.", name, maxChanged>>10)
	}
	paths := pathlist.Split(data)
	for _, p := range paths {
		if _, err := space.ParsePath(p); err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "%s Nothing was indexed.", fault.PublicOf(err))
		}
	}
	return paths, nil
}

// printCount formats a progress message, such as "Asked 5 of 20".
func printCount(what string, done, total int) string {
	return fmt.Sprintf("%s %d of %d", what, done, total)
}
