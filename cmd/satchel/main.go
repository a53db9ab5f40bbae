// Command satchel is the one binary of Satchel: the server, its command line,
// the sandbox runtime and the agent inside every sandbox.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"satchel/cmd/satchel/internal/cli"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
)

// Set by scripts/build.
var (
	version = "devel"
	commit  = "unknown"
)

func main() {
	dispatch()
	os.Exit(run())
}

// dispatch does not return where this process was started to be a part of a
// sandbox. The same binary runs inside one and around it, and looks at its
// arguments for that before anything else may.
func dispatch() {
	if len(os.Args) == 2 && os.Args[1] == agent.Command {
		os.Exit(agent.Serve(os.Stdin, os.Stdout))
	}
	gvisor.Dispatch()
}

// run runs the command line and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Whoever interrupts a second time does not want to wait for an orderly end.
	context.AfterFunc(ctx, stop)
	// A reader of standard output or error that has gone is an error like any
	// other; the signal would end a server in the middle of its work.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return cli.Main(ctx, cli.Env{
		Args:       os.Args[1:],
		Environ:    os.Environ(),
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Terminal:   term.IsTerminal(int(os.Stdout.Fd())),
		Watched:    term.IsTerminal(int(os.Stderr.Fd())),
		Executable: exe,
		Version:    cli.Version{Version: version, Commit: commit, Go: runtime.Version(), GVisor: moduleVersion("gvisor.dev/gvisor")},
	})
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "none"
}
