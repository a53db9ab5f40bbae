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
	"satchel/auth/store"
	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (c *call) userCommand() *cobra.Command {
	return group("user", "manage people", append([]*cobra.Command{
		c.command(&cobra.Command{Use: "add NAME", Args: cobra.ExactArgs(1), Short: "add a person, with a space of their own"}, func(fs *pflag.FlagSet) runner {
			isAdmin := fs.Bool("admin", false, "make the person an admin")
			email := fs.String("email", "", "the `ADDRESS` for sign-in links by mail")
			return func(ctx context.Context, args []string) error {
				cfg, err := c.load()
				if err != nil {
					return err
				}
				return c.adminIn(ctx, cfg, func(s admin.Service) error {
					u, err := admin.Do(ctx, s, (*service.Service).AddUser, service.AddUserInput{Name: args[0], Admin: *isAdmin, Email: *email})
					if err != nil {
						return err
					}
					return c.answer(addedUser{u.ID, u.Name}, func() {
						at := shellQuote(c.Executable) + " %s --data " + shellQuote(cfg.DataDir) + " --user " + shellQuote(u.Name)
						c.printf("Added %s. To let them sign in, give them the link that this command prints:\n  "+at+"\nOr make them a key with:\n  "+at+"\n", u.Name, "login-link", "token create")
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the people"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					all, err := admin.Do(ctx, s, (*service.Service).ListUsers, service.None{})
					if err != nil {
						return err
					}
					users := mapped(all, listedUser)
					return c.answer(users, func() { table(c.Stdout, "NAME\tROLE\tSTATE\tSINCE\tEMAIL\tID", users, userRow) })
				})
			}
		}),
		c.command(&cobra.Command{Use: "remove NAME", Args: cobra.ExactArgs(1), Short: "remove a person and end their keys, clients, sessions and sandboxes; their spaces stay, without an owner"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				cfg, err := c.existing()
				if err != nil {
					return err
				}
				return c.adminIn(ctx, cfg, func(s admin.Service) error {
					left, err := admin.Do(ctx, s, (*service.Service).RemoveUser, service.RemoveUserInput{User: service.UserRef{Name: args[0]}})
					if err != nil {
						return err
					}
					return c.answer(left, func() { c.removed(left, cfg.DataDir) })
				})
			}
		}),
	}, c.userAccountCommands()...)...)
}

// removed prints the spaces that a removed person leaves, and how to give them to somebody else.
func (c *call) removed(left service.RemovedUser, dataDir string) {
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
		c.command(&cobra.Command{Use: "create", Args: cobra.NoArgs, Short: "make an API key, and print it once"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "the `NAME` of the key's owner (default: the first admin)")
			in := fs.String("space", "", "the space that the key reaches: `NAME` or OWNER/NAME (default: the owner's first)")
			scope := fs.String("scope", "read,write", "the key's `SCOPES`: read, or read,write")
			name := fs.String("name", "", "a `NAME` for the list of keys")
			expires := fs.String("expires", "", "expire after `TIME`, such as 90d or 12h (default: never)")
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
					t, err := admin.Do(ctx, s, (*service.Service).CreateKey, service.CreateKeyInput{Space: service.SpaceRef{User: *user, Name: *in}, Scopes: scopes, Name: *name, Lifetime: lifetime})
					if err != nil {
						return err
					}
					return c.answer(t, func() { c.printf("%s\n", t.Secret) })
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the API keys, without their secrets"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "only those of the person `NAME`")
			all := fs.Bool("all", false, "also list revoked and expired keys")
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					keys, err := admin.Do(ctx, s, (*service.Service).ListKeys, service.ListKeysInput{User: *user})
					if err != nil {
						return err
					}
					if now := time.Now(); !*all {
						keys = slices.DeleteFunc(keys, func(k store.Key) bool {
							return !k.Revoked.IsZero() || !k.Expires.IsZero() && !k.Expires.After(now)
						})
					}
					tokens := mapped(keys, func(k store.Key) token {
						return token{k.ID, k.UserName, k.SpaceName, k.Name, k.Scopes, k.Created, known(k.Expires), known(k.LastUsed), !k.Revoked.IsZero()}
					})
					return c.answer(tokens, func() {
						table(c.Stdout, "ID\tUSER\tSPACE\tNAME\tSCOPES\tCREATED\tEXPIRES\tLAST USED", tokens, tokenRow)
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "revoke ID", Args: cobra.ExactArgs(1), Short: "revoke an API key at once"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				if strings.HasPrefix(args[0], auth.KeyPrefix) {
					return usage("that is a key itself; give its ID, from: satchel token list")
				}
				return done(ctx, c, "revoked", args[0], "Revoked "+args[0], (*service.Service).RevokeKey, service.RevokeKeyInput{ID: space.GrantID(args[0])})
			}
		}),
	)
}

// addedUser is what `user add --json` prints.
type addedUser struct {
	ID   space.UserID `json:"id"`
	Name string       `json:"name"`
}

// user is a person as `user list --json` prints them.
type user struct {
	ID      space.UserID `json:"id"`
	Name    string       `json:"name"`
	Admin   bool         `json:"admin"`
	Email   string       `json:"email,omitempty"`
	State   string       `json:"state"` // active, or suspended if no entry of the allow list admits them any more
	Created time.Time    `json:"created"`
}

func listedUser(u store.User) user {
	state := "active"
	if !u.Suspended.IsZero() {
		state = "suspended"
	}
	return user{u.ID, u.Name, u.Admin, u.Email, state, u.Created}
}

// token is a key as `token list --json` prints it.
type token struct {
	ID       space.GrantID `json:"id"`
	User     string        `json:"user"`
	Space    string        `json:"space"`
	Name     string        `json:"name"`
	Scopes   []space.Scope `json:"scopes"`
	Created  time.Time     `json:"created"`
	Expires  *time.Time    `json:"expires,omitempty"`
	LastUsed *time.Time    `json:"last_used,omitempty"`
	Revoked  bool          `json:"revoked"`
}

// known returns a pointer to t. For the zero time it returns nil, which JSON leaves out.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func userRow(u user) string {
	role := "member"
	if u.Admin {
		role = "admin"
	}
	return strings.Join([]string{u.Name, role, u.State, day(u.Created), orDash(u.Email), string(u.ID)}, "\t")
}

func tokenRow(t token) string {
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

// orDash returns s, or a dash for an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// until formats an expiry time. It includes the zone, because the reader may be in another zone.
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

// orEmpty replaces a nil list by an empty one, which is [] in JSON and not null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
