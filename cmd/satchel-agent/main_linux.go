// Command satchel-agent is process 1 inside every sandbox. The server embeds the program, and
// communicates with it over its standard streams.
package main

import (
	"os"

	"satchel/sandbox/agent"
)

func main() { os.Exit(agent.Serve(os.Stdin, os.Stdout)) }
