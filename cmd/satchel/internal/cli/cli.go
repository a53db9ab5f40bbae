package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/server"
)

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Env is the environment of one run of the command line.
type Env struct {
	Args    []string // without the program's name
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Terminal reports whether a person reads Stdout. Only then does serve print a sign-in link.
	Terminal bool
	// Watched reports whether a person reads Stderr. Only then is progress shown.
	Watched bool
	// Executable is this program's path, for configurations that start it.
	Executable string
	Version    Version
}

// Version is what this binary was built from.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	GVisor  string `json:"gvisor"`
}

// Main runs one command and returns its exit status. ctx ends when the operator interrupts the
// program.
func Main(ctx context.Context, env Env) int {
	c := &call{Env: env}
	err := c.root().ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(env.Stderr, "satchel: %s\n", operatorText(err))
	if isUsage(err) {
		return exitUsage
	}
	return exitError
}

// operatorText returns the text of an error for operators. Unlike clients, operators may see the
// cause of an internal error.
func operatorText(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		if f.Code == fault.Canceled {
			return "Interrupted."
		}
		if f.Code == fault.Internal && f.Err != nil {
			return f.Error()
		}
		return f.Public
	}
	if errors.Is(err, context.Canceled) {
		return "Interrupted."
	}
	return err.Error()
}

// usageError is a mistake in the command line. The exit status is then 2.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

func usage(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// isUsage reports whether err is a mistake in the command line. A wrong value of a flag that sets
// a configuration key is such a mistake too.
func isUsage(err error) bool {
	var u usageError
	var m config.Mistakes
	return errors.As(err, &u) || errors.As(err, &m) && m.OfFlags()
}

// runner does a command's work. args are the positional arguments.
type runner func(ctx context.Context, args []string) error

// call is one command being run.
type call struct {
	Env
	json  bool
	flags *pflag.FlagSet
}

// load reads the configuration with the flags that were given.
func (c *call) load() (*config.Config, error) {
	return config.Load(config.Source{Flags: c.flags, Environ: c.Environ, SystemFile: config.SystemFile, CheckSource: server.CheckSource})
}

func (c *call) printf(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.Stdout, format, args...)
	}
}

// note prints a note for people on standard error, so that it does not mix with the answer.
func (c *call) note(format string, args ...any) { fmt.Fprintf(c.Stderr, format, args...) }

// answer prints v as JSON if --json is given. Otherwise it calls plain, which prints text.
func (c *call) answer(v any, plain func()) error {
	if !c.json {
		plain()
		return nil
	}
	enc := json.NewEncoder(c.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// root returns the root command, which contains all other commands.
func (c *call) root() *cobra.Command {
	cobra.EnableCommandSorting = false // commands stand in the order in which people need them
	root := group("satchel", "one memory and body of knowledge for all your AI clients",
		c.serveCommand(), c.stdioCommand(), c.doctorCommand(), c.loginLinkCommand(), c.userCommand(), c.inviteCommand(), c.tokenCommand(), c.clientCommand(), c.grantCommand(),
		c.authCommand(), c.auditCommand(), c.spaceCommand(), c.sourceCommand(), c.memoryCommand(), c.searchCommand(), c.apiCommand(), c.integrationCommand(), c.reindexCommand(), c.evalCommand(), c.manCommand(), c.versionCommand(),
	)
	root.SilenceErrors, root.SilenceUsage, root.DisableAutoGenTag = true, true, true
	root.Version = c.Version.text()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpTemplate("{{.CommandPath}}: {{.Short}}\n{{with .Long}}\n{{trimTrailingWhitespaces .}}\n{{end}}\n{{.UsageString}}")
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error { return help(cmd.Root(), args) },
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		what, _, _ := strings.Cut(err.Error(), ": strconv.") // strconv means nothing to an operator
		return usage("%s%s; see: %s --help", what, meantFlag(cmd.Flags(), err), cmd.CommandPath())
	})
	common := root.PersistentFlags()
	common.SortFlags = false
	config.AddFlags(common)
	common.BoolVar(&c.json, "json", false, "print one JSON value and nothing else")
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	root.SetArgs(append([]string{}, c.Args...)) // for nil, cobra reads os.Args
	return root
}

// command completes cmd. setup adds the flags and returns the function that runs the command.
func (c *call) command(cmd *cobra.Command, setup func(*pflag.FlagSet) runner) *cobra.Command {
	cmd.Flags().SortFlags = false
	run, fits := setup(cmd.Flags()), cmd.Args
	cmd.Long = strings.TrimSpace(cmd.Long)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if fits(cmd, args) != nil {
			return usage("usage: %s; see: %s --help", strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.flags = cmd.Flags()
		return run(cmd.Context(), args)
	}
	return cmd
}

// group returns a command that does nothing without one of its subcommands.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: name + " COMMAND", Short: short, Args: cobra.ArbitraryArgs}
	g.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return errors.Join(cmd.Help(), usage("name a command, such as: %s", commands[0].CommandPath()))
		case args[0] == "help":
			return help(cmd, args[1:])
		}
		return unknown(cmd, args[0])
	}
	g.AddCommand(commands...)
	return g
}

// help prints the help of a command. words is the path of the command below group.
func help(group *cobra.Command, words []string) error {
	cmd, rest, err := group.Find(words)
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() && len(rest) > 0 {
		return unknown(cmd, rest[0])
	}
	return cmd.Help()
}

func unknown(group *cobra.Command, word string) error {
	path := group.CommandPath()
	return usage("%q is not a command of %s%s; see: %s --help", word, path, meant(group, word), path)
}
