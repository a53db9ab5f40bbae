// Package main is the program that the agent's tests start sandboxes with:
// runsc with all its commands, and with the argument "agent" the agent. It
// is a program of its own because gVisor can neither be built with the
// instrumentation of fuzzing nor run with cgo, which the race detector takes.
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
