package cli

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"satchel/cmd/satchel/internal/admin"
)

func spaceCommand() *command {
	return &command{name: "space", short: "spaces", sub: []*command{
		{name: "list", short: "list the spaces",
			setup: func(fs *pflag.FlagSet) runner {
				user := fs.String("user", "", "only this person's")
				return func(ctx context.Context, c *call, _ []string) error {
					return c.admin(ctx, func(s admin.Service) error {
						spaces, err := s.Spaces(ctx, *user)
						if err != nil {
							return err
						}
						return c.answer(orEmpty(spaces), func() {
							table(c.Stdout, "NAME\tOWNER\tHEAD\tREPOSITORY", spaces, func(s admin.SpaceInfo) string {
								return fmt.Sprintf("%s\t%s\t%s\t%s", s.Name, s.Owner, s.Head.Short(), s.Repository)
							})
						})
					})
				}
			}},
		{name: "import", args: "SOURCE", positional: 1, short: "fill a space from a git URL, a git repository or a directory",
			long: `
SOURCE is read here, with your rights and your git configuration; the server
gets its content alone. A git repository comes with its history where the space
is still as it began; else its files are added in one commit, and where both
sides have a file both versions are kept.`,
			setup: func(fs *pflag.FlagSet) runner {
				user := fs.String("user", "", "whose space it is (default: the first admin)")
				return func(ctx context.Context, c *call, args []string) error {
					return importSource(ctx, c, *user, args[0])
				}
			}},
	}}
}

func importSource(ctx context.Context, c *call, user, arg string) error {
	src := source{arg: arg, environ: c.Environ, stdin: c.Stdin, log: c.Stderr}
	if err := src.check(); err != nil {
		return err
	}
	cfg, err := c.existing()
	if err != nil {
		return err
	}
	// A clone may take long, so the data directory is not taken before.
	kind, stream, err := src.open(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	var res admin.ImportResult
	err = c.adminIn(ctx, cfg, func(s admin.Service) (err error) {
		res, err = s.Import(ctx, admin.ImportRequest{User: user, Kind: kind, Source: sourceName(arg)}, stream, func(p string) {
			c.note("%s\n", p)
		})
		return err
	})
	if err != nil {
		return err
	}
	return c.answer(res, func() {
		c.printf("Imported %d files; the space is now at %s.\n", res.Files, res.Commit.Short())
		for _, r := range res.Refused {
			c.printf("Left out %q: %s\n", r.Path, r.Why)
		}
		for _, p := range res.Conflicts {
			c.printf("Both sides had %q: both versions were kept.\n", p)
		}
	})
}

// sourceName is what a commit message may say of a source: a URL without the
// credentials that people put into them, or a directory's last name.
func sourceName(arg string) string {
	if !isURL(arg) {
		if abs, err := filepath.Abs(arg); err == nil {
			arg = abs
		}
		return filepath.Base(arg)
	}
	if u, err := url.Parse(arg); err == nil && u.Host != "" {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		return u.String()
	}
	if !strings.Contains(arg, "://") { // git@host:path
		return arg[strings.IndexByte(arg, '@')+1:]
	}
	return "a git repository"
}
