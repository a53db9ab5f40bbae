//go:build linux

package main

import (
	"context"
	"fmt"
)

// step is one measurement of a suite.
type step struct {
	name string
	run  func(context.Context, *bench) error
}

// steps measures one after the other.
func (b *bench) steps(ctx context.Context, all ...step) error {
	for _, s := range all {
		b.log("measuring %s", s.name)
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// core measures the main job.
func core(ctx context.Context, b *bench) error {
	return b.steps(ctx,
		step{"idle memory", idleMemory},
		step{"read", benchRead},
		step{"bash, warm", benchBashWarm},
		step{"bash, cold", benchBashCold},
		step{"commit", benchCommit},
		step{"search", benchSearch},
	)
}
