package filters

import (
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	sentry "gvisor.dev/gvisor/runsc/boot/filter"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

// gVisor's own build fills these maps. No exported function does.
var (
	//go:linkname sentryFilters gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
	sentryFilters map[string]precompiledseccomp.Program

	//go:linkname goferFilters gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
	goferFilters map[string]precompiledseccomp.Program
)

// Use gives the compiled filters to gVisor in this process.
func Use() {
	// These calls create the maps.
	sentry.ListPrecompiled()
	gofer.ListPrecompiled()
	for _, p := range compiledSentry {
		sentryFilters[p.Name] = p
	}
	for _, p := range compiledGofer {
		goferFilters[p.Name] = p
	}
}
