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
	// The same binary is what runs inside a sandbox and around it; these look
	// at the arguments before anything else may.
	if len(os.Args) == 2 && os.Args[1] == agent.Command {
		os.Exit(agent.Serve(os.Stdin, os.Stdout))
	}
	gvisor.Dispatch()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx)
	stop()
	os.Exit(code)
}

func run(ctx context.Context) int {
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
