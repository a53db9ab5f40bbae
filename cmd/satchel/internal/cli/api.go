package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/server"
	apiclient "satchel/web/client"
)

// apiFlags are the flags that name a server and an API key.
type apiFlags struct{ url, keyFile string }

func (f *apiFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "url", "", "the server's `URL` (default: that of the data directory)")
	fs.StringVar(&f.keyFile, "key-file", "", "the `FILE` with an API key; - for standard input (default: the first admin's key file, if there is one)")
}

const apiHelp = `
The command uses the REST API of a server, which can be on another machine. Make a
key on the server's account page, or with "satchel token create".`

func (c *call) apiCommand() *cobra.Command {
	return group("api", "search, read and run commands over a server's library, by its REST API",
		c.overAPI(&cobra.Command{Use: "search QUERY", Args: cobra.MinimumNArgs(1), Short: "search the library", Long: `
QUERY can be several words, without quotes around all of them.`}, func(fs *pflag.FlagSet) apiRunner {
			var q apiclient.Query
			fs.IntVar(&q.Limit, "limit", 0, "at most `N` results")
			fs.StringVar(&q.Source, "source", "", "only from this `SOURCE`")
			fs.StringVar(&q.Since, "since", "", "only pages that changed since the `DAY`, such as 2026-01-31")
			fs.StringSliceVar(&q.Paths, "path", nil, "only at or under this `PATH` of the library (may be repeated)")
			return func(ctx context.Context, api *apiclient.Client, args []string) error {
				q.Query = strings.Join(args, " ")
				found, err := api.Search(ctx, q)
				if err != nil {
					return err
				}
				return c.answer(found, func() { printResults(c.Stdout, found) })
			}
		}),
		c.overAPI(&cobra.Command{Use: "read PATH…", Args: cobra.MinimumNArgs(1), Short: "print files of the library, or list its directories", Long: `
PATH is a file (docs/nuxt/guide.md), lines of it (…md:120-180), a section
(…md#heading), a directory (docs/nuxt/) or a glob (docs/**/*.md).`}, func(*pflag.FlagSet) apiRunner {
			return func(ctx context.Context, api *apiclient.Client, args []string) error {
				files, err := api.Read(ctx, args...)
				if err != nil {
					return err
				}
				if err := c.answer(struct {
					Files []apiclient.File `json:"files"`
				}{files}, func() { printRead(c, files) }); err != nil {
					return err
				}
				for _, f := range files {
					if f.Error != nil {
						return errors.New(oneLine(f.Error.Message))
					}
				}
				return nil
			}
		}),
		c.overAPI(&cobra.Command{Use: "shell COMMAND…", Args: cobra.MinimumNArgs(1), Short: "run commands over the library, in a sandbox on the server", Long: `
Each COMMAND is a bash script; several run in order. The library is read-only. /tmp
stays between calls as long as the sandbox does: see --session. The command exits
with 1 if a COMMAND failed.`}, func(fs *pflag.FlagSet) apiRunner {
			session := fs.String("session", "", "the `NAME` of a sandbox to keep; it ends 30 minutes after its last command")
			return func(ctx context.Context, api *apiclient.Client, args []string) error {
				r, err := api.InSession(*session).Shell(ctx, args...)
				if err != nil {
					return err
				}
				if err := c.answer(r, func() { printRan(c, r) }); err != nil {
					return err
				}
				return ranError(r)
			}
		}),
		c.overAPI(&cobra.Command{Use: "sources", Args: cobra.NoArgs, Short: "list the sources of the library"}, func(*pflag.FlagSet) apiRunner {
			return func(ctx context.Context, api *apiclient.Client, _ []string) error {
				list, err := api.Sources(ctx)
				if err != nil {
					return err
				}
				return c.answer(struct {
					Sources []apiclient.Source `json:"sources"`
				}{list}, func() { printSources(c, list) })
			}
		}),
		c.overAPI(&cobra.Command{Use: "sync [SOURCE]", Args: cobra.MaximumNArgs(1), Short: "update a source of the library, or all of them"}, func(*pflag.FlagSet) apiRunner {
			return func(ctx context.Context, api *apiclient.Client, args []string) error {
				source := ""
				if len(args) > 0 {
					if source = args[0]; source == "" {
						return usage("the name of the source is empty")
					}
				}
				runs, err := api.Sync(ctx, source, apiclient.SyncOptions{})
				if err != nil {
					return err
				}
				if err := c.answer(struct {
					Runs []apiclient.Run `json:"runs"`
				}{runs}, func() {
					for _, r := range runs {
						c.printf("%-24s %s  %s\n", oneLine(r.Source), oneLine(r.State), oneLine(r.Problem))
					}
				}); err != nil {
					return err
				}
				for _, r := range runs {
					if r.State == "failed" {
						return errors.New("a source could not be brought up to date")
					}
				}
				return nil
			}
		}),
	)
}

type apiRunner func(ctx context.Context, api *apiclient.Client, args []string) error

// overAPI completes cmd as a command that uses a client of the REST API.
func (c *call) overAPI(cmd *cobra.Command, setup func(fs *pflag.FlagSet) apiRunner) *cobra.Command {
	cmd.Long = strings.TrimSuffix(cmd.Long, "\n") + apiHelp
	return c.command(cmd, func(fs *pflag.FlagSet) runner {
		var f apiFlags
		f.add(fs)
		run := setup(fs)
		return func(ctx context.Context, args []string) error {
			api, err := f.client(ctx, c)
			if err != nil {
				return err
			}
			defer api.Close()
			return apiError(run(ctx, api, args))
		}
	})
}

// apiError converts an error of the REST API's client to a fault. Most codes of that client are
// also codes of faults.
func apiError(err error) error {
	e, ok := errors.AsType[*apiclient.Error](err)
	if !ok {
		return err
	}
	code := fault.Code(e.Code)
	switch e.Code {
	case apiclient.CodeNetwork:
		code = fault.Unavailable
	case "method_not_allowed", "unsupported_media_type", "request_timeout":
		code = fault.Invalid
	}
	f := fault.Wrap(err, code, "%s", e.Message)
	f.RetryAfter = e.RetryAfter
	return f
}

// maxKeyFile is how many bytes of a file with a key are read. The signed tokens of large
// organizations, which are also accepted as keys, can have a few thousand bytes.
const maxKeyFile = 32 << 10

func (f *apiFlags) client(ctx context.Context, c *call) (*apiclient.Client, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	if f.url == "" {
		f.url = running(ctx, cfg)
	}
	var in io.Reader = c.Stdin
	if f.keyFile != "-" {
		name := f.keyFile
		if name == "" {
			name = filepath.Join(cfg.DataDir, keyFile)
		}
		file, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) && f.keyFile == "" {
			return nil, usage("name the file of an API key with --key-file")
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "The key cannot be read (%s).", err)
		}
		defer file.Close()
		in = file
	}
	key, err := io.ReadAll(io.LimitReader(in, maxKeyFile))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The key cannot be read (%s).", err)
	}
	api, err := apiclient.New(apiclient.Options{URL: f.url, Key: string(key), UserAgent: "satchel/" + c.Version.Version})
	return api, apiError(err)
}

// running returns the address of the server that runs on the data directory of cfg. It asks that
// server, whose flags or environment may have set another address than cfg. If no server runs,
// running returns the configured address.
func running(ctx context.Context, cfg *config.Config) string {
	remote, err := admin.Dial(ctx, server.SocketPath(cfg.DataDir))
	if err != nil {
		return server.PagesURL(cfg) // no server runs, or the server belongs to another user
	}
	info, err := remote.Info(ctx)
	if err = errors.Join(err, remote.Close()); err != nil || info.URL == "" {
		return server.PagesURL(cfg)
	}
	return info.URL
}

func printResults(w io.Writer, found apiclient.Results) {
	for _, r := range found.Results {
		place := printable(r.Path)
		if r.Lines != "" {
			place += ":" + oneLine(r.Lines)
		}
		fmt.Fprintf(w, "%s  %s\n", place, oneLine(r.Title))
		for line := range strings.Lines(r.Snippet) {
			fmt.Fprintln(w, strings.TrimRight("    "+printableText(line), " \n"))
		}
		fmt.Fprintln(w)
	}
	for _, n := range found.Notes {
		fmt.Fprintln(w, oneLine(n))
	}
	if n := len(found.Results); found.Total > n {
		fmt.Fprintf(w, "The best %d of %s.\n", n, pages(found.Total))
	} else {
		fmt.Fprintf(w, "%s.\n", pages(n))
	}
}

func printRead(c *call, files []apiclient.File) {
	for _, f := range files {
		if len(files) > 1 && f.Error == nil {
			c.printf("== %s\n", oneLine(f.Path))
		}
		c.printf("%s", printableText(f.Content))
		if f.Content != "" && !strings.HasSuffix(f.Content, "\n") {
			c.printf("\n")
		}
		if f.Next != "" {
			c.note("There is more: read %s\n", oneLine(f.Next))
		}
		if f.Error != nil && len(files) > 1 {
			c.note("%s: %s\n", oneLine(f.Path), oneLine(f.Error.Message))
		}
	}
}

// printableText returns a text of several lines without the characters that could control a
// terminal.
func printableText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, s)
}

func printRan(c *call, r apiclient.ShellResults) {
	for _, ran := range r.Results {
		c.printf("%s", printableText(ran.Stdout))
		c.note("%s", printableText(ran.Stderr))
		for _, n := range ran.Notes {
			c.note("[%s]\n", oneLine(n))
		}
	}
}

// ranError returns the error of the whole request, or else one that names the first command that
// failed. It returns nil if everything succeeded.
func ranError(r apiclient.ShellResults) error {
	if r.Error != nil {
		return errors.New(oneLine(r.Error.Message))
	}
	for i, ran := range r.Results {
		switch {
		case ran.End != "exited":
			return fmt.Errorf("command %d did not end by itself: %s", i+1, oneLine(ran.End))
		case ran.ExitCode != 0:
			return fmt.Errorf("command %d exited with %d", i+1, ran.ExitCode)
		}
	}
	return nil
}

func printSources(c *call, list []apiclient.Source) {
	for _, s := range list {
		age := "nothing yet"
		files := "files"
		if s.Files == 1 {
			files = "file"
		}
		if s.Age != nil {
			age = (time.Duration(*s.Age) * time.Second).String() + " ago"
		}
		c.printf("%-24s %-8s %6d %s, %s  %s\n", oneLine(s.ID), oneLine(s.State), s.Files, files, age, oneLine(s.Label))
		if s.Problem != "" {
			c.printf("    %s\n", oneLine(s.Problem))
		}
	}
	if len(list) == 0 {
		c.printf("The library is empty.\n")
	}
}
