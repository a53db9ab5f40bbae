package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/space"
)

func (c *call) clientCommand() *cobra.Command {
	return group("client", "manage OAuth clients",
		c.command(&cobra.Command{Use: "add NAME", Args: cobra.ExactArgs(1), Short: "make a client id, for a client that cannot register itself"}, func(fs *pflag.FlagSet) runner {
			redirects := fs.StringArray("redirect", nil, "`URI` that people are sent back to; on this computer any port will do (may be repeated)")
			return func(ctx context.Context, args []string) error {
				if len(*redirects) == 0 {
					return usage("--redirect URI is needed: where the client wants people to be sent back to")
				}
				return c.admin(ctx, func(s admin.Service) error {
					cl, err := s.AddClient(ctx, admin.ClientRequest{Name: args[0], Redirects: *redirects})
					if err != nil {
						return err
					}
					return c.answer(cl, func() {
						c.printf("%s\n", cl.ID)
						c.note("That is the client id of %s. It has no secret: leave the field empty.\n", cl.Name)
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the clients that registered or were added"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					rows, err := s.Clients(ctx)
					if err != nil {
						return err
					}
					return c.answer(orEmpty(rows), func() {
						table(c.Stdout, "ID\tNAME\tKIND\tSINCE\tLAST USED\tSENT BACK TO", rows, func(cl admin.Client) string {
							used := "never"
							if cl.LastUsed != nil {
								used = day(*cl.LastUsed)
							}
							return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", cl.ID, orDash(cl.Name), cl.Kind, day(cl.Created), used, strings.Join(cl.Redirects, " "))
						})
					})
				})
			}
		}),
		c.act("remove ID", "remove a client: all that it was granted ends at once", "removed", "Removed %s", func(ctx context.Context, s admin.Service, id string) error {
			return s.RemoveClient(ctx, id)
		}),
	)
}

func (c *call) grantCommand() *cobra.Command {
	return group("grant", "list and revoke what clients were given",
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list what clients may do, of which space and whose"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "only those of the person `NAME`")
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					rows, err := s.Grants(ctx, *user)
					if err != nil {
						return err
					}
					return c.answer(orEmpty(rows), func() {
						table(c.Stdout, "ID\tKIND\tUSER\tSPACE\tNAME\tSCOPES\tSINCE\tLAST USED", rows, func(g admin.Grant) string {
							var scopes []string
							for _, s := range g.Scopes {
								scopes = append(scopes, string(s))
							}
							used := "never"
							if g.LastUsed != nil {
								used = day(*g.LastUsed)
							}
							return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", g.ID, g.Kind, g.User, g.Space, orDash(g.Name), strings.Join(scopes, ","), day(g.Created), used)
						})
					})
				})
			}
		}),
		c.act("revoke ID", "end what a client was given, at once", "revoked", "Revoked %s", func(ctx context.Context, s admin.Service, id string) error {
			return s.RevokeGrant(ctx, space.GrantID(id))
		}),
	)
}
