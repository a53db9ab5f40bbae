//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// step is one measurement of a suite.
type step struct {
	name string
	run  func(context.Context, *bench) error
}

// steps runs all steps one at a time, each in a scratch directory of its own.
func (b *bench) steps(ctx context.Context, all ...step) error {
	for _, s := range all {
		b.log("measuring %s", s.name)
		own := *b
		var err error
		if own.dir, err = os.MkdirTemp(b.dir, ""); err != nil {
			return err
		}
		if err := errors.Join(s.run(ctx, &own), os.RemoveAll(own.dir)); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// core measures the main operations of a server.
func core(ctx context.Context, b *bench) error {
	return b.steps(ctx,
		step{"idle memory", idleMemory},
		step{"read", benchRead},
		step{"bash, warm", benchBashWarm},
		step{"bash, cold", benchBashCold},
		step{"bash, cold, without a spare", benchBashColdUnspared},
		step{"commit", benchCommit},
		step{"write", benchWrite},
		step{"remember at once", benchRemember},
		step{"search", benchSearch},
	)
}
