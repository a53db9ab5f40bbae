// Package admin performs the operator's commands on people, keys and spaces. [Local] is a
// [Service] on the open data directory. [Dial] returns a Service that asks a running
// server, over a socket that only the owner of the data directory can reach. So every
// administrative command works with and without a running server.
package admin
