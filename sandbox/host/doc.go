// Package host gives the runtimes of sandboxes what they need from the machine: processes
// that are held by a pidfd, cgroups, the standard streams of process 1 in a sandbox, a run
// directory for one server, and findings for `satchel doctor`.
//
// Nothing in this package depends on a particular runtime.
package host
