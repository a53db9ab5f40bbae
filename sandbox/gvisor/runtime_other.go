//go:build !linux

package gvisor

import (
	"context"
	"path/filepath"
	"runtime"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/host"
)

// Name is the runtime's name in the configuration.
const Name = "gvisor"

var _ space.Runtime = (*Runtime)(nil)

// Runtime starts sandboxes in gVisor, on Linux. On this system its Check and Start fail.
type Runtime struct{ opt Options }

// New returns a Runtime whose Check and Start fail.
func New(opt Options) (*Runtime, error) {
	opt = opt.withDefaults()
	if !filepath.IsAbs(opt.RunDir) {
		return nil, fault.New(fault.Invalid, "The sandboxes' run directory must be an absolute path.")
	}
	return &Runtime{opt: opt}, nil
}

func unavailable() error {
	return fault.New(fault.Unavailable,
		"No sandbox can start here: gVisor needs Linux and this is %s. Everything but bash works; run the server on Linux (a virtual machine or a container will do) to have it.",
		runtime.GOOS)
}

// Name implements space.Runtime.
func (r *Runtime) Name() string { return Name }

// Check implements space.Runtime.
func (r *Runtime) Check(context.Context) error { return unavailable() }

// Start implements space.Runtime.
func (r *Runtime) Start(context.Context, space.SandboxSpec) (space.Sandbox, error) {
	return nil, unavailable()
}

// Reap implements space.Runtime.
func (r *Runtime) Reap(context.Context) (int, error) { return 0, nil }

// Close implements space.Runtime.
func (r *Runtime) Close() error { return nil }

// Diagnose reports that sandboxes need Linux.
func (r *Runtime) Diagnose(context.Context) []host.Finding {
	return []host.Finding{{
		Name: "operating system", Detail: runtime.GOOS,
		Remedy: "Run the server on Linux to have bash. Everything else works.",
	}}
}
