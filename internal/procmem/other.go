//go:build !linux

package procmem

import (
	"errors"
	"runtime/debug"
)

// Of returns zero on this system.
func Of(...int) Usage { return Usage{} }

// Descendants returns none on this system.
func Descendants(int) []int { return nil }

// Available fails on this system.
func Available() (int64, error) { return 0, errors.ErrUnsupported }

// Reclaimer returns memory of this process to the system.
type Reclaimer struct{}

// NewReclaimer fails on this system.
func NewReclaimer() (*Reclaimer, error) { return nil, errors.ErrUnsupported }

// Reclaim returns the heap's free pages to the system.
func (g *Reclaimer) Reclaim() { debug.FreeOSMemory() }
