package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/auth/store"
	"satchel/internal/admin"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (c *call) loginLinkCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "login-link", Args: cobra.NoArgs, Short: "make a one-time sign-in link", Long: `
The link signs in the first person who opens it, so give it only to the person
that it is for. It expires after 15 minutes, or when another link is made.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", "the person's `NAME` (default: the first admin)")
		return func(ctx context.Context, _ []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				l, err := admin.Do(ctx, s, (*service.Service).CreateLoginLink, service.CreateLoginLinkInput{User: service.UserRef{Name: *user}})
				if err != nil {
					return err
				}
				return c.answer(l, func() {
					c.printf("%s\n", l.URL)
					c.note("It signs %s in once, until %s.\n", l.User, until(l.Expires))
				})
			})
		}
	})
}

// roleFlag adds the flag for the role of a member, and returns a function that reads its value.
func roleFlag(fs *pflag.FlagSet) func() (space.Role, error) {
	role := fs.String("role", "editor", "their `ROLE` there: editor or reader")
	return func() (space.Role, error) {
		if r := space.Role(*role); r == space.Editor || r == space.Reader {
			return r, nil
		}
		return "", usage("--role %q is not editor or reader", *role)
	}
}

func (c *call) inviteCommand() *cobra.Command {
	return group("invite", "manage invites",
		c.command(&cobra.Command{Use: "create", Args: cobra.NoArgs, Short: "make an invite to the server, or to a space"}, func(fs *pflag.FlagSet) runner {
			by := fs.String("user", "", "the `NAME` of the person who invites (default: the first admin)")
			share := fs.Bool("share", false, "also invite to a space of that person")
			name := fs.String("space", "", "the space's `NAME` (default: the person's first)")
			role := roleFlag(fs)
			isAdmin := fs.Bool("admin", false, "make the invited person an admin")
			note := fs.String("note", "", "a `TEXT` for the list of invites, such as the person's name")
			email := fs.String("email", "", "the `ADDRESS` for sign-in links, if the invited person's sign-in provides none")
			return func(ctx context.Context, _ []string) error {
				as, err := role()
				if err != nil {
					return err
				}
				toSpace := *share || *name != ""
				if !toSpace && fs.Changed("role") {
					return usage("--role is for a space: add --share or --space NAME")
				}
				return c.admin(ctx, func(s admin.Service) (err error) {
					var l service.Link
					if toSpace {
						in := service.InviteToSpaceInput{Space: service.SpaceRef{User: *by, Name: *name}, Role: as, Admin: *isAdmin, Note: *note, Email: *email}
						l, err = admin.Do(ctx, s, (*service.Service).InviteToSpace, in)
					} else {
						l, err = admin.Do(ctx, s, (*service.Service).InviteToServer, service.InviteToServerInput{By: *by, Admin: *isAdmin, Note: *note, Email: *email})
					}
					if err != nil {
						return err
					}
					return c.answer(l, func() {
						c.printf("%s\n", l.URL)
						c.note("The first person who opens it can accept it, until %s.\n", until(l.Expires))
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the open invites"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					all, err := admin.Do(ctx, s, (*service.Service).ListInvitations, service.None{})
					if err != nil {
						return err
					}
					rows := mapped(all, func(i store.Invitation) invitation {
						return invitation{i.ID, i.ByName, i.SpaceName, i.Role, i.Admin, i.Note, i.Email, i.Expires}
					})
					return c.answer(rows, func() {
						table(c.Stdout, "ID\tBY\tTO\tEXPIRES\tEMAIL\tNOTE", rows, func(i invitation) string {
							to := "the server"
							if i.Space != "" {
								to = fmt.Sprintf("%s as %s", i.Space, i.Role)
							}
							if i.Admin {
								to += ", as admin"
							}
							return strings.Join([]string{i.ID, i.By, to, day(i.Expires), orDash(i.Email), i.Note}, "\t")
						})
					})
				})
			}
		}),
		act(c, "revoke ID", "revoke an invite", "revoked", "Revoked %s", (*service.Service).RevokeInvitation, func(id string) service.RevokeInvitationInput {
			return service.RevokeInvitationInput{ID: id}
		}),
	)
}

// invitation is an open invitation as `invite list --json` prints it.
type invitation struct {
	ID      string     `json:"id"`
	By      string     `json:"by"`
	Space   string     `json:"space,omitempty"`
	Role    space.Role `json:"role,omitempty"`
	Admin   bool       `json:"admin,omitempty"`
	Note    string     `json:"note,omitempty"`
	Email   string     `json:"email,omitempty"`
	Expires time.Time  `json:"expires"`
}

// mapped returns the results of f for all elements. It never returns nil, so that an empty list is
// [] in JSON.
func mapped[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// act returns a command that performs the operation m on its argument. With --json the command
// prints {"KEY": ARGUMENT}. Otherwise it prints the text in said, in which %s is the argument.
func act[In any](c *call, use, short, key, said string, m service.Method[In, service.None], in func(arg string) In) *cobra.Command {
	return c.command(&cobra.Command{Use: use, Args: cobra.ExactArgs(1), Short: short}, func(*pflag.FlagSet) runner {
		return func(ctx context.Context, args []string) error {
			return done(ctx, c, key, args[0], fmt.Sprintf(said, args[0]), m, in(args[0]))
		}
	})
}

// done performs the operation m, which returns no result. With --json it prints {"KEY": VALUE}.
// Otherwise it prints the text in said, and adds a full stop.
func done[In any](ctx context.Context, c *call, key, value, said string, m service.Method[In, service.None], in In) error {
	return c.admin(ctx, func(s admin.Service) error {
		if _, err := admin.Do(ctx, s, m, in); err != nil {
			return err
		}
		return c.answer(map[string]string{key: value}, func() { c.printf("%s.\n", said) })
	})
}

// userAccountCommands returns the commands of `satchel user` other than add, list and remove.
func (c *call) userAccountCommands() []*cobra.Command {
	return []*cobra.Command{
		c.command(&cobra.Command{Use: "email NAME ADDRESS", Args: cobra.ExactArgs(2), Short: "set a person's mail address for sign-in links; an empty address removes it"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				name, email := args[0], args[1]
				return c.admin(ctx, func(s admin.Service) error {
					if _, err := admin.Do(ctx, s, (*service.Service).SetEmail, service.SetEmailInput{User: service.UserRef{Name: name}, Email: email}); err != nil {
						return err
					}
					return c.answer(map[string]string{"name": name, "email": email}, func() {
						if email == "" {
							c.printf("%s no longer has an address.\n", name)
							return
						}
						c.printf("The address of %s is %s.\n", name, email)
					})
				})
			}
		}),
		act(c, "promote NAME", "make a person an admin", "admin", "%s is an admin", (*service.Service).SetAdmin, func(name string) service.SetAdminInput {
			return service.SetAdminInput{User: service.UserRef{Name: name}, Admin: true}
		}),
		act(c, "demote NAME", "make an admin an ordinary user", "member", "%s is a member", (*service.Service).SetAdmin, func(name string) service.SetAdminInput {
			return service.SetAdminInput{User: service.UserRef{Name: name}, Admin: false}
		}),
		c.command(&cobra.Command{Use: "signout NAME", Args: cobra.ExactArgs(1), Short: "sign a person out of every browser; their clients stay connected"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					n, err := admin.Do(ctx, s, (*service.Service).EndSessions, service.EndSessionsInput{User: args[0]})
					if err != nil {
						return err
					}
					return c.answer(map[string]int{"sessions": n}, func() { c.printf("Ended %s of %s.\n", plural(int64(n), "session"), args[0]) })
				})
			}
		}),
	}
}

// spaceAccountCommands returns the commands of `satchel space` that create, give, delete and share
// spaces.
func (c *call) spaceAccountCommands() []*cobra.Command {
	owner := func(fs *pflag.FlagSet) *service.SpaceRef {
		r := &service.SpaceRef{}
		fs.StringVar(&r.User, "user", "", "the owner's `NAME` (default: the first admin)")
		fs.StringVar(&r.Name, "space", "", "the space's `NAME` (default: the person's first)")
		return r
	}
	return []*cobra.Command{
		c.command(&cobra.Command{Use: "create NAME", Args: cobra.ExactArgs(1), Short: "make another space for a person"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "the owner's `NAME` (default: the first admin)")
			return func(ctx context.Context, args []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					sp, err := admin.Do(ctx, s, (*service.Service).CreateSpace, service.CreateSpaceInput{User: *user, Name: args[0]})
					if err != nil {
						return err
					}
					return c.answer(sp, func() { c.printf("Made the space %s of %s.\n", sp.Name, sp.Owner) })
				})
			}
		}),
		c.command(&cobra.Command{Use: "give SPACE", Args: cobra.ExactArgs(1), Short: "make another person the owner of a space; the former owner becomes an editor", Long: `
SPACE is the name of one of the person's spaces, or the ID of any space, from:
satchel space list. Use this also for a space whose owner was removed. The space's
remote is removed, because its token belonged to the former owner; set one with
satchel space remote set.`}, func(fs *pflag.FlagSet) runner {
			to := fs.String("to", "", "the new owner's `NAME`")
			user := fs.String("user", "", "the owner's `NAME` (default: the first admin)")
			return func(ctx context.Context, args []string) error {
				if *to == "" {
					return usage("--to NAME is needed: who becomes the owner")
				}
				return c.admin(ctx, func(s admin.Service) error {
					sp, err := admin.Do(ctx, s, (*service.Service).GiveSpace, service.GiveSpaceInput{Space: service.SpaceRef{User: *user, Name: args[0]}, To: service.UserRef{Name: *to}})
					if err != nil {
						return err
					}
					return c.answer(sp, func() { c.printf("%s owns the space %s now.\n", sp.Owner, sp.Name) })
				})
			}
		}),
		c.deleteCommand(),
		c.command(&cobra.Command{Use: "members", Args: cobra.NoArgs, Short: "list the members of a space"}, func(fs *pflag.FlagSet) runner {
			r := owner(fs)
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					all, err := admin.Do(ctx, s, (*service.Service).ListMembers, service.ListMembersInput{Space: *r})
					if err != nil {
						return err
					}
					rows := mapped(all, func(m store.Member) member { return member{m.Name, m.Role, m.Added} })
					return c.answer(rows, func() {
						table(c.Stdout, "NAME\tROLE\tSINCE", rows, func(m member) string {
							return fmt.Sprintf("%s\t%s\t%s", m.Name, m.Role, day(m.Added))
						})
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "share NAME", Args: cobra.ExactArgs(1), Short: "make a person a member of a space, or change their role"}, func(fs *pflag.FlagSet) runner {
			r := owner(fs)
			role := roleFlag(fs)
			return func(ctx context.Context, args []string) error {
				as, err := role()
				if err != nil {
					return err
				}
				in := service.SetMemberInput{Space: *r, Member: service.UserRef{Name: args[0]}, Role: as}
				return done(ctx, c, "member", args[0], fmt.Sprintf("%s is a member, as %s", args[0], as), (*service.Service).SetMember, in)
			}
		}),
		c.command(&cobra.Command{Use: "unshare NAME", Args: cobra.ExactArgs(1), Short: "remove a person from a space, and end their clients' grants there"}, func(fs *pflag.FlagSet) runner {
			r := owner(fs)
			return func(ctx context.Context, args []string) error {
				in := service.RemoveMemberInput{Space: *r, Member: service.UserRef{Name: args[0]}}
				return done(ctx, c, "removed", args[0], args[0]+" is no longer a member", (*service.Service).RemoveMember, in)
			}
		}),
	}
}

// member is a member as `space members --json` prints it.
type member struct {
	Name  string     `json:"name"`
	Role  space.Role `json:"role"`
	Added time.Time  `json:"added"`
}
