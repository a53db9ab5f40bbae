//go:build linux

package main

import (
	"context"
	"fmt"
)

// core measures the main job.
func core(ctx context.Context, b *bench) error {
	for _, step := range []struct {
		name string
		run  func(context.Context, *bench) error
	}{
		{"idle memory", idleMemory},
		{"read", benchRead},
		{"bash, warm", benchBashWarm},
		{"bash, cold", benchBashCold},
		{"commit", benchCommit},
		{"search", benchSearch},
	} {
		b.log("measuring %s", step.name)
		if err := step.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}
