// Package server puts the parts of Satchel together and runs them: it opens the
// data directory, connects the stores, the index, the sandboxes, the tools and
// the protocol edge through small adapters, serves, and shuts down in order.
// It decides nothing that a part could decide.
package server
