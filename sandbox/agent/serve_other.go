//go:build !linux

package agent

import "io"

// Serve returns exit status 1, because the agent runs only on Linux.
func Serve(io.Reader, io.Writer) int { return 1 }
