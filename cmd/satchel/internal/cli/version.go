package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (c *call) versionCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "version", Args: cobra.NoArgs, Short: "print the version, the commit, and the versions of Go and gVisor"}, func(*pflag.FlagSet) runner {
		return func(context.Context, []string) error {
			return c.answer(c.Version, func() { c.printf("%s\n", c.Version.text()) })
		}
	})
}

func (v Version) text() string {
	return fmt.Sprintf("satchel %s (commit %s, %s, gVisor %s)", v.Version, v.Commit, v.Go, v.GVisor)
}
