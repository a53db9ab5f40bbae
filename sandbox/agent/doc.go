// Package agent is the program that runs as process 1 of every sandbox, the
// framed protocol that it speaks over its standard input and output, and the
// host's side of that protocol, the [Client].
//
// The agent mounts the space (a bounded overlay over the read-only checkout),
// runs commands in it as an unprivileged user behind a seccomp filter, tells
// what they changed and applies what others changed. Everything that it sends
// is an attacker's data: the Client bounds every frame, and whoever uses it
// validates every path.
package agent
