// Package filters contains gVisor's system call filters in compiled form, for the
// configuration that Satchel uses by default. gVisor's Go module contains no compiled filters, so
// each sentry and each gofer (gVisor's processes) would compile its filter at its start. That
// takes tens of milliseconds of a processor. gVisor compiles the filters of other configurations
// itself. Call [Use] before gVisor starts.
//
// A test compares the filters with those that gVisor compiles. After an update of gVisor,
// go test ./sandbox/gvisor/child/filters -update writes them again.
package filters
