package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"satchel/internal/config"
	"satchel/internal/fault"
)

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Env is what a run of the command line takes from outside.
type Env struct {
	Args    []string // without the program's name
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Terminal tells whether a person reads Stdout: only there is a secret
	// printed.
	Terminal bool
	// Watched tells whether a person reads Stderr: only there is progress shown.
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

// Main runs one command and returns its exit status. ctx ends when the
// operator interrupts.
func Main(ctx context.Context, env Env) int {
	err := run(ctx, env)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	}
	fmt.Fprintf(env.Stderr, "satchel: %s\n", operatorText(err))
	if isUsage(err) {
		return exitUsage
	}
	return exitError
}

// operatorText is what an operator is told: unlike a client, they may see the
// cause, but not twice.
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

// usageError is a mistake in the command's words: exit status 2.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

func usage(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// isUsage tells whether the command's words are wrong, be it the value of a
// flag that is a key of the configuration.
func isUsage(err error) bool {
	var u usageError
	var m config.Mistakes
	return errors.As(err, &u) || errors.As(err, &m) && m.OfFlags()
}

// command is one command, or a group of them.
type command struct {
	name  string
	args  string // after the flags, for help: "NAME", "SOURCE"
	short string // one line
	long  string // more, for --help; may be empty
	sub   []*command
	// setup adds the command's flags and returns what runs it.
	setup func(fs *pflag.FlagSet) runner
	// positional is how many arguments it needs, and optional how many more it
	// takes.
	positional, optional int
}

// runner does a command's work. args are the positional ones.
type runner func(ctx context.Context, c *call, args []string) error

// call is one command being run.
type call struct {
	Env
	json  bool
	flags *pflag.FlagSet
}

// load reads the configuration with the flags that were given.
func (c *call) load() (*config.Config, error) {
	return config.Load(config.Source{Flags: c.flags, Environ: c.Environ, SystemFile: config.SystemFile})
}

func (c *call) printf(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.Stdout, format, args...)
	}
}

// note tells a person something beside the answer.
func (c *call) note(format string, args ...any) { fmt.Fprintf(c.Stderr, format, args...) }

// answer prints the one JSON value of --json, or calls plain.
func (c *call) answer(v any, plain func()) error {
	if !c.json {
		plain()
		return nil
	}
	enc := json.NewEncoder(c.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func commands() *command {
	return &command{
		name:  "satchel",
		short: "one memory and body of knowledge for all your AI clients",
		sub: []*command{
			serveCommand(), stdioCommand(), doctorCommand(), loginLinkCommand(), userCommand(), inviteCommand(), tokenCommand(), clientCommand(), grantCommand(),
			authCommand(), auditCommand(), spaceCommand(), sourceCommand(), searchCommand(), apiCommand(), reindexCommand(), evalCommand(), versionCommand(),
		},
	}
}

func run(ctx context.Context, env Env) error {
	cmd, path := commands(), "satchel"
	args := env.Args
	if len(args) == 1 && args[0] == "--version" {
		args = []string{"version"}
	}
	for cmd.sub != nil {
		if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
			if len(args) > 1 && args[0] == "help" {
				args = append(args[1:], "--help")
				continue
			}
			printGroup(env.Stdout, cmd, path)
			if len(args) == 0 {
				return usage("name a command, such as: %s %s", path, cmd.sub[0].name)
			}
			return nil
		}
		if strings.HasPrefix(args[0], "-") {
			return usage("flags come after the command, such as: %s %s %s", path, cmd.sub[0].name, args[0])
		}
		next := find(cmd, args[0])
		if next == nil {
			return usage("%q is not a command of %s%s; see: %s --help", args[0], path, meant(cmd, path, args[0]), path)
		}
		cmd, path, args = next, path+" "+next.name, args[1:]
	}
	fs := pflag.NewFlagSet(path, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	c := &call{Env: env, flags: fs}
	run := cmd.setup(fs)
	c.commonFlags(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			printCommand(env.Stdout, cmd, path, fs)
			return err
		}
		what, _, _ := strings.Cut(err.Error(), ": strconv.") // which no operator knows
		return usage("%s%s; see: %s --help", what, meantFlag(fs, err), path)
	}
	if n := fs.NArg(); n < cmd.positional || n > cmd.positional+cmd.optional {
		return usage("use it so: %s; see: %s --help", synopsis(cmd, path), path)
	}
	return run(ctx, c, fs.Args())
}

// commonFlags are those that every command takes.
func (c *call) commonFlags(fs *pflag.FlagSet) {
	config.AddFlags(fs)
	fs.BoolVar(&c.json, "json", false, "print one JSON value and nothing else")
}

func find(group *command, name string) *command {
	for _, c := range group.sub {
		if c.name == name {
			return c
		}
	}
	return nil
}

func synopsis(cmd *command, path string) string {
	return strings.TrimSpace(path + " " + cmd.args)
}

// groupWidth is how many characters the names of commands take in an overview.
const groupWidth = 27

// overviewWidth is how many characters a line of names may have in an overview.
const overviewWidth = 100

// wrapped joins the names of a group's commands and breaks long lines. room is how
// many characters the first line has left.
func wrapped(names []string, room int) string {
	var b strings.Builder
	for i, n := range names {
		sep := "|"
		if i == 0 {
			sep = " "
		}
		if room -= len(sep + n); room < 0 {
			sep += "\n      "
			room = overviewWidth - len(sep+n)
		}
		b.WriteString(sep + n)
	}
	return b.String()
}

func printGroup(w io.Writer, group *command, path string) {
	fmt.Fprintf(w, "%s: %s\n\n", path, group.short)
	for _, c := range group.sub {
		name := c.name
		if c.sub != nil {
			var names []string
			for _, s := range c.sub {
				names = append(names, s.name)
			}
			name += wrapped(names, overviewWidth-len("  "+name))
		}
		if len(name) > groupWidth { // the text has its place on a line of its own
			name += fmt.Sprintf("\n  %*s", groupWidth, "")
		}
		fmt.Fprintf(w, "  %-*s  %s\n", groupWidth, name, c.short)
	}
	fmt.Fprintf(w, "\n%s COMMAND --help says more.\n", path)
}

func printCommand(w io.Writer, cmd *command, path string, fs *pflag.FlagSet) {
	fmt.Fprintf(w, "%s: %s\n", synopsis(cmd, path+" [flags]"), cmd.short)
	if cmd.long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(cmd.long))
	}
	fmt.Fprintf(w, "\n%s", fs.FlagUsages())
}
