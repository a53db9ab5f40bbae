// Package admin holds what an operator does to a Satchel on its command line:
// people, keys, spaces. A [Service] does it; [Local] does it on the open data
// directory, and [Dial] returns a Service that asks a running server to, over
// a socket that only the data directory's owner can reach. So every
// administrative command works whether or not a server runs.
package admin
