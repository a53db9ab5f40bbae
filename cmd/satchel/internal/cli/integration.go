package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/integrations"
	"satchel/internal/fault"
)

// integration describes an integration in the JSON that scripts read.
type integration struct {
	Client    string   `json:"client"`
	Name      string   `json:"name"`
	About     string   `json:"about"`
	Files     []string `json:"files"`
	Directory string   `json:"directory,omitempty"` // the directory of the written files
	Install   string   `json:"install,omitempty"`   // the shell command that installs them
}

func (c *call) integrationCommand() *cobra.Command {
	return c.command(&cobra.Command{Use: "integration [CLIENT]", Args: cobra.MaximumNArgs(1), Short: "write the files with which a client recalls and saves without being asked", Long: `
Without CLIENT, the command lists the clients. The file README.md says how to install the
files. They contain the MCP address of the server, and no key.`}, func(fs *pflag.FlagSet) runner {
		url := fs.String("url", "", "the MCP `URL` of the server (default: the server on the data directory)")
		out := fs.String("out", "", "write the files to `DIR` (default: CLIENT in the current directory)")
		return func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				if *url != "" || *out != "" {
					return usage("--url and --out are for the files of a client: name a CLIENT")
				}
				return c.listIntegrations()
			}
			mcp := *url
			if mcp == "" {
				cfg, err := c.load()
				if err != nil {
					return err
				}
				mcp = strings.TrimSuffix(running(ctx, cfg), "/mcp") + "/mcp"
			}
			all, err := integrations.For(mcp)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(x integrations.Client) bool { return x.Slug == args[0] })
			if i < 0 {
				return fault.New(fault.NotFound, "There is no integration for %q. To list the clients, run: satchel integration", args[0])
			}
			return c.writeIntegration(all[i], cmp.Or(*out, args[0]))
		}
	})
}

func integrationOf(x integrations.Client) integration {
	v := integration{Client: x.Slug, Name: x.Name, About: strings.Join(strings.Fields(x.About), " ")}
	for _, f := range x.Files {
		v.Files = append(v.Files, f.Path)
	}
	return v
}

func (c *call) listIntegrations() error {
	all, err := integrations.For(integrations.ExampleURL)
	if err != nil {
		return err
	}
	list := make([]integration, len(all))
	for i, x := range all {
		list[i] = integrationOf(x)
	}
	return c.answer(list, func() {
		table(c.Stdout, "CLIENT\tNAME\tFILES", list, func(v integration) string { return v.Client + "\t" + v.Name + "\t" + strings.Join(v.Files, " ") })
	})
}

// writeIntegration writes the files of an integration that do not exist yet. It writes none if
// a file exists with other content. The os.Root prevents writes outside the directory.
func (c *call) writeIntegration(x integrations.Client, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	cannot := func(path string, err error) error {
		return fault.Wrap(err, fault.Invalid, "%s cannot be written (%s). Choose another directory with --out.", printable(path), oneLine(err.Error()))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cannot(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cannot(dir, err)
	}
	defer root.Close()
	var missing []integrations.File
	for _, f := range x.Files {
		name := filepath.FromSlash(f.Path)
		path := filepath.Join(dir, name)
		if up, err := root.Lstat(filepath.Dir(name)); err == nil && !up.IsDir() {
			return fault.New(fault.Conflict, "%s is not a directory. Nothing was written. Choose another directory with --out.", printable(filepath.Dir(path)))
		}
		switch info, err := root.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
			continue
		case err != nil:
			return cannot(path, err)
		case !info.Mode().IsRegular():
			return fault.New(fault.Conflict, "%s is not a file. Nothing was written. Choose another directory with --out.", printable(path))
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return cannot(path, err)
		}
		if string(data) != f.Content {
			return fault.New(fault.Conflict, "%s has other content. Nothing was written. Remove the file, or choose another directory with --out.", printable(path))
		}
	}
	for _, f := range missing {
		name := filepath.FromSlash(f.Path)
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o755), root.WriteFile(name, []byte(f.Content), 0o644)); err != nil {
			return cannot(filepath.Join(dir, name), err)
		}
	}
	v := integrationOf(x)
	v.Directory, v.Install = dir, x.Install(shellQuote(dir))
	return c.answer(v, func() {
		for _, f := range v.Files {
			c.printf("%s\n", printable(filepath.Join(dir, filepath.FromSlash(f))))
		}
		if v.Install != "" {
			c.note("Install them with:\n  %s\n", printableText(v.Install))
		} else {
			c.note("%s says how to install them.\n", printable(filepath.Join(dir, "README.md")))
		}
	})
}
