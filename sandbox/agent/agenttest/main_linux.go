// Package main is the program that the agent's tests start sandboxes with:
// gVisor's programs and the agent in one binary, as the satchel binary is. It
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
	if len(os.Args) > 1 && os.Args[1] == agent.Command && filepath.Base(os.Args[0]) != "runsc" {
		os.Exit(agent.Serve(os.Stdin, os.Stdout))
	}
	maincli.Main()
}
