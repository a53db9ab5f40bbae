// Package service implements every operation of Satchel once. The fronts (MCP, the REST
// API, the pages, the command line and its socket) translate a request into an [Actor] and
// an input, call a method of [Service], and translate its result.
//
// An operation checks the actor's right, does its work and writes an audit entry if it
// changes settings. It returns a result or a fault.Error. [Operations] is the only place
// that says which actors may perform an operation.
//
// Create a Service with [New]. A running server then calls [Service.Attach].
package service
