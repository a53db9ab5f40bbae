//go:build linux && !amd64

package filters

import "gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"

var compiledSentry, compiledGofer []precompiledseccomp.Program
