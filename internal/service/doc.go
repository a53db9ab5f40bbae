// Package service holds the operations of Satchel, each once. The fronts (MCP, the REST
// API, the pages, the command line and its socket) translate a request into an
// [Actor] and an input, call a method of [Service], and translate its result.
//
// An operation checks that the actor may perform it, does it, and writes the audit line
// if it changes what people set. It returns a result or a fault.Error. Its row in
// [Operations] is the only place that says which actors may perform it.
//
// Call [New] once, and then its methods.
package service
