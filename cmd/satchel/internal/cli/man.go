package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func (c *call) manCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "man DIR", Args: cobra.ExactArgs(1), Short: "write manual pages of all commands"}, func(*pflag.FlagSet) runner {
		return func(_ context.Context, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if err := doc.GenManTree((&call{Env: c.Env}).root(), &doc.GenManHeader{Section: "1", Source: "Satchel " + c.Version.Version, Manual: "Satchel"}, args[0]); err != nil {
				return err
			}
			return c.answer(map[string]string{"written": args[0]}, func() { c.printf("Wrote the manual pages to %s.\n", args[0]) })
		}
	})
}
