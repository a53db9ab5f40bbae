package space

import "errors"

// ErrOutOfMemory is why a sandbox ended whose memory limit was reached.
var ErrOutOfMemory = errors.New("sandbox out of memory")
