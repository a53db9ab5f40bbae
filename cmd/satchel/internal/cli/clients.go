package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/auth"
	"satchel/internal/admin"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (c *call) clientCommand() *cobra.Command {
	return group("client", "manage OAuth clients",
		c.command(&cobra.Command{Use: "add NAME", Args: cobra.ExactArgs(1), Short: "make a client ID, for a client that cannot register itself"}, func(fs *pflag.FlagSet) runner {
			redirects := fs.StringArray("redirect", nil, "a redirect `URI`; at a loopback address the port does not matter (may be repeated)")
			return func(ctx context.Context, args []string) error {
				if len(*redirects) == 0 {
					return usage("--redirect URI is needed: where the client wants people to be sent back to")
				}
				return c.admin(ctx, func(s admin.Service) error {
					cl, err := admin.Do(ctx, s, (*service.Service).AddClient, service.AddClientInput{Name: args[0], Redirects: *redirects})
					if err != nil {
						return err
					}
					return c.answer(listedClient(cl), func() {
						c.printf("%s\n", cl.ID)
						c.note("That is the client id of %s. It has no secret: leave the field empty.\n", cl.Name)
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list all OAuth clients"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					all, err := admin.Do(ctx, s, (*service.Service).ListClients, service.None{})
					if err != nil {
						return err
					}
					rows := mapped(all, listedClient)
					return c.answer(rows, func() {
						table(c.Stdout, "ID\tNAME\tKIND\tSINCE\tLAST USED\tSENT BACK TO", rows, func(cl client) string {
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
		act(c, "remove ID", "remove a client, and end all its grants", "removed", "Removed %s", (*service.Service).RemoveClient, func(id string) service.RemoveClientInput {
			return service.RemoveClientInput{ID: id}
		}),
	)
}

func (c *call) grantCommand() *cobra.Command {
	return group("grant", "list and revoke what clients were given",
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the grants of clients and keys"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "only those of the person `NAME`")
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					all, err := admin.Do(ctx, s, (*service.Service).ListGrants, service.ListGrantsInput{User: *user})
					if err != nil {
						return err
					}
					rows := mapped(all, func(g service.Grant) grant {
						return grant{g.ID, g.Kind, g.UserName, g.SpaceName, g.Name, g.Client, g.Scopes, g.Created, known(g.LastUsed)}
					})
					return c.answer(rows, func() {
						table(c.Stdout, "ID\tKIND\tUSER\tSPACE\tNAME\tSCOPES\tSINCE\tLAST USED", rows, func(g grant) string {
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
		act(c, "revoke ID", "revoke a grant at once", "revoked", "Revoked %s", (*service.Service).RevokeGrant, func(id string) service.RevokeGrantInput {
			return service.RevokeGrantInput{ID: space.GrantID(id)}
		}),
	)
}

// client is an OAuth client as `client list --json` prints it.
type client struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`
	Redirects []string   `json:"redirects"`
	Created   time.Time  `json:"created"`
	LastUsed  *time.Time `json:"last_used,omitempty"`
}

func listedClient(c auth.Client) client {
	return client{c.ID, c.Name, string(c.Kind), c.RedirectURIs, c.Created, known(c.LastUsed)}
}

// grant is a grant as `grant list --json` prints it.
type grant struct {
	ID       space.GrantID `json:"id"`
	Kind     string        `json:"kind"`
	User     string        `json:"user"`
	Space    string        `json:"space"`
	Name     string        `json:"name"`
	Client   string        `json:"client,omitempty"`
	Scopes   []space.Scope `json:"scopes"`
	Created  time.Time     `json:"created"`
	LastUsed *time.Time    `json:"last_used,omitempty"`
}
