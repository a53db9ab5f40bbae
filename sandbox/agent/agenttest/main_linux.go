// Package main is the program with which the agent's tests start sandboxes. It is runsc
// with all its commands, or the agent if its argument is "agent". It is a separate
// program because gVisor cannot be built with the instrumentation of fuzzing, or run with
// cgo, which the race detector needs.
package main

import (
	"os"
	"path/filepath"

	"gvisor.dev/gvisor/runsc/cli/maincli"

	"satchel/sandbox/agent"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "agent" && filepath.Base(os.Args[0]) != "runsc" {
		os.Exit(agent.Serve(os.Stdin, os.Stdout))
	}
	maincli.Main()
}
