package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"satchel/cmd/satchel/internal/admin"
	"satchel/internal/space"
)

func clientCommand() *command {
	return &command{name: "client", short: "OAuth clients", sub: []*command{
		{name: "add", args: "NAME", positional: 1, short: "make a client id, for a client that cannot register itself",
			setup: func(fs *pflag.FlagSet) runner {
				redirects := fs.StringArray("redirect", nil, "`URI` that people are sent back to; on this computer any port will do (may be repeated)")
				return func(ctx context.Context, c *call, args []string) error {
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
			}},
		{name: "list", short: "list the clients that registered or were added",
			setup: func(*pflag.FlagSet) runner {
				return func(ctx context.Context, c *call, _ []string) error {
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
			}},
		act("remove", "ID", "remove a client: all that it was granted ends at once", "removed", "Removed %s", func(ctx context.Context, s admin.Service, id string) error {
			return s.RemoveClient(ctx, id)
		}),
	}}
}

func grantCommand() *command {
	return &command{name: "grant", short: "what clients were given", sub: []*command{
		{name: "list", short: "list what clients may do, of which space and whose",
			setup: func(fs *pflag.FlagSet) runner {
				user := fs.String("user", "", "only those of the person `NAME`")
				return func(ctx context.Context, c *call, _ []string) error {
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
			}},
		act("revoke", "ID", "end what a client was given, at once", "revoked", "Revoked %s", func(ctx context.Context, s admin.Service, id string) error {
			return s.RevokeGrant(ctx, space.GrantID(id))
		}),
	}}
}
