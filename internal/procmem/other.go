//go:build !linux

package procmem

import (
	"errors"
	"runtime/debug"
)

// Of tells nothing here.
func Of(...int) Usage { return Usage{} }

// Descendants tells nothing here.
func Descendants(int) []int { return nil }

// Available returns how many bytes of memory processes can still take; here
// nobody knows.
func Available() (int64, error) { return 0, errors.ErrUnsupported }

// Reclaimer gives back memory of the process that made it.
type Reclaimer struct{}

// NewReclaimer fails here.
func NewReclaimer() (*Reclaimer, error) { return nil, errors.ErrUnsupported }

// Reclaim returns the heap's free pages to the system.
func (g *Reclaimer) Reclaim() { debug.FreeOSMemory() }
