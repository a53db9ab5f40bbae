//go:build !linux

package agent

import "io"

// Serve returns exit status 1, because sandboxes run only Linux.
func Serve(io.Reader, io.Writer) int { return 1 }
