// Package host is what the runtimes of sandboxes need of the machine that they
// run on: processes that are held by more than their number, cgroups, the
// standard streams of a process 1, a run directory that is one server's alone,
// and findings for `satchel doctor`.
//
// Nothing here knows a particular runtime.
package host
