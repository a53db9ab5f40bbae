//go:build !unix

package semantic

import (
	"os"
)

// mapFile reads the file: where it cannot be mapped, it is held in memory.
func mapFile(file string) (data []byte, unmap func() error, err error) {
	data, err = os.ReadFile(file)
	return data, func() error { return nil }, err
}
