package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/cmd/satchel/internal/authcheck"
)

func (c *call) authCommand() *cobra.Command {
	return group("auth", "check what each client would meet at a server",
		c.command(&cobra.Command{Use: "check URL", Args: cobra.ExactArgs(1), Short: "check from outside whether each client can connect to a server", Long: `
URL is the one that people type into their clients, such as
https://satchel.example.com/mcp. The command changes nothing on the server; with
--register it registers a client, and deletes it again if the server can do that.
Run it outside the server's network: requests from inside may take another route.
It exits with 1 if a check failed.`}, func(fs *pflag.FlagSet) runner {
			register := fs.Bool("register", false, "try to register a client as well")
			return func(ctx context.Context, args []string) error {
				o := authcheck.Options{URL: args[0], Register: *register}
				if !c.json {
					o.Progress = func(f authcheck.Finding) { _ = f.Write(c.Stdout) }
				}
				r, err := authcheck.Check(ctx, o)
				if errors.Is(err, authcheck.ErrURL) {
					return usage("%s", err)
				}
				if err != nil {
					return err
				}
				if err := c.answer(r, func() {
					c.printf("\n")
					_ = r.WriteClients(c.Stdout)
				}); err != nil {
					return err
				}
				if !r.OK {
					return errors.New("some checks failed; see the fix below each of them")
				}
				return nil
			}
		}),
	)
}
