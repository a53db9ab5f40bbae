//go:build !linux

package rootfs

import (
	"context"

	"satchel/internal/fault"
)

// Build works on Linux alone, as sandboxes do.
func Build(_ context.Context, o Options) (Result, error) {
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	return Result{}, fault.New(fault.Unavailable, "A root file system can be built on Linux alone, where sandboxes run too.")
}
