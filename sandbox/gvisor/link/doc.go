// Package link connects the server with its runtime child: it sends JSON messages, some with
// open files, over a pair of sockets. Call Pair for the two ends, then New with one of them in
// each process.
package link

// The first arguments of the sandbox program. With ChildCommand it becomes the owner of all
// sandboxes. With ProbeCommand it ends at once. The server starts it so to try new namespaces.
const (
	ChildCommand = "runtime"
	ProbeCommand = "probe"
)
