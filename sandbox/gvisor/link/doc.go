// Package link is how the server and its runtime child speak: JSON messages over
// a pair of sockets, with files passed beside them. Pair makes both ends, New takes
// one of them into use.
package link

// The first argument with which the sandbox program becomes the owner of all
// sandboxes, or ends at once: the trial of new namespaces that Check makes.
const (
	ChildCommand = "runtime"
	ProbeCommand = "probe"
)
