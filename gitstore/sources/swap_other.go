//go:build !linux

package sources

import "errors"

func exchange(string, string) error { return errors.ErrUnsupported }
