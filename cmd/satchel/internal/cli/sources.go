package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// aliasesUsage describes the flag for the aliases of a source.
const aliasesUsage = "other `NAMES` that people use for the source, separated by commas; a search with one of them finds the source first"

func (c *call) sourceCommand() *cobra.Command {
	return group("source", "publish directories of spaces, and follow upstreams",
		c.command(&cobra.Command{Use: "list", Args: cobra.NoArgs, Short: "list the published sources"}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", "only the sources that the person `NAME` may read")
			return func(ctx context.Context, _ []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					all, err := admin.Do(ctx, s, (*service.Service).ListSources, service.ListSourcesInput{User: *user})
					if err != nil {
						return err
					}
					return c.answer(orEmpty(all), func() { table(c.Stdout, "ID\tBY\tDIRECTORY\tFOR\tFILES\tSTATE\tTITLE", all, sourceRow) })
				})
			}
		}),
		c.command(&cobra.Command{Use: "publish ID", Args: cobra.ExactArgs(1), Short: "publish a directory of a space as a source, or change the source", Long: `
Others can then read it under /library/docs/ID, and search it. Each commit to the
directory updates the source. The ID is unique on the server. Without --for, everybody on the
server can read the source.`}, func(fs *pflag.FlagSet) runner {
			user := fs.String("user", "", whoseSpace)
			of := fs.String("space", "", "the `SPACE` (default: the person's first)")
			dir := fs.String("dir", "knowledge", "the `DIRECTORY` of the space")
			text := space.SourceText{}
			usage := map[string]string{
				"title":       "the `TITLE` that people see",
				"description": "a `SENTENCE` that says when an AI should look there",
				"aliases":     aliasesUsage,
			}
			for _, f := range text.Fields() {
				fs.StringVar(f.Text, f.Name, "", usage[f.Name])
			}
			readers := fs.StringSlice("for", nil, "the `NAMES` of its readers, separated by commas; everybody for all people; --for= for the owner alone (default: everybody)")
			memory := fs.Bool("with-memory", false, "include the space's memory")
			return func(ctx context.Context, args []string) error {
				in := service.PublishSourceInput{
					Space:  service.SpaceRef{User: *user, Name: *of},
					Source: space.Source{ID: args[0], SourceText: text, Dir: space.Path(*dir), Everybody: !c.flags.Changed("for")},
				}
				in.WithMemory = *memory
				for _, n := range *readers {
					switch n = strings.TrimSpace(n); n {
					case "":
					case "everybody", "everyone":
						in.Source.Everybody = true
					default:
						in.Readers = append(in.Readers, n)
					}
				}
				if in.Source.Everybody {
					in.Readers = nil
				}
				return c.admin(ctx, func(s admin.Service) error {
					x, err := admin.Do(ctx, s, (*service.Service).PublishSource, in)
					if fault.FieldOf(err) == space.SourceMemory {
						err = fault.New(fault.CodeOf(err), "%s To confirm it, add --with-memory.", fault.PublicOf(err))
					}
					if err != nil {
						return err
					}
					return c.answer(x, func() {
						c.printf("Published %s of %s as /library/docs/%s for %s.\n", printable(directory(x)), printable(x.Owner), x.ID, readersOf(x))
					})
				})
			}
		}),
		c.command(&cobra.Command{Use: "unpublish ID", Args: cobra.ExactArgs(1), Short: "unpublish a source, so that nobody can read it"}, func(*pflag.FlagSet) runner {
			return func(ctx context.Context, args []string) error {
				return c.admin(ctx, func(s admin.Service) error {
					if _, err := admin.Do(ctx, s, (*service.Service).UnpublishSource, service.UnpublishSourceInput{ID: args[0]}); err != nil {
						return err
					}
					return c.answer(struct{}{}, func() { c.printf("%s is no longer published.\n", args[0]) })
				})
			}
		}),
		c.sourceAdd(), c.sourceUpload(), c.sourceChange(), c.sourceSync(), c.sourceCancel(), c.sourcePause(true), c.sourcePause(false), c.sourceStatus(), c.sourceRemove(),
	)
}

func sourceRow(s space.Source) string {
	state := string(s.State)
	if s.Problem != "" {
		state += ": " + printable(s.Problem)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", s.ID, printable(s.Owner), printable(directory(s)), readersOf(s), s.Files, state, printable(s.Title))
}

func directory(s space.Source) string {
	if s.Upstream() {
		return string(s.Kind)
	}
	if s.Dir == "" {
		return "everything"
	}
	return string(s.Dir) + "/"
}

func readersOf(s space.Source) string {
	switch {
	case s.Everybody:
		return "everybody"
	case len(s.Readers) == 0:
		return "nobody else"
	}
	return printable(strings.Join(s.Readers, ","))
}
