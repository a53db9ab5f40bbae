//go:build !unix

package semantic

import (
	"os"
)

// mapFile reads the file into memory, because it cannot be mapped here.
func mapFile(file string) (data []byte, unmap func() error, err error) {
	data, err = os.ReadFile(file)
	return data, func() error { return nil }, err
}
