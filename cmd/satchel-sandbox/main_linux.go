// Command satchel-sandbox is the program that sandboxes are made of outside:
// gVisor's sentry and gofer, and the process that owns them. The server has it
// embedded and starts it.
package main

import (
	"os"

	"satchel/sandbox/gvisor/child"
)

func main() { os.Exit(child.Main()) }
