//go:build linux

package main

import "context"

// sandboxSuite measures commands that clients run through the server.
func sandboxSuite(ctx context.Context, b *bench) error {
	return b.steps(ctx,
		step{"idle memory", idleMemory},
		step{"bash, warm", benchBashWarm},
		step{"bash, cold", benchBashCold},
		step{"bash, cold, a large space", benchBashColdLarge},
		step{"grep", benchGrep},
		step{"many sandboxes", benchMany},
	)
}
