// Package apiclient calls the REST API of a Satchel server: it searches and reads the
// library, runs commands over it, and lists and syncs its sources.
//
// Errors of the server are fault errors with its code and message. A server that cannot be
// reached, or that answers with something else, is a fault.Unavailable. The client sends
// the key only to the configured server, and follows no redirects.
package apiclient
