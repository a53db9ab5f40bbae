// Package rundir finds the files and processes that sandboxes have on the host, and
// destroys those that an earlier server or its child process left behind: call Reap before
// the first sandbox starts.
package rundir
