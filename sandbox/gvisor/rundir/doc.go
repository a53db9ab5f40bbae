// Package rundir finds the files and processes that sandboxes have on the host, and
// destroys those that an earlier server or child left behind: call Reap before the
// first sandbox starts.
package rundir
