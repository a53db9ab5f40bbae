// Package apiclient calls the REST API of a Satchel: its library searched, read
// and run commands over, and its sources.
//
// Errors of the server are fault errors with its code and message; a server that
// cannot be reached, or answers with something else, is a fault.Unavailable. The
// key is sent to the configured server alone, and follows no redirect.
package apiclient
