// Package rundir knows the files and processes that sandboxes have outside, and
// destroys those that an earlier server or child left behind: call Reap before the
// first sandbox starts.
package rundir
