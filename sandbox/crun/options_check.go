package crun

import (
	"path/filepath"

	"satchel/internal/fault"
)

// Name and NameRunc are what configuration calls this runtime, and the programs
// that it uses.
const (
	Name     = "crun"
	NameRunc = "runc"
)

// check returns the options with their defaults, or what is wrong with them.
func (o Options) check() (Options, error) {
	o = o.withDefaults()
	if !filepath.IsAbs(o.RunDir) {
		return o, fault.New(fault.Invalid, "The sandboxes' run directory must be an absolute path.")
	}
	o.RunDir = filepath.Clean(o.RunDir)
	if o.Rootfs != "" && !filepath.IsAbs(o.Rootfs) {
		return o, fault.New(fault.Invalid, "The sandboxes' root file system must be an absolute path.")
	}
	if o.Program != Name && o.Program != NameRunc {
		return o, fault.New(fault.Invalid, "There is no OCI runtime %q to use: crun and runc are.", o.Program)
	}
	const most = 0x7fff0000 - maxSlots*idsEach - marks
	if o.FirstID < idsEach || o.FirstID > most {
		return o, fault.New(fault.Invalid, "The sandboxes' first user id must be from %d to %d.", idsEach, most)
	}
	return o, nil
}
