package gvisor

import (
	"os"
	"strings"

	"gvisor.dev/gvisor/runsc/cli/maincli"
)

// childCommand is the first argument with which the binary becomes the owner
// of the containers. Only a Runtime starts it.
const childCommand = "runtime"

// probeCommand makes the binary end at once: Check starts it in new namespaces to find out
// whether they are allowed.
const probeCommand = "runtime-probe"

// Dispatch does not return if this process is a part of a sandbox: gVisor's sentry or
// gofer, or the runtime child. main, and TestMain of a test that uses a Runtime, must call
// it first.
func Dispatch() {
	switch {
	case isRunsc(os.Args):
		slim()
		os.Args = showLimits(os.Args)
		maincli.Main()
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[1] == childCommand:
		os.Exit(childMain())
	case len(os.Args) == 2 && os.Args[1] == probeCommand:
		os.Exit(0)
	}
}

// isRunsc reports whether gVisor started this process. gVisor only uses these names with
// these commands, so renaming the binary does not turn it into runsc.
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
