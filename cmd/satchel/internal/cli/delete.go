package cli

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/service"
)

func (c *call) deleteCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "delete SPACE", Args: cobra.ExactArgs(1), Short: "delete a space, its files and its history for good", Long: `
SPACE is the name of one of the person's spaces, or the ID of any space, from:
satchel space list. Its members and their clients lose access at once, and its sources
are unpublished. The repository to which the space is pushed stays as it is. To keep the
history, first run: git clone --mirror REPOSITORY, with the repository from satchel
space list. A person's only space cannot be deleted. Type the space's name to
confirm, or pass --yes.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", "the owner's `NAME` (default: the first admin)")
		yes := fs.Bool("yes", false, "delete it without asking")
		return func(ctx context.Context, args []string) error {
			in := service.DeleteSpaceInput{Space: service.SpaceRef{User: *user, Name: args[0]}}
			return c.admin(ctx, func(s admin.Service) error {
				if !*yes {
					sp, err := admin.Do(ctx, s, (*service.Service).PreviewDeletion, in)
					if err != nil {
						return err
					}
					c.goes(sp)
					if err := c.typed(sp.Name); err != nil {
						return err
					}
					in.Space = service.SpaceRef{ID: sp.ID} // the shown space, even if it was renamed since
				}
				sp, err := admin.Do(ctx, s, (*service.Service).DeleteSpace, in)
				if err != nil {
					return err
				}
				return c.answer(sp, func() { c.printf("Deleted the space %s of %s.\n", sp.Name, sp.OwnerLabel()) })
			})
		}
	})
}

// goes prints what a deletion removes.
func (c *call) goes(sp service.SpaceDeletion) {
	c.note("This deletes the space %s of %s (%s) for good: its files and their history, its facts, and everything else that this server stores for it.\n", sp.Name, sp.OwnerLabel(), sp.ID)
	if sp.Members > 0 {
		c.note("Other members who lose access at once: %d.\n", sp.Members)
	}
	if sp.Sources > 0 {
		c.note("Sources of it that are unpublished: %d.\n", sp.Sources)
	}
	switch {
	case sp.Remote == "":
		c.note("It is stored only on this server.\n")
	case sp.Unpushed > 0:
		c.note("%s stays as it is, and lacks changes that were not pushed: %d.\n", printable(sp.Remote), sp.Unpushed)
	default:
		c.note("%s stays as it is.\n", printable(sp.Remote))
	}
}

// maxTyped limits the bytes that are read from a line that somebody types.
const maxTyped = 1000

// typed asks for name as a confirmation, and returns an error if something else is typed.
func (c *call) typed(name string) error {
	c.note("Type its name to delete it: ")
	in := c.Stdin
	if in == nil {
		in = strings.NewReader("")
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxTyped)).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if !c.Watched || line == "" {
		c.note("\n")
	}
	if strings.TrimSpace(line) != name {
		return usage("that is not its name, and nothing was deleted; type %s, or give --yes", name)
	}
	return nil
}
