package main

import (
	"os"

	"gvisor.dev/gvisor/runsc/cli/maincli"
	_ "gvisor.dev/gvisor/runsc/container"
)

func main() { _ = os.Args; maincli.Main() }
