package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/auth"
	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/space"
)

func (c *call) userCommand() *cobra.Command {
	return group("user", "manage people", append([]*cobra.Command{
		c.command(&cobra.Command{Use: "add NAME", Args: cobra.ExactArgs(1), Short: "add a person, with a space of their own"}, func(fs *pflag.FlagSet) runner {
			isAdmin := fs.Bool("admin", false, "let them administer this Satchel")
			email := fs.String("email", "", "the `ADDRESS` that sign-in links are mailed to")
			return func(ctx context.Context, args []string) error {
				cfg, err := c.load()
				if err != nil {
					return err
				}
				return c.adminIn(ctx, cfg, func(s admin.Service) error {
					u, err := s.AddPerson(ctx, admin.NewPerson{Name: args[0], Admin: *isAdmin, Email: *email})
					if err != nil {
						return err
					}
					return c.answer(addedUser{u.ID, u.Name}, func() {
						at := shellQuote(c.Executable) + " %s --data " + shellQuote(cfg.DataDir) + " --user " + shellQuote(u.Name)
						c.printf("Added %s. To let them sign in, hand them the link of:\n  "+at+"\nOr make them a key with:\n  "+at+"\n", u.Name, "login-link", "token create")
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the people"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					users, err := s.Users(ctx)
					if err != nil {
						return err
					}
					return c.answer(orEmpty(users), func() { table(c.Stdout, "NAME\tROLE\tSTATE\tSINCE\tEMAIL\tID", users, userRow) })
				})
			}
		}),
		c.command(&cobra.Command{Use: "remove NAME", Args: cobra.ExactArgs(1), Short: "remove a person: their keys, clients, sessions and sandboxes end at once, their spaces stay, without an owner"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				cfg, err := c.existing()
				if err != nil {
					return err
				}
				return c.adminIn(ctx, cfg, func(s admin.Service) error {
					left, err := s.PartUser(ctx, args[0])
					if err != nil {
						return err
					}
					return c.answer(left, func() { c.parted(left, cfg.DataDir) })
				})
			}
		}),
	}, c.userAccountCommands()...)...)
}

// parted says what a removed person leaves, and how to hand it on.
func (c *call) parted(left admin.Parted, dataDir string) {
	c.printf("Removed %s.\n", left.Removed)
	if len(left.Spaces) == 0 {
		return
	}
	c.printf("Nobody owns these spaces now. To give one to somebody:\n")
	for _, sp := range left.Spaces {
		c.printf("  %s: %s space give %s --data %s --to NAME\n", sp.Name, shellQuote(c.Executable), sp.ID, shellQuote(dataDir))
	}
}

func (c *call) tokenCommand() *cobra.Command {
	return group("token", "manage API keys",
		c.command(&cobra.Command{Use: "create", Args: cobra.NoArgs, Short: "make an API key; it is shown this once"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "whose key it is: their `NAME` (default: the first admin)")
			in := fs.String("space", "", "which space it reaches: `NAME`, or OWNER/NAME (default: their first)")
			scope := fs.String("scope", "read,write", "what it may do, its `SCOPES`: read, or read,write")
			name := fs.String("name", "", "a `NAME` to know it again by")
			expires := fs.String("expires", "", "the `TIME` after which it ends, such as 90d or 12h (default: never)")
			return func(ctx context.Context, _ []string) error {
				scopes, bad, ok := space.ParseScopes(*scope)
				if !ok {
					if bad == "" {
						return usage("--scope names no scope; use read or read,write")
					}
					return usage("--scope %q: %q is not a scope; use read or read,write", *scope, bad)
				}
				if !slices.Contains(scopes, space.ScopeRead) {
					return usage("--scope %s would make a key that can read nothing; use read or read,write", *scope)
				}
				var lifetime time.Duration
				if *expires != "" {
					var err error
					if lifetime, err = config.ParseDuration(*expires); err != nil || lifetime <= 0 {
						return usage("--expires %q is not a time span; write it like 90d or 12h", *expires)
					}
				}
				return c.admin(ctx, func(s admin.Service) error {
					t, err := s.CreateToken(ctx, admin.TokenRequest{User: *user, Space: *in, Scopes: scopes, Name: *name, Expires: lifetime})
					if err != nil {
						return err
					}
					return c.answer(t, func() { c.printf("%s\n", t.Secret) })
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the API keys, without their secrets"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "only those of the person `NAME`")
			all := fs.Bool("all", false, "those that were revoked or have expired too")
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					tokens, err := s.Tokens(ctx, *user)
					if err != nil {
						return err
					}
					if !*all {
						now := time.Now()
						tokens = slices.DeleteFunc(tokens, func(t admin.TokenInfo) bool { return t.Ended(now) })
					}
					return c.answer(orEmpty(tokens), func() {
						table(c.Stdout, "ID\tUSER\tSPACE\tNAME\tSCOPES\tCREATED\tEXPIRES\tLAST USED", tokens, tokenRow)
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "revoke ID", Args: cobra.ExactArgs(1), Short: "end an API key at once"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				if strings.HasPrefix(args[0], auth.KeyPrefix) {
					return usage("that is a key itself; give its ID, from: satchel token list")
				}
				return c.admin(ctx, func(s admin.Service) error {
					if err := s.RevokeToken(ctx, space.GrantID(args[0])); err != nil {
						return err
					}
					return c.answer(map[string]string{"revoked": args[0]}, func() { c.printf("Revoked %s.\n", args[0]) })
				})
			}
		}),
	)
}

// addedUser is what `user add --json` prints.
type addedUser struct {
	ID   space.UserID `json:"id"`
	Name string       `json:"name"`
}

func userRow(u admin.User) string {
	role := "member"
	if u.Admin {
		role = "admin"
	}
	return strings.Join([]string{u.Name, role, u.State, day(u.Created), orDash(u.Email), string(u.ID)}, "\t")
}

func tokenRow(t admin.TokenInfo) string {
	var scopes []string
	for _, s := range t.Scopes {
		scopes = append(scopes, string(s))
	}
	expires, used := "never", "never"
	if t.Expires != nil {
		expires = day(*t.Expires)
	}
	if t.Revoked {
		expires = "revoked"
	}
	if t.LastUsed != nil {
		used = day(*t.LastUsed)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", t.ID, t.User, t.Space, orDash(t.Name), strings.Join(scopes, ","), day(t.Created), expires, used)
}

// orDash makes a cell that would be empty one that is seen.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// until is when something ends, with the zone: who is told may be elsewhere.
func until(t time.Time) string { return t.Local().Format("2006-01-02 15:04 MST") }

func day(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func table[T any](w io.Writer, head string, rows []T, row func(T) string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, head)
	for _, r := range rows {
		fmt.Fprintln(tw, row(r))
	}
	tw.Flush()
}

// orEmpty makes an empty list [] in JSON, not null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
