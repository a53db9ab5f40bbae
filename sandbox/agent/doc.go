// Package agent is the program that runs as process 1 of every sandbox, the
// framed protocol that it speaks over its standard input and output, and the
// host's side of that protocol, the [Client].
//
// The agent mounts the space (a bounded overlay over the read-only checkout), runs commands
// in it as an unprivileged user behind a seccomp filter, reports their changes and applies
// those of others. Everything that it sends may come from an attacker: the Client limits
// every frame, and its user validates every path.
package agent
