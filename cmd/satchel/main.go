// Command satchel is the one binary of Satchel: the server and its command line,
// with the sandbox programs embedded.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/term"

	"satchel/cmd/satchel/internal/cli"
)

// The script scripts/build sets these variables.
var (
	version = "devel"
	commit  = "unknown"
	gvisor  = "unknown" // the version of gVisor in the embedded sandbox programs
)

func main() { os.Exit(run()) }

// run runs the command line and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal, restore the default handling, so that a second signal ends the
	// process at once.
	context.AfterFunc(ctx, stop)
	// With this handler, writing to a closed standard output or error returns an error. Without
	// it, SIGPIPE would end a server in the middle of its work.
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
		Version:    cli.Version{Version: version, Commit: commit, Go: runtime.Version(), GVisor: gvisor},
	})
}
