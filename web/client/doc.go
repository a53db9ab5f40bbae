// Package client calls the REST API of a Satchel server. It searches and reads the library, runs
// commands over it, lists and syncs its sources, and reads and changes the facts of a space. Call
// [New] first.
//
// Each failure is an [*Error] with the server's code and message. errors.Is compares it with
// [ErrUnauthorized], [ErrLimited], [ErrSandbox] and [ErrNetwork]. The client repeats requests that
// are safe to repeat. It sends the key only to the configured server, and follows no redirects.
//
// The package uses only the standard library, so other modules can copy it. The directory agent
// contains a program that uses it.
package client
