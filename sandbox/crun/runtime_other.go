//go:build !linux

package crun

import (
	"context"
	"runtime"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/host"
)

var _ space.Runtime = (*Runtime)(nil)

// Runtime starts sandboxes with crun or runc, on Linux. Here it says that it
// cannot.
type Runtime struct{ opt Options }

// New returns a Runtime whose Check and Start fail.
func New(opt Options) (*Runtime, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	return &Runtime{opt: opt}, nil
}

func (r *Runtime) unavailable() error {
	return fault.New(fault.Unavailable,
		"No sandbox can start here: %s needs Linux and this is %s. Everything but bash works; run the server on Linux (a virtual machine or a container will do) to have it.",
		r.opt.Program, runtime.GOOS)
}

// Name implements space.Runtime.
func (r *Runtime) Name() string { return r.opt.Program }

// SharedKernel implements space.Runtime.
func (r *Runtime) SharedKernel() bool { return true }

// Check implements space.Runtime.
func (r *Runtime) Check(context.Context) error { return r.unavailable() }

// Start implements space.Runtime.
func (r *Runtime) Start(context.Context, space.SandboxSpec) (space.Sandbox, error) {
	return nil, r.unavailable()
}

// Reap implements space.Runtime.
func (r *Runtime) Reap(context.Context) (int, error) { return 0, nil }

// Close implements space.Runtime.
func (r *Runtime) Close() error { return nil }

// Diagnose looks at everything that sandboxes need.
func (r *Runtime) Diagnose(context.Context) []host.Finding {
	return []host.Finding{{
		Name: "operating system", Detail: runtime.GOOS,
		Remedy: "Run the server on Linux to have bash. Everything else works.",
	}}
}
