package cli

import (
	"context"

	"github.com/spf13/pflag"
)

func versionCommand() *command {
	return &command{name: "version", short: "what this binary is made of",
		setup: func(*pflag.FlagSet) runner {
			return func(_ context.Context, c *call, _ []string) error {
				v := c.Version
				return c.answer(v, func() {
					c.printf("satchel %s (commit %s, %s, gVisor %s)\n", v.Version, v.Commit, v.Go, v.GVisor)
				})
			}
		}}
}
