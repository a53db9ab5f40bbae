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

func (c *call) loginLinkCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "login-link", Args: cobra.NoArgs, Short: "make a link that signs a person in once", Long: `
Whoever opens the link first is signed in as that person, so hand it to nobody
else. It ends after 15 minutes, and when another is made.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", "sign the person `NAME` in (default: the first admin)")
		return func(ctx context.Context, _ []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				l, err := s.LoginLink(ctx, *user)
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

// roleFlag is the flag of a member's role, and what reads it.
func roleFlag(fs *pflag.FlagSet) func() (space.Role, error) {
	role := fs.String("role", "editor", "what they may do there, as `ROLE`: editor, or reader")
	return func() (space.Role, error) {
		if r := space.Role(*role); r == space.Editor || r == space.Reader {
			return r, nil
		}
		return "", usage("--role %q is not editor or reader", *role)
	}
}

func (c *call) inviteCommand() *cobra.Command {
	return group("invite", "manage invitations",
		c.command(&cobra.Command{Use: "create", Args: cobra.NoArgs, Short: "make a link with which somebody becomes a user, or a member of a space"}, func(fs *pflag.FlagSet) runner {
			by := fs.String("user", "", "who invites: their `NAME` (default: the first admin)")
			share := fs.Bool("share", false, "also invite to one of the inviting person's spaces")
			name := fs.String("space", "", "which space: its `NAME` (default: their first)")
			role := roleFlag(fs)
			isAdmin := fs.Bool("admin", false, "let who accepts administer this Satchel")
			note := fs.String("note", "", "a `TEXT` to know it again by, such as whom it is for")
			email := fs.String("email", "", "the `ADDRESS` that who accepts gets sign-in links at, where they bring none")
			return func(ctx context.Context, _ []string) error {
				r := admin.InviteRequest{By: *by, Share: *share || *name != "", Space: *name, Admin: *isAdmin, Note: *note, Email: *email}
				var err error
				if r.Role, err = role(); err != nil {
					return err
				}
				if !r.Share && fs.Changed("role") {
					return usage("--role is for a space: add --share or --space NAME")
				}
				return c.admin(ctx, func(s admin.Service) error {
					l, err := s.Invite(ctx, r)
					if err != nil {
						return err
					}
					return c.answer(l, func() {
						c.printf("%s\n", l.URL)
						c.note("Whoever opens it first may accept it, until %s.\n", until(l.Expires))
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the invitations that are open"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					rows, err := s.Invitations(ctx)
					if err != nil {
						return err
					}
					return c.answer(orEmpty(rows), func() {
						table(c.Stdout, "ID\tBY\tTO\tEXPIRES\tEMAIL\tNOTE", rows, func(i admin.Invitation) string {
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
		c.act("revoke ID", "end an invitation", "revoked", "Revoked %s", func(ctx context.Context, s admin.Service, id string) error {
			return s.RevokeInvitation(ctx, id)
		}),
	)
}

// act is a command that does one thing to what its argument names, and answers
// {"KEY": ARGUMENT}; said is what a person is told, with the argument for %s.
func (c *call) act(use, short, key, said string, do func(ctx context.Context, s admin.Service, arg string) error) *cobra.Command {
	return c.command(&cobra.Command{Use: use, Args: cobra.ExactArgs(1), Short: short}, func(*pflag.FlagSet) runner {
		return func(ctx context.Context, args []string) error {
			return c.done(ctx, key, args[0], fmt.Sprintf(said, args[0]), func(s admin.Service) error { return do(ctx, s, args[0]) })
		}
	})
}

// done does an act that answers nothing, and says so: {"KEY": VALUE} as JSON.
func (c *call) done(ctx context.Context, key, value, said string, act func(s admin.Service) error) error {
	return c.admin(ctx, func(s admin.Service) error {
		if err := act(s); err != nil {
			return err
		}
		return c.answer(map[string]string{key: value}, func() { c.printf("%s.\n", said) })
	})
}

// userAccountCommands are those of `satchel user` beside add, list and remove.
func (c *call) userAccountCommands() []*cobra.Command {
	return []*cobra.Command{
		c.command(&cobra.Command{Use: "email NAME ADDRESS", Args: cobra.ExactArgs(2), Short: "say where a person gets sign-in links by mail; an empty address removes it"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				r := admin.EmailRequest{Name: args[0], Email: args[1]}
				return c.admin(ctx, func(s admin.Service) error {
					if err := s.SetEmail(ctx, r); err != nil {
						return err
					}
					return c.answer(r, func() {
						if r.Email == "" {
							c.printf("%s has no address any more.\n", r.Name)
							return
						}
						c.printf("The address of %s is %s.\n", r.Name, r.Email)
					})
				})
			}
		}),
		c.act("promote NAME", "make a person an admin", "admin", "%s is an admin", func(ctx context.Context, s admin.Service, name string) error {
			return s.SetAdmin(ctx, name, true)
		}),
		c.act("demote NAME", "make an admin a member", "member", "%s is a member", func(ctx context.Context, s admin.Service, name string) error {
			return s.SetAdmin(ctx, name, false)
		}),
		c.command(&cobra.Command{Use: "signout NAME", Args: cobra.ExactArgs(1), Short: "sign a person out of every browser; their clients stay connected"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					n, err := s.SignOut(ctx, args[0])
					if err != nil {
						return err
					}
					return c.answer(map[string]int{"sessions": n}, func() { c.printf("Ended %d sessions of %s.\n", n, args[0]) })
				})
			}
		}),
	}
}

// spaceAccountCommands are those of `satchel space` about whose it is.
func (c *call) spaceAccountCommands() []*cobra.Command {
	owner := func(fs *pflag.FlagSet) *admin.SpaceRequest {
		r := &admin.SpaceRequest{}
		fs.StringVar(&r.User, "user", "", "whose space: their `NAME` (default: the first admin's)")
		fs.StringVar(&r.Name, "space", "", "which space: its `NAME` (default: their first)")
		return r
	}
	return []*cobra.Command{
		c.command(&cobra.Command{Use: "create NAME", Args: cobra.ExactArgs(1), Short: "make a person a further space"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "whose space: their `NAME` (default: the first admin's)")
			return func(ctx context.Context, args []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					sp, err := s.CreateSpace(ctx, admin.SpaceRequest{User: *user, Name: args[0]})
					if err != nil {
						return err
					}
					return c.answer(sp, func() { c.printf("Made the space %s of %s.\n", sp.Name, sp.Owner) })
				})
			}
		}),
		c.command(&cobra.Command{Use: "give SPACE", Args: cobra.ExactArgs(1), Short: "make another person the owner of a space; the former owner becomes an editor", Long: `
SPACE is the name of a space of the person's, or the ID of any, from: satchel
space list. So a space gets an owner again whose owner was removed. Its remote is
removed, since the token was the former owner's: set one with satchel space
remote set.`}, func(fs *pflag.FlagSet) runner {
			to := fs.String("to", "", "the new owner's `NAME`")
			user := fs.String("user", "", "whose space it is: their `NAME` (default: the first admin's)")
			return func(ctx context.Context, args []string) error {
				if *to == "" {
					return usage("--to NAME is needed: who becomes the owner")
				}
				return c.admin(ctx, func(s admin.Service) error {
					sp, err := s.GiveSpace(ctx, admin.GiveRequest{SpaceRequest: admin.SpaceRequest{User: *user, Name: args[0]}, To: *to})
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
					rows, err := s.Members(ctx, *r)
					if err != nil {
						return err
					}
					return c.answer(orEmpty(rows), func() {
						table(c.Stdout, "NAME\tROLE\tSINCE", rows, func(m admin.Member) string {
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
				return c.done(ctx, "member", args[0], fmt.Sprintf("%s is a member, as %s", args[0], as), func(s admin.Service) error {
					return s.SetMember(ctx, admin.MemberRequest{SpaceRequest: *r, Member: args[0], Role: as})
				})
			}
		}),
		c.command(&cobra.Command{Use: "unshare NAME", Args: cobra.ExactArgs(1), Short: "end a membership; what their clients were given of the space ends at once"}, func(fs *pflag.FlagSet) runner {
			r := owner(fs)
			return func(ctx context.Context, args []string) error {
				return c.done(ctx, "removed", args[0], args[0]+" is no member any more", func(s admin.Service) error {
					return s.RemoveMember(ctx, admin.MemberRequest{SpaceRequest: *r, Member: args[0]})
				})
			}
		}),
	}
}
