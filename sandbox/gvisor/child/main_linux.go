package child

import (
	"fmt"
	"os"
	"strings"

	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"

	"satchel/sandbox/gvisor/child/filters"
	"satchel/sandbox/gvisor/link"
)

// Main runs the program and returns the exit status.
func Main() int {
	switch {
	case isRunsc(os.Args):
		slim()
		filters.Use()
		os.Args = showLimits(os.Args)
		// List only the commands with which gVisor starts itself, because runsc's own list
		// links unused programs.
		cli.Run(nil, map[util.SubCommand]string{new(sentrycmd.Boot): "", new(cmd.Gofer): "", new(sentrycmd.Umount): ""}, nil)
		return 0
	case len(os.Args) == 2 && os.Args[1] == link.ChildCommand:
		return ownSandboxes()
	case len(os.Args) == 2 && os.Args[1] == link.ProbeCommand:
		return 0
	}
	fmt.Fprintln(os.Stderr, "satchel-sandbox is started by the server only")
	return 2
}

// isRunsc reports whether gVisor started this process. gVisor starts itself only under
// these names and with these commands.
func isRunsc(args []string) bool {
	if len(args) < 2 {
		return false
	}
	var want []string
	switch args[0] {
	case "runsc-sandbox":
		want = []string{"boot"}
	case "runsc-gofer":
		want = []string{"gofer"}
	case "/proc/self/exe":
		want = []string{"umount", "gofer", "boot"}
	default:
		return false
	}
	// Global flags, all written as --name=value, come before the command.
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			continue
		}
		for _, w := range want {
			if a == w {
				return true
			}
		}
		return false
	}
	return false
}
