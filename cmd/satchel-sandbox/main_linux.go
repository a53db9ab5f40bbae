// Command satchel-sandbox runs the processes of sandboxes on the host: gVisor's sentry and
// gofer, and the process that owns them. The server embeds the program and starts it.
package main

import (
	"os"

	"satchel/sandbox/gvisor/child"
)

func main() { os.Exit(child.Main()) }
