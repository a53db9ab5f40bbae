// Package service holds every operation of Satchel once. The fronts (MCP, the REST
// API, the pages, the command line and its socket) translate a request into an
// [Actor] and an input, call a method of [Service], and translate its result.
//
// An operation checks that the actor may perform it, does it, and writes the audit
// line. It returns a domain type or a fault.Error. Its row in the table of rights
// (rights.go) is the only place that says who may perform it.
//
// Call [New] once, and [Operations] to list all operations with their rights.
package service
