package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
)

func (c *call) memoryCommand() *cobra.Command {
	return group("memory", "list, set, forget, audit and import the memory of a space", c.memoryListCommand(), c.memorySetCommand(), c.memoryForgetCommand(), c.memoryAuditCommand(), c.memoryImportCommand())
}

func (c *call) memoryListCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the facts of a space", Long: `
The list includes the files under memory/ that are not valid facts, with the reason.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		return func(ctx context.Context, _ []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				list, err := admin.Do(ctx, s, (*service.Service).ListFacts, service.ListFactsInput{Space: spaceNamed(*user)})
				if err != nil {
					return err
				}
				return c.answer(list, func() {
					table(c.Stdout, "FACT\tORIGIN\tTOOL\tCONFIRMED\tVALUE", list.Facts, factRow)
					if list.Left > 0 {
						c.printf("%d more files under memory/ are not listed.\n", list.Left)
					}
				})
			})
		}
	})
}

func (c *call) memoryAuditCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "audit", Args: cobra.NoArgs, Short: "list the facts to merge, correct or forget", Long: `
The audit finds files that are not facts, facts with the same key or a similar value, expired
facts, and facts that an AI inferred, if their confidence is below 0.5 or nothing has confirmed
them for a year. It changes nothing.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		return func(ctx context.Context, _ []string) error {
			return c.admin(ctx, func(s admin.Service) error {
				found, err := admin.Do(ctx, s, (*service.Service).AuditMemory, service.AuditMemoryInput{Space: spaceNamed(*user)})
				if err != nil {
					return err
				}
				return c.answer(found, func() {
					for _, f := range found.Findings {
						c.printf("%s\n", f.Advice)
						for _, x := range f.Facts {
							origin := ""
							if text := x.Attribution(); text != "" {
								origin = " (" + oneLine(text) + ")"
							}
							c.printf("  %s: %s%s\n", printable(x.Name()), oneLine(strings.ReplaceAll(cmp.Or(x.Problem, x.Value), "\n", " ")), origin)
						}
						if f.Left > 0 {
							c.printf("  and %d more\n", f.Left)
						}
					}
					c.printf("%s, %s\n", plural(int64(found.Facts), "fact"), plural(int64(len(found.Findings)+found.Left), "finding"))
				})
			})
		}
	})
}

func factRow(f service.MemoryFact) string {
	origin, value := cmp.Or(f.Attribution(), "unknown"), f.Value
	switch {
	case f.Problem != "":
		origin, value = "invalid", f.Problem
	case f.Expired:
		origin += " (expired)"
	}
	return strings.Join([]string{printable(f.Name()), oneLine(origin), oneLine(f.Tool), f.Confirmed, oneLine(strings.ReplaceAll(value, "\n", " "))}, "\t")
}

func (c *call) memorySetCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "set TYPE/KEY VALUE", Args: cobra.ExactArgs(2), Short: "save a fact, as said by the user", Long: `
The fact replaces any fact with the same type and key, such as preference/seat.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		expires := fs.String("expires", "", "the last `DAY` on which the fact is true, such as 2027-01-31")
		return func(ctx context.Context, args []string) error {
			kind, key, ok := strings.Cut(args[0], "/")
			if !ok {
				return usage("name the fact as TYPE/KEY, such as: satchel memory set preference/seat \"Prefers window seats\"")
			}
			return c.admin(ctx, func(s admin.Service) error {
				done, err := admin.Do(ctx, s, (*service.Service).Remember, service.RememberInput{
					Space: spaceNamed(*user), Facts: []facts.Statement{{Type: kind, Key: key, Value: args[1], Explicit: true, Expires: *expires}},
				})
				if err != nil {
					return err
				}
				f := done.Facts[0]
				switch f.Outcome {
				case facts.Invalid:
					return fault.New(fault.Conflict, "%s", f.Why)
				case facts.Refused:
					return fault.New(fault.Invalid, "%s", f.Why)
				}
				return c.answer(done, func() {
					c.printf("%s: %s\n", printable(f.Name()), f.Outcome)
					for _, x := range f.Alike {
						c.printf("Compare %s: %s\n", printable(x.Name()), oneLine(x.Value))
					}
					for _, w := range done.Warnings {
						c.printf("Warning: %s: %s\n", printable(w.Path), oneLine(w.Why))
					}
				})
			})
		}
	})
}

func (c *call) memoryForgetCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "forget [TYPE/KEY]...", Args: cobra.ArbitraryArgs, Short: "remove facts", Long: `
Name a file that is not a valid fact by its path under memory/.
The history of the space keeps what is removed.`}, func(fs *pflag.FlagSet) runner {
		user := fs.String("user", "", whoseSpace)
		query := fs.String("query", "", "remove the facts that contain all `WORDS`, 20 at most")
		return func(ctx context.Context, args []string) error {
			if (len(args) > 0) == (*query != "") {
				return usage("name the facts, such as: satchel memory forget preference/seat; or give --query")
			}
			return c.admin(ctx, func(s admin.Service) error {
				done, err := admin.Do(ctx, s, (*service.Service).Forget, service.ForgetInput{Space: spaceNamed(*user), Keys: args, Paths: true, Query: *query})
				if err != nil {
					return err
				}
				if len(done.Removed) == 0 && *query != "" {
					return fault.New(fault.NotFound, "No fact contains all these words.")
				}
				if len(done.Removed) == 0 {
					return fault.New(fault.NotFound, "There is no fact %s.", printable(strings.Join(done.Missing, ", ")))
				}
				return c.answer(done, func() {
					for _, f := range done.Removed {
						c.printf("Removed %s\n", printable(f.Name()))
					}
					for _, k := range done.Missing {
						c.printf("There is no fact %s.\n", printable(k))
					}
				})
			})
		}
	})
}
